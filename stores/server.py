"""The checkpointer and the store that `langgraph.json` names: a server's state in our Postgres."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from everlong.stores.checkpoints import PooledSaver
from everlong.stores.database import open_database
from everlong.stores.postgres import Pool, PostgresStore, migrate, open_pool
from everlong.stores.settings import settings

OWN_NAMES = frozenset({"assistant_id", "graph_id", "run_id", "thread_id", "user_id"})
OWN_PREFIXES = ("__", "checkpoint_", "langgraph_")


class ServerSaver(PooledSaver):
    """The checkpointer for a server, which keeps runs' settings out of the checkpoints.

    The server copies a run's context into `configurable`, and that into the metadata of each
    checkpoint: a system prompt of 5 kB would be stored five times in every plain call.
    """

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint without what the server copied from the context."""
        given = config.get("configurable", {})
        copied = {name for name in given if not _is_own(name)} - set(config.get("metadata", {}))
        slim: RunnableConfig = {
            **config,
            "configurable": {name: given[name] for name in given.keys() - copied},
        }
        kept: Any = {name: value for name, value in metadata.items() if name not in copied}
        return await super().aput(slim, checkpoint, kept, new_versions)


def _is_own(name: str) -> bool:
    """Tell a name that LangGraph or the server reads."""
    return name in OWN_NAMES or name.startswith(OWN_PREFIXES)


@asynccontextmanager
async def checkpointer() -> AsyncGenerator[ServerSaver]:
    """Open the checkpointer; a server does so once for each of its event loops."""
    async with _pool() as pool:
        yield ServerSaver(pool)


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
