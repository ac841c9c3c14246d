"""Make aegra's tables and ours, and its assistants, once, before any server starts.

Servers that start together on an empty database would make them against each other, and fail. The
graphs are those of the configuration that is given, else of `aegra.json` beside this file. Where no
users are known it ends with an error: a server that cannot load its rules takes everybody for one.
"""  # noqa: INP001 - a script

import asyncio
import sys
from pathlib import Path

from aegra_api.core.database import db_manager
from aegra_api.core.migrations import run_migrations
from aegra_api.services.langgraph_service import LangGraphService

from everlong.graph.auth import keys
from everlong.stores.postgres import migrate
from everlong.stores.settings import settings


async def fill(config: str) -> None:
    """Make our tables, and an assistant for each graph."""
    await migrate(settings().database_url)
    await db_manager.initialize()
    try:
        await LangGraphService(config).initialize()
    finally:
        await db_manager.close()


if keys() is None:
    sys.exit("expected users to be known; set EVERLONG_AUTH__AUDIENCE and one of the keys")
given = sys.argv[1:] or [str(Path(__file__).with_name("aegra.json"))]
run_migrations()
asyncio.run(fill(given[0]))
