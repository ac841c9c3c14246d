"""The checkpointer and the store that `langgraph.json` names: a server's state in our Postgres."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from everlong.stores.database import open_database
from everlong.stores.postgres import Pool, PooledSaver, PostgresStore, migrate, open_pool
from everlong.stores.settings import settings


@asynccontextmanager
async def checkpointer() -> AsyncGenerator[PooledSaver]:
    """Open the checkpointer; a server does so once for each of its event loops."""
    async with _pool() as pool:
        yield PooledSaver(pool)


@asynccontextmanager
async def store() -> AsyncGenerator[PostgresStore]:
    """Open the store; a server does so once for each of its event loops."""
    async with _pool() as pool:
        yield PostgresStore(pool)


@asynccontextmanager
async def _pool() -> AsyncGenerator[Pool]:
    """Open a pool on the migrated database; the embedded server is held as long.

    Raises:
        DatabaseUnavailableError: Postgres cannot be reached.
        EmbeddedPostgresError: the embedded server cannot be started.
    """
    async with open_database() as dsn:
        await migrate(dsn)
        async with open_pool(dsn, size=settings().pool_size) as pool:
            yield pool
