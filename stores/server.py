"""The checkpointer and the store that `langgraph.json` names: a server's state in our Postgres."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from langchain_core.runnables import RunnableConfig

from everlong.stores import embedding
from everlong.stores.checkpoints import PooledSaver
from everlong.stores.database import open_database
from everlong.stores.postgres import Index, Pool, PostgresStore, migrate, open_pool
from everlong.stores.settings import settings

OWN_NAMES = frozenset({"assistant_id", "graph_id", "run_id", "thread_id", "user_id"})
OWN_PREFIXES = ("__", "checkpoint_", "langgraph_")
"""What LangGraph or the server reads; anything else in `configurable` is a setting of the run."""


@asynccontextmanager
async def checkpointer() -> AsyncGenerator[PooledSaver]:
    """Open the checkpointer; a server does so once for each of its event loops."""
    async with _pool() as pool:
        yield PooledSaver(pool, left_out=_copied_from_context)


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
        yield PostgresStore(pool, index=index)


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
