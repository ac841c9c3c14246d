"""What README and docs show in Python or a shell does what it says."""

import ast
import inspect
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.tools import tool
from langgraph_sdk import get_client

from everlong.stores.settings import settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^( *)```(python|sh)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
SERVER = "http://127.0.0.1:2024"
NOT_HERE = re.compile(r"make |\. \.venv|git clone|.*tests/benchmarks/")
"""What CI itself does, a person once, or nobody in a test run."""


@tool
def my_tool(order: str) -> str:
    """Look an order up."""
    return f"{order} is on its way."


def fences(page: Path, language: str) -> list[str]:
    """Return the blocks of a page in a language, in their order."""
    found = FENCE.findall(page.read_text("utf-8"))
    return [textwrap.dedent(code) for _, kind, code in found if kind == language]


async def run(code: str, names: dict[str, Any]) -> None:
    """Run a block as a person would at a prompt that can await."""
    compiled = compile(code, "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done = eval(compiled, names)  # noqa: S307 - our own pages
    if inspect.isawaitable(done):
        await done


def with_blocks(language: str) -> list[Any]:
    return [pytest.param(page, id=page.name) for page in PAGES if fences(page, language)]


@pytest.fixture
def database(dsn, monkeypatch):
    """Have a process without a DSN use the test's database."""
    monkeypatch.setenv("DATABASE_URL", dsn)
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.mark.parametrize("page", with_blocks("python"))
async def test_python_on_a_page_runs(page, database, openai_server, langgraph_server):
    openai_server.responder = "It is on its way."
    async with get_client(url=langgraph_server.url, api_key=None) as client:
        names: dict[str, Any] = {
            "my_tool": my_tool,
            "client": client,
            "get_client": lambda **_: client,
        }
        names["thread_id"] = str(uuid4())
        for code in fences(page, "python"):
            await run(code.replace(SERVER, langgraph_server.url), names)


@pytest.mark.parametrize("page", with_blocks("sh"))
def test_the_shell_on_a_page_runs(page, dsn, tmp_path):
    lines = [line for code in fences(page, "sh") for line in code.splitlines()]
    environment = {
        **os.environ,  # noqa: TID251 - the tests' own
        "DATABASE_URL": dsn,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # noqa: TID251
    }
    for line in lines:
        if not line.strip() or NOT_HERE.match(line):
            continue
        done = subprocess.run(  # noqa: S602 - our own pages
            line,
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        asks_a_person = "--yes" in done.stderr
        assert done.returncode == 0 or asks_a_person, f"{line}\n{done.stdout}{done.stderr}"
