"""Open what a command works on, showing progress, and say where it is."""

import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from langchain_core.tools import BaseTool
from langgraph.store.base import BaseStore

from everlong.graph.terminal import Waiting
from everlong.nodes.errors import InvalidInputError
from everlong.stores.database import open_database
from everlong.stores.diagnosis import place_of
from everlong.stores.embedded import default_home
from everlong.stores.postgres import open_stores
from everlong.stores.settings import settings

Tools = Sequence[BaseTool | Callable[..., Any]]


def is_embedded(dsn: str | None) -> bool:
    """Tell whether nobody names a Postgres, so that the embedded one is used."""
    return not (dsn or settings().database_url)


def where(dsn: str | None) -> str:
    """Say which database is used, without its secrets.

    Raises:
        ValueError: the DSN cannot be read.
    """
    given = dsn or settings().database_url
    return place_of(given) if given else f"embedded Postgres in {default_home()}"


@asynccontextmanager
async def opened_database(dsn: str | None) -> AsyncGenerator[str]:
    """Yield the DSN; the embedded server is started where no other is named.

    Raises:
        ValueError: the DSN cannot be read.
        EmbeddedPostgresError: the embedded server cannot be started.
    """
    starting = Waiting()
    starting.begin(f"Opening {where(dsn)}")
    try:
        async with open_database(dsn) as found:
            starting.end()
            yield found
    finally:
        starting.end()


@asynccontextmanager
async def opened_store(dsn: str | None) -> AsyncGenerator[BaseStore]:
    """Yield the store with every user's records.

    Raises:
        DatabaseUnavailableError: Postgres cannot be reached.
    """
    async with opened_database(dsn) as found, open_stores(found, pool_size=2) as stores:
        yield stores.store


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
