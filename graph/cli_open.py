"""Open what a command works on, showing progress, and say where it is."""

import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from langchain_core.tools import BaseTool
from langgraph.store.base import BaseStore

from everlong.graph.cli_settings import check_process
from everlong.graph.runtime import Agent, open_agent
from everlong.graph.terminal import waiting
from everlong.nodes.errors import InvalidInputError
from everlong.stores.database import open_database
from everlong.stores.dsn import place_of
from everlong.stores.embedded import default_home
from everlong.stores.postgres import Stores, open_stores
from everlong.stores.settings import settings

Tools = Sequence[BaseTool | Callable[..., Any]]


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
async def opened_agent(dsn: str | None, tools: Tools = ()) -> AsyncGenerator[Agent]:
    """Yield the agent.

    Raises:
        Exception: as `opened_store`.
    """
    async with AsyncExitStack() as stack:
        with waiting(f"Opening {where(dsn)}"):
            found = await stack.enter_async_context(open_database(dsn))
            agent = await stack.enter_async_context(open_agent(tools=tools, dsn=found))
        yield agent


def tools_of(place: str | None) -> Tools:
    """Return the tools that `module:name` names, looked for in the working folder, too.

    Raises:
        InvalidInputError: there are none.
    """
    if place is None:
        return ()
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        msg = f"`--tools`: expected MODULE:NAME such as shop.tools:TOOLS; got {place!r} ({error})"
        raise InvalidInputError(msg) from error
    return cast("Tools", found if isinstance(found, Sequence) else (found,))
