"""The checkpointer and the store on one pool of Postgres connections."""

import asyncio
import logging
import select
import time
from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import psycopg
from langgraph.store.base import GetOp, Op, PutOp, Result
from langgraph.store.postgres import AsyncPostgresStore
from langgraph.store.postgres.base import PostgresIndexConfig
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from everlong.stores import day_places, embedding, indexing, pruned_saver, word_table, work_table
from everlong.stores.checkpoints import PooledSaver
from everlong.stores.dsn import unavailable
from everlong.stores.locks import ThreadLocks
from everlong.stores.settings import settings
from everlong.stores.text import clean, clean_text
from everlong.stores.word_table import WordTable

log = logging.getLogger("everlong.postgres")

Pool = AsyncConnectionPool[psycopg.AsyncConnection[DictRow]]
Index = PostgresIndexConfig
"""How LangGraph's own index by meaning is configured: `embed` and `dims`."""
MIGRATION_LOCK = 0x6576_6C67  # "evlg"
MIGRATION_WAIT_SECONDS = 120
IDLE_SECONDS = 5.0
LAST_CHECK = "everlong_last_check"
POOL_SECONDS = 10.0
"""How long a caller waits for a connection."""
UNEMBED = """DELETE FROM store_vectors USING unnest(%s::text[], %s::text[]) AS gone (prefix, key)
    WHERE store_vectors.prefix = gone.prefix AND store_vectors.key = gone.key"""
STATE_OF_INDEX = """SELECT relkind = 'p' AS is_partitioned, to_regclass(%s) IS NOT NULL AS is_there
    FROM pg_class WHERE oid = %s::regclass"""
EXACT = "DROP INDEX IF EXISTS store_vectors_embedding_idx"
"""One user's vectors are a small part: an index of all finds too few of them, or none."""
RECONNECT_SECONDS = 2.0
"""How long the pool's wait between two attempts may grow; then it begins anew."""


