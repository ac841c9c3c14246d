"""Open what a command works on, showing progress, and say where it is."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from langgraph.store.base import BaseStore

from everlong.graph.cli_settings import check_process
from everlong.graph.runtime import Agent, open_agent
from everlong.graph.terminal import waiting
from everlong.nodes.mcp_config import Given
from everlong.nodes.tool_paths import Tool, tools_at
from everlong.stores.database import open_database
from everlong.stores.dsn import place_of
from everlong.stores.embedded import default_home
from everlong.stores.postgres import Stores, open_stores
from everlong.stores.settings import settings

Tools = Sequence[Tool] | None
"""None: those that `EVERLONG_TOOLS` names."""


def where(dsn: str | None) -> str:
    """Say which database is used, without its secrets.

    Raises:
        SettingsError: the process's settings cannot be used.
        ValueError: the DSN cannot be read.
    """
    check_process()
    given = dsn or settings().database_url
    return place_of(given) if given else f"embedded Postgres in {default_home()}"


@asynccontextmanager
async def opened_store(dsn: str | None) -> AsyncGenerator[BaseStore]:
    """Yield the store with every user's records.

    Raises:
        ValueError: the DSN cannot be read.
        DatabaseUnavailableError: Postgres cannot be reached.
        EmbeddedPostgresError: the embedded server cannot be started.
    """
    async with opened_stores(dsn) as (_, stores):
        yield stores.store


@asynccontextmanager
async def opened_stores(dsn: str | None) -> AsyncGenerator[tuple[str, Stores]]:
    """Yield the DSN in force, and what is kept there.

    Raises:
        Exception: as `opened_store`.
    """
    async with AsyncExitStack() as stack:
        with waiting(f"Opening {where(dsn)}"):
            found = await stack.enter_async_context(open_database(dsn))
            stores = await stack.enter_async_context(open_stores(found, pool_size=2))
        yield found, stores


@asynccontextmanager
async def opened_agent(
    dsn: str | None, tools: Tools = (), mcp: Given | None = None
) -> AsyncGenerator[Agent]:
    """Yield the agent.

    Raises:
        ToolsError: tools or servers that are named cannot be had.
        Exception: as `opened_store`.
    """
    async with AsyncExitStack() as stack:
        with waiting(f"Opening {where(dsn)}"):
            found = await stack.enter_async_context(open_database(dsn))
            opening = open_agent(tools=tools, mcp=mcp, dsn=found)
            agent = await stack.enter_async_context(opening)
        yield agent


def tools_of(paths: str | None) -> Tools:
    """Return the tools that `--tools` names; without it, None.

    Raises:
        ToolsError: there are none.
    """
    return None if paths is None else tools_at(paths, "--tools")
