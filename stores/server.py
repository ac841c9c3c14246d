"""The checkpointer and the store that `langgraph.json` names: a server's state in our Postgres."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig

from everlong.stores import embedding
from everlong.stores.checkpoints import PooledSaver
from everlong.stores.database import open_database
from everlong.stores.namespaces import OWNER
from everlong.stores.postgres import Index, Pool, PostgresStore, migrate, open_pool
from everlong.stores.settings import settings

OWN_NAMES = frozenset({"assistant_id", "graph_id", "run_id", "thread_id", "user_id"})
OWN_PREFIXES = ("__", "checkpoint_", "langgraph_")
"""What LangGraph or the server reads; anything else in `configurable` is a setting of the run."""
OF_OTHERS = """
SELECT coalesce(nullif(checkpoint->'channel_values'->>'owner', ''), metadata->>%(owner)s, '')
    <> %(user)s AS is_so
FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = ''
ORDER BY checkpoint_id DESC LIMIT 1"""
BY_RUN = "SELECT DISTINCT thread_id FROM checkpoints WHERE metadata->>'run_id' = %s"


class ServerSaver(PooledSaver):
    """A server's checkpointer, which is asked whose threads there are."""

    async def is_of_others(self, thread_id: str, user_id: str) -> bool:
        """Tell whether there are checkpoints under the id, and the newest is not the user's."""
        given = {"owner": OWNER, "user": user_id, "thread": thread_id}
        async with self._cursor() as cur:
            await cur.execute(OF_OTHERS, given)
            row = await cur.fetchone()
        return bool(row and row["is_so"])

    async def threads_of_run(self, run_id: str) -> list[str]:
        """Return the ids of the threads that a run has written to."""
        async with self._cursor() as cur:
            await cur.execute(BY_RUN, (run_id,))
            return [str(row["thread_id"]) for row in await cur.fetchall()]


_savers: dict[asyncio.AbstractEventLoop, ServerSaver] = {}
_stores: dict[asyncio.AbstractEventLoop, PostgresStore] = {}


def opened_saver() -> ServerSaver | None:
    """Return the checkpointer that the server holds open for this event loop."""
    return _savers.get(asyncio.get_running_loop())


def opened_store() -> PostgresStore | None:
    """Return the store that the server holds open for this event loop."""
    return _stores.get(asyncio.get_running_loop())


@asynccontextmanager
async def checkpointer() -> AsyncGenerator[ServerSaver]:
    """Open the checkpointer; a server does so once for each of its event loops."""
    async with _pool() as pool:
        kept = settings().checkpoints_kept
        saver = ServerSaver(pool, left_out=_copied_from_context, kept=kept)
        with _known(_savers, saver):
            yield saver


def _copied_from_context(config: RunnableConfig) -> list[str]:
    """Return the names of what the server copied from a run's context into `configurable`.

    What is there goes into the metadata of each checkpoint: a system prompt of 5 kB would be
    stored five times in every plain call.
    """
    given = config.get("configurable", {})
    return [name for name in given if name not in OWN_NAMES and not name.startswith(OWN_PREFIXES)]


@asynccontextmanager
async def store() -> AsyncGenerator[PostgresStore]:
    """Open the store; a server does so once for each of its event loops."""
    index = embedding.configured()
    async with _pool(index) as pool:
        opened = PostgresStore(pool, index=index)
        with _known(_stores, opened):
            yield opened


@contextmanager
def _known(places: dict[asyncio.AbstractEventLoop, Any], opened: Any) -> Generator[None]:
    loop = asyncio.get_running_loop()
    places[loop] = opened
    try:
        yield
    finally:
        places.pop(loop, None)


@asynccontextmanager
async def _pool(index: Index | None = None) -> AsyncGenerator[Pool]:
    """Open a pool on the migrated database; the embedded server is held as long.

    Raises:
        DatabaseUnavailableError: Postgres cannot be reached.
        EmbeddedPostgresError: the embedded server cannot be started.
    """
    async with open_database() as dsn:
        await migrate(dsn, index=index)
        async with open_pool(dsn, size=settings().pool_size) as pool:
            yield pool
