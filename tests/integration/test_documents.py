"""What README and docs show in Python or SQL does what it says."""

import ast
import inspect
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph_sdk import get_client

from everlong.nodes.context import Context
from everlong.stores.postgres import open_stores
from everlong.stores.settings import settings
from markdown_blocks import ROOT, blocks_in, pages

ELSEWHERE = ("README.zh-CN.md", "composing.md", "tools.md", "aegra.md", "deploying.md")
"""Pages whose Python has tests of its own, or is that of another page."""
SET = "SELECT relname FROM pg_class WHERE relkind = 'r' AND reloptions IS NOT NULL"
SERVER = "http://127.0.0.1:2024"


@tool
def my_tool(order: str) -> str:
    """Look an order up."""
    return f"{order} is on its way."


async def run(code: str, names: dict[str, Any]) -> None:
    """Run a block as a person would at a prompt that can await."""
    compiled = compile(code, "block", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done = eval(compiled, names)  # noqa: S307 - our own pages
    if inspect.isawaitable(done):
        await done


def with_python() -> list[Any]:
    here = [page for page in pages() if page.name not in ELSEWHERE and blocks_in(page, "python")]
    return [pytest.param(page, id=page.name) for page in here]


@pytest.fixture
def database(dsn, monkeypatch):
    """Have a process without a DSN use the test's database."""
    monkeypatch.setenv("DATABASE_URL", dsn)
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.mark.parametrize("page", with_python())
async def test_python_on_a_page_runs(page, database, openai_server, langgraph_server):
    openai_server.responder = "It is on its way."
    async with get_client(url=langgraph_server.url, api_key=None) as client:
        names: dict[str, Any] = {
            "my_tool": my_tool,
            "client": client,
            "get_client": lambda **_: client,
        }
        names["thread_id"] = str(uuid4())
        for code in blocks_in(page, "python"):
            await run(code.replace(SERVER, langgraph_server.url), names)
    for one in names.values():
        if isinstance(one, Context) and isinstance(one.model, ChatOpenAI):
            await one.model.root_async_client.close()  # a program ends with its model


async def test_the_settings_of_the_tables_that_retention_shows_are_taken(dsn):
    async with open_stores(dsn):
        pass
    (statements,) = blocks_in(ROOT / "docs" / "retention.md", "sql")
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(statements)
        rows = await connection.execute(SET)
        assert len(await rows.fetchall()) == statements.count("ALTER TABLE") == 4
