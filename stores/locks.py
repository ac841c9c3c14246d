"""One run of a thread at a time, across the processes that share a database."""

import asyncio
import hashlib
import logging
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import LiteralString, Self

import psycopg

log = logging.getLogger("everlong.postgres")

FIRST_WAIT_SECONDS = 0.02
LONGEST_WAIT_SECONDS = 0.5
WATCH_SECONDS = 0.2
"""Between two looks at the connection, while locks are held."""
GRACE_SECONDS = 1.0
"""Who has lost its connection waits so long before it asks: who held a lock has it again first."""
KEEPALIVE = """
SELECT set_config('tcp_keepalives_idle', '30', false),
    set_config('tcp_keepalives_interval', '10', false),
    set_config('tcp_keepalives_count', '3', false)
"""
"""A machine that is gone without a word frees its threads within a minute, not within two hours."""


def _key(thread_id: str) -> int:
    """Return the thread's advisory lock: 64 bits, signed."""
    digest = hashlib.blake2b(thread_id.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class ThreadLostError(TimeoutError):
    """Another run has got the thread while this one was at work."""


class ThreadLocks:
    """Locks by thread id: first within the process, then across processes by advisory locks.

    One connection of its own holds all locks of the process, so that a hundred running threads
    take no hundred connections. It must be a session: point it past a pgbouncer that pools
    transactions. Without a `dsn` the locks hold within the process only. A lost connection is
    noticed while locks are held, and they are taken again.
    """

    def __init__(self, dsn: str | None = None) -> None:
        self._dsn = dsn
        self._connection: psycopg.AsyncConnection | None = None
        self._connecting = asyncio.Lock()
        self._local: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: defaultdict[str, int] = defaultdict(int)
        self._held: dict[int, asyncio.Timeout] = {}
        """By lock, what ends its run."""
        self._watch: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Give all locks back."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
        if self._connection is not None:
            await self._connection.close()

    @asynccontextmanager
    async def hold(self, thread_id: str) -> AsyncGenerator[None]:
        """Wait for the thread's turn and hold it.

        Raises:
            ThreadLostError: the connection was lost, and another run got the thread meanwhile.
        """
        self._waiting[thread_id] += 1
        try:
            async with self._local[thread_id]:
                key = _key(thread_id)
                await self._take(key)
                try:
                    async with self._while_held(key, thread_id):
                        yield
                finally:
                    await self._give_back(key)
        finally:
            self._waiting[thread_id] -= 1
            if not self._waiting[thread_id]:
                del self._waiting[thread_id], self._local[thread_id]

    @asynccontextmanager
    async def _while_held(self, key: int, thread_id: str) -> AsyncGenerator[None]:
        """Cancel what is at work here when the lock is lost, and say why."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._held[key] = limit
                if self._dsn is not None and (self._watch is None or self._watch.done()):
                    self._watch = asyncio.create_task(self._keep())
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            msg = (
                f"thread {thread_id!r}: expected to hold it until the run ends; the connection to "
                "Postgres was lost, and another run got the thread. Read the thread, and send "
                "again what is not in it."
            )
            raise ThreadLostError(msg) from error

    async def _keep(self) -> None:
        """Look at the connection while locks are held, so that a lost one is soon replaced."""
        while self._held:
            with suppress(psycopg.Error):  # Postgres is away; the next look may succeed
                await self._ask("SELECT pg_backend_pid() > %s", 0)
            await asyncio.sleep(WATCH_SECONDS)

    async def _take(self, key: int) -> None:
        if self._dsn is None:
            return
        wait = FIRST_WAIT_SECONDS
        while not await self._try(key):
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT_SECONDS)

    async def _try(self, key: int) -> bool:
        """Try once; a lock that was won while the caller was cancelled is given back."""
        trial = asyncio.ensure_future(self._ask("SELECT pg_try_advisory_lock(%s)", key))
        try:
            return await asyncio.shield(trial)
        except asyncio.CancelledError:
            if await trial:
                await self._give_back(key)
            raise

    async def _give_back(self, key: int) -> None:
        self._held.pop(key, None)
        if self._dsn is None:
            return
        with suppress(psycopg.OperationalError):  # a lost connection has given it back
            await asyncio.shield(self._ask("SELECT pg_advisory_unlock(%s)", key))

    async def _ask(self, query: LiteralString, key: int) -> bool:
        """Ask on the shared connection; once more on a new one where the server has dropped it."""
        for last in (False, True):
            connection = await self._connected()
            try:
                cursor = await connection.execute(query, (key,))
                row = await cursor.fetchone()
            except psycopg.OperationalError:
                if last or not connection.broken:
                    raise
            else:
                return bool(row and row[0])
        return False

    async def _connected(self) -> psycopg.AsyncConnection:
        """Return the connection; after a loss, a new one that holds the running threads' locks."""
        async with self._connecting:
            if self._connection is None or self._connection.broken or self._connection.closed:
                connection = await psycopg.AsyncConnection.connect(
                    self._dsn or "",
                    autocommit=True,
                    prepare_threshold=None,
                    connect_timeout=5,
                    tcp_user_timeout=30_000,
                )
                await connection.execute(KEEPALIVE)
                is_first, self._connection = self._connection is None, connection
                for key in list(self._held):
                    await self._take_again(connection, key)
                if not is_first:
                    await asyncio.sleep(GRACE_SECONDS)
            return self._connection

    async def _take_again(self, connection: psycopg.AsyncConnection, key: int) -> None:
        """Take a lock on a new connection; where another one has it, end the run that held it."""
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (key,))
        row = await cursor.fetchone()
        if row != (True,) and (limit := self._held.pop(key, None)):
            log.error("The connection to Postgres was lost, and with it a thread; its run ends")
            limit.reschedule(0)
