"""The deployment on aegra, as far as it can be held against itself without aegra and Docker."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "aegra"
SECRET = re.compile(r"\$\{(\w*(?:PASSWORD|SECRET|KEY|AUDIENCE)\w*)(:\?[^}]+)?[^}]*\}")


def configuration(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text("utf-8"))


@pytest.fixture
def services() -> dict[str, Any]:
    return yaml.safe_load((FOLDER / "compose.aegra.yaml").read_text("utf-8"))["services"]


def test_aegra_serves_the_graphs_that_the_other_server_serves():
    ours, other = configuration(FOLDER / "aegra.json"), configuration(ROOT / "langgraph.json")
    assert ours["auth"]["path"] == other["auth"]["path"]
    assert ours["graphs"].keys() == other["graphs"].keys()
    for name, graph in ours["graphs"].items():
        assert graph["description"] == other["graphs"][name]["description"]
        file, variable = graph["path"].split(":")
        assert (FOLDER / file).resolve() == (ROOT / other["graphs"][name]["path"].split(":")[0])
        tree = ast.parse((FOLDER / file).read_text("utf-8"))
        assigned = [ast.unparse(one.targets[0]) for one in tree.body if isinstance(one, ast.Assign)]
        assert variable in assigned


def test_every_secret_has_to_be_set_and_none_has_a_default():
    text = (FOLDER / "compose.aegra.yaml").read_text("utf-8")
    found = SECRET.findall(text)
    assert {name for name, _ in found} == {"POSTGRES_PASSWORD", "EVERLONG_AUTH__AUDIENCE"}
    assert all(asked for _, asked in found)
    assert not re.search(r"(?:PASSWORD|SECRET|KEY)\w*: (?!\$\{)", text)


def test_every_service_that_stays_is_asked_whether_it_is_well(services):
    worker = services.pop("worker")
    assert worker["command"] == ["everlong", "worker"]
    assert worker["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    stays = {name for name, one in services.items() if one["restart"] != "no"}
    assert stays == {"postgres", "redis", "aegra"}
    assert all("test" in services[name]["healthcheck"] for name in stays)
    assert services["aegra"]["depends_on"]["migrate"] == {
        "condition": "service_completed_successfully"
    }


def test_a_stopped_server_gets_the_time_that_its_runs_are_given(services):
    assert services["aegra"]["stop_grace_period"] == "45s"  # aegra waits 30 s for what is at work
    last = (FOLDER / "Dockerfile").read_text("utf-8").splitlines()[-1]
    assert last.startswith('CMD ["python", "-m", "uvicorn"')  # the process that is told to stop


def test_the_image_is_made_of_files_that_are_there_and_are_let_in():
    copied = [
        word
        for line in (FOLDER / "Dockerfile").read_text("utf-8").splitlines()
        if line.startswith("COPY ")
        for word in line.split()[1:-1]
    ]
    let_in = (FOLDER / "Dockerfile.dockerignore").read_text("utf-8").split()
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in let_in


def test_aegra_runs_on_the_versions_that_the_suite_runs_on():
    aegra, run = (pins(ROOT / "requirements" / f"{name}.txt") for name in ("aegra", "run"))
    assert {name: aegra.get(name) for name in run} == run


def pins(path: Path) -> dict[str, str]:
    lines = re.findall(r"^([\w.-]+)==(\S+)", path.read_text("utf-8"), re.MULTILINE)
    return dict(lines)
