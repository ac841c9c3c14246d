"""What goes into the image and around it: the Dockerfile, its context, compose.yaml, the how-to."""

import importlib
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from contextlib import AbstractAsyncContextManager
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from langgraph.pregel import Pregel
from langgraph_sdk import Auth
from starlette.applications import Starlette
from typer.testing import CliRunner

from bearer_tokens import AUDIENCE, SECRET
from everlong.graph.bearer import identity_in, keys_of
from everlong.graph.cli import app
from everlong.stores.settings import AuthSettings
from langgraph_server import QUIET

ROOT = Path(__file__).parents[2]
CONFIG: dict[str, Any] = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
COMPOSE = (ROOT / "compose.yaml").read_text("utf-8")
HOW_TO = (ROOT / "docs" / "deploying.md").read_text("utf-8")
ENV_EXAMPLE = (ROOT / ".env.example").read_text("utf-8")


@pytest.fixture(scope="module")
def dockerfile(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `langgraph dockerfile` writes; it needs no Docker."""
    target = tmp_path_factory.mktemp("docker") / "Dockerfile"
    command = [sys.executable, "-m", "langgraph_cli", "dockerfile", str(target)]
    subprocess.run(command, cwd=ROOT, env=QUIET, check=True, capture_output=True)  # noqa: S603
    return target.read_text("utf-8")


def settings_in(dockerfile: str) -> dict[str, Any]:
    return {
        name: json.loads(value)
        for name, value in re.findall(r"^ENV (\w+)='(.*)'$", dockerfile, re.MULTILINE)
    }


def loaded(place: str, name: str) -> Any:
    """Load what the server would: from a file of the image, or from a module that is installed."""
    folder = f"/deps/{ROOT.name}/"
    if not place.startswith("/"):
        return vars(importlib.import_module(place))[name]
    path = ROOT / place.removeprefix(folder)
    assert place.startswith(folder)
    assert in_image(path)
    spec = importlib.util.spec_from_file_location("in_the_image", path)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return vars(module)[name]


def in_image(path: Path) -> bool:
    return path.exists() and not is_ignored(str(path.relative_to(ROOT)))


def is_ignored(path: str) -> bool:
    """Read `.dockerignore` as Docker does: the last line that names the path or one above it."""
    above = [path, *map(str, Path(path).parents[:-1])]
    ignored = False
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        names = [Path(one).name if "**/" in line else one for one in above]
        depth = [one for one in names if "/" not in one and fnmatch(one, pattern)]
        if pattern and not line.startswith("#") and depth:
            ignored = not line.startswith("!")
    return ignored


def test_every_place_that_the_image_names_is_there_and_is_what_it_should_be(dockerfile):
    found = settings_in(dockerfile)
    for spec in found["LANGSERVE_GRAPHS"].values():
        assert isinstance(loaded(*spec["path"].rsplit(":")), Pregel)
        assert spec["description"]
    assert isinstance(loaded(*found["LANGGRAPH_AUTH"]["path"].rsplit(":")), Auth)
    assert isinstance(loaded(*found["LANGGRAPH_HTTP"]["app"].rsplit(":")), Starlette)
    for name in ("LANGGRAPH_CHECKPOINTER", "LANGGRAPH_STORE"):
        opened = loaded(*found[name]["path"].rsplit(".", 1))()
        assert isinstance(opened, AbstractAsyncContextManager)
    assert f"WORKDIR /deps/{ROOT.name}" in dockerfile
    assert dockerfile.startswith("FROM langchain/langgraph-api:3.13\n")


def test_the_image_closes_the_doors_that_know_no_users(dockerfile):
    found = settings_in(dockerfile)
    assert found["LANGGRAPH_AUTH"]["disable_studio_auth"] is True
    http = found["LANGGRAPH_HTTP"]
    for closed in ("enable_custom_route_auth", "disable_mcp", "disable_a2a"):
        assert http[closed] is True
    assert "*" not in json.dumps(http["cors"])
    assert found["LANGGRAPH_WEBHOOKS"]["url"] == {
        "require_https": True,
        "disable_private_ips": True,
    }


def test_the_image_installs_what_the_servers_parts_and_the_worker_import(dockerfile):
    extras = PROJECT["optional-dependencies"]
    extra = extras["server"] + extras["cli"]
    assert [".", *extra] == CONFIG["dependencies"]
    (pip,) = re.findall(
        r"^RUN .*pip install .* -c /api/constraints.txt (?!-e)(.*)$", dockerfile, re.MULTILINE
    )
    assert all(one in pip for one in extra)
    assert "-e ." in dockerfile


def test_the_image_holds_what_is_installed_and_nothing_of_anyones():
    for name in ("README.md", "LICENSE", "pyproject.toml", "langgraph.json"):
        assert in_image(ROOT / name)
    for package in ("graph", "nodes", "nodes/prompts", "stores"):
        assert all(in_image(one) for one in (ROOT / package).glob("*.*"))
    for name in (".env", ".git/config", ".langgraph_api/x", ".everlong/data", ".venv/x", "tests/x"):
        assert is_ignored(name), name
    assert is_ignored("graph/__pycache__/agent.pyc")
    assert ".env" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


def test_compose_keeps_the_servers_tables_and_ours_apart():
    api = yaml.safe_load(COMPOSE)["services"]["api"]["environment"]
    servers, ours = (api[name].rpartition("/")[2] for name in ("POSTGRES_URI", "DATABASE_URL"))
    postgres = yaml.safe_load(COMPOSE)["services"]["postgres"]
    assert postgres["environment"]["POSTGRES_DB"] == servers
    (made,) = postgres["configs"]
    content = yaml.safe_load(COMPOSE)["configs"][made["source"]]["content"]
    assert content == f"CREATE DATABASE {ours};"
    assert servers != ours


def test_the_worker_of_compose_is_the_command_on_our_database():
    services = yaml.safe_load(COMPOSE)["services"]
    program, *given = services["worker"]["entrypoint"]
    assert program in PROJECT["scripts"]
    called = CliRunner().invoke(app, [*given, "--help"])
    assert called.exit_code == 0
    api, worker = (services[name] for name in ("api", "worker"))
    assert worker["environment"].items() <= api["environment"].items()
    assert worker["image"] == api["image"]
    assert worker["env_file"] == api["env_file"]


def test_compose_waits_for_each_service_and_says_how_well_it_is():
    services = yaml.safe_load(COMPOSE)["services"]
    assert services.pop("worker")["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert all(one["healthcheck"]["test"][0] == "CMD" for one in services.values())
    waits = services["api"]["depends_on"]
    assert waits == {name: {"condition": "service_healthy"} for name in services if name != "api"}
    check = services["api"]["healthcheck"]["test"]
    assert check[1:3] == ["python", "-c"]
    assert "http://127.0.0.1:8000/" in check[3]
    for port in services["api"]["ports"]:
        assert port.startswith("127.0.0.1:")


def test_compose_holds_no_secret_and_starts_without_none():
    needed = {"POSTGRES_PASSWORD", "LANGGRAPH_CLOUD_LICENSE_KEY", "EVERLONG_AUTH__AUDIENCE"}
    assert set(re.findall(r"\$\{(\w+):\?[^}]+\}", COMPOSE)) == needed
    for name, value in re.findall(
        r"^ +(\w*(?:PASSWORD|KEY|SECRET)\w*): (.*)$", COMPOSE, re.MULTILINE
    ):
        assert value.startswith(f"${{{name}:?")
    passwords = re.findall(r"://\w+:([^@\n]*)@", COMPOSE)
    assert [one.partition(":")[0] for one in passwords] == ["${POSTGRES_PASSWORD"] * 3
    for name in needed | {
        f"EVERLONG_AUTH__{one.upper()}" for one in ("secret", "jwks_url", "issuer")
    }:
        assert f"\n# {name}=" in ENV_EXAMPLE
        assert name in HOW_TO


def test_the_how_to_names_each_setting_of_auth_and_each_route_of_ours():
    for name in AuthSettings.model_fields:
        assert f"EVERLONG_AUTH__{name.upper()}" in HOW_TO
    app = loaded(*CONFIG["http"]["app"].rsplit(":"))
    for route in app.routes:
        (method,) = route.methods - {"HEAD"}
        assert f"`{method} {route.path}`" in HOW_TO


async def test_the_token_that_the_how_to_makes_is_accepted(capsys):
    (code,) = re.findall(r"```python\n(import jwt.*?)```", HOW_TO, re.DOTALL)
    made: dict[str, Any] = {"SECRET": SECRET}
    exec(code, made)  # noqa: S102 - our own document
    settings = AuthSettings.model_validate({"secret": SECRET, "audience": AUDIENCE})
    assert await identity_in(capsys.readouterr().out.strip(), keys_of(settings), settings) == "kim"
