"""The turns of `stores/turns.py` among the processes that share a Postgres store."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import cast
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

WAIT = "20s"
"""For the turn: whoever holds one for longer hangs, and what waits for it is tried again later."""
TAKE = "SELECT set_config('lock_timeout', %s, true), pg_advisory_xact_lock(%s)"
Pool = AsyncConnectionPool[AsyncConnection]

_ROOM: WeakKeyDictionary[Pool, asyncio.Semaphore] = WeakKeyDictionary()


@asynccontextmanager
async def held(store: BaseStore | None, name: Sequence[str]) -> AsyncGenerator[None]:
    """Hold the turn of a name by an advisory lock, as long as a transaction; killed, it is free.

    At most half of the pool's connections hold or wait for one: what is done in a turn needs the
    others.

    Raises:
        LockNotAvailable: it did not come in time.
    """
    pool = getattr(store, "conn", None)
    if not isinstance(pool, AsyncConnectionPool):
        yield
        return
    pool = cast("Pool", pool)
    room = _ROOM.setdefault(pool, asyncio.Semaphore(max(pool.max_size // 2, 1)))
    async with room, pool.connection() as connection, connection.transaction():
        await connection.execute(TAKE, (WAIT, _number(name)))
        yield


def _number(name: Sequence[str]) -> int:
    """Return the number of a name's lock: 64 bits, signed."""
    spelled = json.dumps(["turn", *name]).encode()
    digest = hashlib.blake2b(spelled, digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
