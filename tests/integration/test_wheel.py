"""What is released: the wheel and the source distribution, and the wheel in a clean environment."""

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import urllib.request
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from langgraph_server import LangGraphServer
from markdown_blocks import ROOT, blocks_in, pages

GUIDES = ROOT / "docs" / "guides.md"
PACKAGES = ("graph", "nodes", "nodes/prompts", "stores")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
BUILD = """
import sys
from setuptools import build_meta

folder = sys.argv[1]  # a build changes `sys.argv`
build_meta.build_wheel(folder)
build_meta.build_sdist(folder)
"""
IMPORT_ALL = """
import everlong.graph, everlong.nodes, everlong.stores, importlib, pkgutil
for package in (everlong.graph, everlong.nodes, everlong.stores):
    for one in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(one.name)
print(everlong.graph.__path__[0])
"""
WITHOUT = """
import importlib, sys
missing, module = sys.argv[1:]
sys.modules[missing] = None  # as if it were not installed
try:
    importlib.import_module(module)
except ModuleNotFoundError as error:
    print(error)
"""
FOREIGN = re.compile(rf"{re.escape(str(ROOT))}|/root/|/home/\w")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both from a copy of what a checkout holds, offline."""
    tree, built = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    leave = shutil.ignore_patterns("__pycache__")
    for name in ("graph", "nodes", "stores", "tests", "docs"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    run(sys.executable, "-c", BUILD, str(built), cwd=tree)
    return built


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(built.glob("*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = [one for one in wheel.namelist() if one.endswith(".dist-info/METADATA")]
    return Parser().parsestr(wheel.read(name).decode())


@pytest.fixture(scope="module")
def python(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel in an environment of its own, which finds the libraries of this one."""
    folder = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder), cwd=folder)
    python = folder / "bin" / "python"
    wheel = str(next(built.glob("*.whl")))
    pip = ("-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", "--quiet")
    run(sys.executable, *pip, wheel, cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    return python


def run(*command: str, cwd: Path, **environment: str) -> str:
    """Run a command without the settings of whoever runs the tests; return what it printed."""
    done = subprocess.run(  # noqa: S603 - our own
        command,
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(cwd)} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_the_packages() -> set[str]:
    files = (one for package in PACKAGES for one in (ROOT / package).iterdir() if one.is_file())
    return {one.relative_to(ROOT).as_posix() for one in files}


def test_the_wheel_holds_the_packages_whole_and_nothing_else(wheel):
    names = {one for one in wheel.namelist() if ".dist-info/" not in one}
    assert names == {f"everlong/{one}" for one in in_the_packages()}
    for one in ("graph/py.typed", "nodes/py.typed", "stores/py.typed", "nodes/prompts/compact.md"):
        assert f"everlong/{one}" in names


def test_the_source_distribution_builds_the_same_and_brings_no_tests(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {one.name.partition("/")[2] for one in archive.getmembers() if one.isfile()}
    assert names >= in_the_packages() | {"pyproject.toml", "README.md", "LICENSE"}
    assert not [one for one in names if one.startswith(("tests", "docs", ".")) or "cache" in one]


def test_no_path_of_a_machine_is_in_the_wheel(wheel):
    for name in wheel.namelist():
        assert not FOREIGN.search(wheel.read(name).decode("utf-8")), name


def test_what_the_wheel_says_of_itself_is_the_newest_release(metadata):
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    newest, date = re.findall(r"^## \[(\d[^\]]*)\] - (\d{4}-\d\d-\d\d)$", changes, re.MULTILINE)[0]
    assert metadata["Version"] == PROJECT["version"] == newest
    assert date
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text("utf-8").strip()


def test_each_extra_that_a_page_names_is_there(metadata):
    extras = set(metadata.get_all("Provides-Extra") or ())
    rows = re.findall(r"^\| `(\w+)` \| .* \| .* \|$", GUIDES.read_text("utf-8"), re.MULTILINE)
    assert set(rows) == extras
    named = set[str]()
    for page in pages():
        for one in re.findall(r"(?:everlong|'\.)\[([a-z,]+)\]", page.read_text("utf-8")):
            named |= set(one.split(","))
    assert named == extras


@pytest.mark.parametrize(
    ("missing", "module", "extra"),
    [
        ("jwt", "everlong.graph.auth", "server"),
        ("starlette.exceptions", "everlong.graph.auth", "server"),
        ("langchain.agents.middleware.types", "everlong.graph.middleware", "middleware"),
    ],
)
def test_a_module_without_its_extra_names_it(python, tmp_path, missing, module, extra):
    said = run(str(python), "-c", WITHOUT, missing, module, cwd=tmp_path)
    assert f"pip install 'everlong[{extra}]'" in said


def test_what_is_installed_is_a_command_a_library_and_typed(python, dsn, tmp_path):
    place = run(str(python), "-c", IMPORT_ALL, cwd=tmp_path).strip()
    assert place.startswith(str(python.parents[1]))
    assert (Path(place) / "py.typed").exists()
    command = str(python.parent / "everlong")
    assert run(command, "--version", cwd=tmp_path) == f"everlong {PROJECT['version']}\n"
    said = run(command, "doctor", cwd=tmp_path, DATABASE_URL=dsn)
    assert f"everlong {PROJECT['version']}, langgraph " in said
    assert "All is well." in said


def test_a_folder_with_nothing_but_the_guides_file_is_served(python, server_dsn, tmp_path):
    (config,) = blocks_in(GUIDES, "json")
    assert (
        json.loads(config)["checkpointer"]
        == json.loads((ROOT / "langgraph.json").read_text("utf-8"))["checkpointer"]
    )
    (tmp_path / "langgraph.json").write_text(config, "utf-8")
    with LangGraphServer(tmp_path, python=str(python), DATABASE_URL=server_dsn) as server:
        for graph, given in (("everlong", said("Hello")), ("memory", {"input": {}})):
            came = post(f"{server.url}/runs/wait", {"assistant_id": graph} | given)
            assert "__error__" not in came
            assert came
    assert "BlockingError" not in server.log_text()


def said(text: str) -> dict[str, Any]:
    return {"input": {"messages": [{"role": "user", "content": text}]}}


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    data = json.dumps(body | {"context": {"user_id": "kim-of-the-wheel"}}).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})  # noqa: S310 - our own
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - our own
        return json.load(answer)