class PostgresStore(AsyncPostgresStore):
    """A store that cleans what Postgres cannot hold, so that no put fails its neighbours."""

    def __init__(self, pool: Pool, *, index: Index | None = None) -> None:
        """Work on a pool, whose tables `migrate` has made for the same index."""
        super().__init__(cast("Any", pool), index=index)
        self.words = WordTable(pool, partial(indexing.texts_of, self))
        """Ranks items by their words."""

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the operations in one round trip and one transaction."""
        cleaned = [_cleaned(op) for op in ops]
        if self.index_config:
            await self._drop_vectors(cleaned)
        return await super().abatch(cleaned)

    async def _drop_vectors(self, ops: Iterable[Op]) -> None:
        """Remove what was embedded of records that are written unembedded: they may say less."""
        places = [
            (".".join(op.namespace), op.key)
            for op in ops
            if isinstance(op, PutOp) and op.value is not None and op.index is False
        ]
        if places:
            async with self._cursor() as cursor:
                await cursor.execute(
                    UNEMBED, [list(column) for column in zip(*places, strict=True)]
                )


def _cleaned(op: Op) -> Op:
    if isinstance(op, PutOp | GetOp):
        place = tuple(clean_text(name) for name in op.namespace)
        op = op._replace(namespace=place, key=clean_text(op.key))
    if isinstance(op, PutOp) and op.value is not None:
        op = op._replace(value=clean(op.value))
    return op


@dataclass(frozen=True, kw_only=True)
class Stores:
    """What a process keeps open on one database."""

    saver: PooledSaver
    store: PostgresStore
    locks: ThreadLocks


async def _connect(dsn: str) -> psycopg.AsyncConnection[DictRow]:
    try:
        return await psycopg.AsyncConnection[DictRow].connect(
            dsn, autocommit=True, prepare_threshold=None, row_factory=dict_row, connect_timeout=5
        )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:  # the latter: a bad DSN
        raise unavailable(dsn, error) from error


async def migrate(dsn: str, *, index: Index | None = None) -> None:
    """Bring the tables up to date, once however many processes start together.

    Polls for the lock: a session that waits inside `pg_advisory_lock` holds a snapshot, for which
    CREATE INDEX CONCURRENTLY in the holder's session would wait in turn.

    Raises:
        DatabaseUnavailableError: no connection, or another process migrates for too long.
        ValueError: the DSN cannot be read; the text does not repeat it.
    """
    async with await _connect(dsn) as connection:
        for _ in range(MIGRATION_WAIT_SECONDS * 10):
            cursor = await connection.execute(
                "SELECT pg_try_advisory_lock(%s) AS held", (MIGRATION_LOCK,)
            )
            row = await cursor.fetchone()
            if row and row["held"]:
                break
            await asyncio.sleep(0.1)
        else:
            raise unavailable(dsn, TimeoutError("another process is migrating and does not end"))
        try:
            await PooledSaver(cast("Any", connection)).setup()
            await AsyncPostgresStore(connection, index=index).setup()
            if index:
                await connection.execute(EXACT)
            await word_table.set_up(connection)
            for name, statement in (*work_table.SET_UP.items(), *day_places.SET_UP.items()):
                await _set_up_index(connection, "store", name, statement)
            for name, statement in pruned_saver.SET_UP.items():
                await _set_up_index(connection, "checkpoints", name, statement)
        finally:
            await connection.execute("SELECT pg_advisory_unlock(%s)", (MIGRATION_LOCK,))


async def _set_up_index(
    connection: psycopg.AsyncConnection[DictRow], table: str, name: str, statement: str
) -> None:
    """Make an index that is missing; a partitioned table takes none concurrently."""
    row = await (await connection.execute(STATE_OF_INDEX, (name, table))).fetchone()
    if row and row["is_there"]:
        return
    if row and row["is_partitioned"]:
        statement = statement.replace(" CONCURRENTLY", "")
    await connection.execute(cast("Any", statement))


async def _check(connection: psycopg.AsyncConnection[DictRow]) -> None:
    """Refuse a connection that the server has closed.

    A server that goes away closes or speaks; a silent connection that was just in use is alive,
    and is spared the round trip. One that was idle may be cut off without a sign.
    """
    now = time.monotonic()
    idle = now - getattr(connection, LAST_CHECK, 0.0)
    if idle > IDLE_SECONDS or select.select([connection.fileno()], [], [], 0)[0]:
        await AsyncConnectionPool.check_connection(cast("Any", connection))
    setattr(connection, LAST_CHECK, now)


async def _begin_anew(pool: Pool) -> None:
    """Try again to connect, without a longer wait, where somebody waits for a connection."""
    if pool.get_stats().get("requests_waiting"):
        await pool.check()  # grows the pool by one


@asynccontextmanager
async def open_pool(dsn: str, *, size: int) -> AsyncGenerator[Pool]:
    """Open a pool whose connections survive a restart of the server and pgbouncer.

    However long the server was away, it is used again within seconds of its return: the wait
    between two attempts does not go on doubling.

    Raises:
        DatabaseUnavailableError: no connection within ten seconds.
        ValueError: the DSN cannot be read.
    """
    pool: Pool = AsyncConnectionPool(
        dsn,
        connection_class=psycopg.AsyncConnection[DictRow],
        open=False,
        min_size=2,
        max_size=size,
        timeout=POOL_SECONDS,
        max_idle=300,
        max_lifetime=1_800,
        reconnect_timeout=RECONNECT_SECONDS,
        reconnect_failed=_begin_anew,
        check=_check,
        kwargs={
            "autocommit": True,
            "prepare_threshold": None,
            "row_factory": dict_row,
            "connect_timeout": 5,
            "keepalives_idle": 30,
        },
    )
    try:
        await pool.open(wait=True, timeout=POOL_SECONDS)
    except PoolTimeout as error:
        await pool.close()
        raise unavailable(dsn, error) from error
    try:
        yield pool
    finally:
        await pool.close()


@asynccontextmanager
async def open_stores(
    dsn: str,
    *,
    pool_size: int = 20,
    lone_nodes: Collection[str] = (),
    kept: int | None = None,
    index: Index | None = None,
) -> AsyncGenerator[Stores]:
    """Migrate, then open the checkpointer, the store and the thread locks.

    `lone_nodes` as in `PooledSaver`: the nodes of a graph that has the database's threads alone;
    `kept`, too, else as the process's settings say.
    `index` is the store's index by meaning; without it the one that the settings ask for, if any.

    Raises:
        DatabaseUnavailableError: Postgres cannot be reached.
    """
    index = index or embedding.configured()
    await migrate(dsn, index=index)
    async with open_pool(dsn, size=pool_size) as pool, ThreadLocks(dsn) as locks:
        kept = settings().checkpoints_kept if kept is None else kept
        saver = PooledSaver(pool, lone_nodes=lone_nodes, kept=kept)
        yield Stores(saver=saver, store=PostgresStore(pool, index=index), locks=locks)
