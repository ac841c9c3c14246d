"""Threads on a Postgres checkpointer that is not ours: whose turn it is, and what has begun.

A server that brings its own checkpointer may start several runs of one thread at once, and start a
run again whose process has died. Both are told apart in the checkpointer's own database.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.conninfo import make_conninfo

from everlong.stores.checkpoints import PooledSaver
from everlong.stores.locks import ThreadLocks

NEWEST = 200
"""Checkpoints in which a run is looked for: some forty calls."""
HAS_BEGUN = """
SELECT EXISTS (
    SELECT FROM (
        SELECT metadata FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = ''
        ORDER BY checkpoint_id DESC LIMIT %s
    ) AS newest
    WHERE metadata->>'run_id' = %s
) AS is_so"""


@dataclass
class _Shared:
    """The locks beside one checkpointer, while somebody holds one or waits for it."""

    locks: ThreadLocks
    users: int = 0


_shared: dict[Any, _Shared] = {}
"""By the checkpointer's pool, or its connection."""


@dataclass(frozen=True)
class PlainSaver:
    """A checkpointer of LangGraph's own, and what it does not see to."""

    saver: AsyncPostgresSaver

    @asynccontextmanager
    async def turn(self, thread_id: str, *, most_seconds: float) -> AsyncGenerator[None]:
        """Wait for the thread's turn and hold it, on no connection that the runs need.

        Raises:
            TimeoutError: another run has held it for all of `most_seconds`.
        """
        async with self._locks() as locks, AsyncExitStack() as held:
            async with asyncio.timeout(most_seconds):
                await held.enter_async_context(locks.hold(thread_id))
            yield

    async def has_begun(self, thread_id: str, run_id: str) -> bool:
        """Tell whether a run of this id has written to the thread not long ago."""
        async with _cursor(self.saver) as cur:
            await cur.execute(HAS_BEGUN, (thread_id, NEWEST, run_id))
            row = await cur.fetchone()
        return bool(row and row["is_so"])

    @asynccontextmanager
    async def _locks(self) -> AsyncGenerator[ThreadLocks]:
        """Give the locks that all runs on the checkpointer share; the last run closes them.

        So nothing is left open when a server closes its pool.
        """
        place = self.saver.conn
        shared = _shared.get(place)
        if shared is None:
            shared = _shared.setdefault(place, _Shared(ThreadLocks(await self._dsn())))
        shared.users += 1
        try:
            yield shared.locks
        finally:
            shared.users -= 1
            if not shared.users:
                _shared.pop(place, None)
                await shared.locks.close()

    async def _dsn(self) -> str:
        """Return where the checkpointer's connections go, however it was told."""
        async with _cursor(self.saver) as cur:
            info = cur.connection.info
        return make_conninfo(info.dsn, password=info.password)


def plain_saver(saver: object) -> PlainSaver | None:
    """Return a Postgres checkpointer that is not ours; None for any other."""
    if isinstance(saver, PooledSaver) or not isinstance(saver, AsyncPostgresSaver):
        return None
    return PlainSaver(saver)


def _cursor(saver: AsyncPostgresSaver) -> Any:
    """Open a cursor, whether the checkpointer has a pool or one connection."""
    return saver._cursor()  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - it knows which
