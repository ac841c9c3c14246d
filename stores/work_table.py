"""Work records in a Postgres store: claimed and settled by one statement each (R50).

The clock is the database's, so workers whose clocks differ by minutes agree on who holds what.
"""

from dataclasses import dataclass
from typing import Any, cast

from langgraph.store.base import BaseStore
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Composed
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from everlong.stores.namespaces import raw
from everlong.stores.work import Work, work_of

Pool = AsyncConnectionPool[AsyncConnection[DictRow]]
AGAIN = {"status": "due", "tries": 0, "free_at": 0.0, "by": ""}
CLAIM_LOCK = 0x6576_6C77  # "evlw"

_NOW = SQL("extract(epoch FROM clock_timestamp())::float8")
_IS_WORK = SQL("split_part(prefix, '.', 3) = 'work'")
_MINE = SQL("(%(prefix)s::text IS NULL OR prefix = %(prefix)s)")
SET_UP = {
    "store_work": "CREATE INDEX CONCURRENTLY IF NOT EXISTS store_work"
    f" ON store ((value->>'status'), key) WHERE {_IS_WORK.as_string()}"
}
CLAIM = SQL("""
    WITH due AS (
        SELECT prefix, key, value, created_at FROM store
        WHERE {is_work} AND value->>'status' = 'due' AND {mine}),
    busy AS (
        SELECT prefix FROM due
        WHERE value->>'by' <> '' AND (value->>'free_at')::float8 > {now}),
    free AS (
        SELECT prefix, key FROM due
        WHERE (value->>'free_at')::float8 <= {now}
            AND prefix NOT IN (SELECT prefix FROM busy)
            AND (NOT (value->>'unnamed')::bool OR value->>'process' = %(process)s OR (%(has_model)s
                AND created_at < now() - make_interval(secs => %(own_seconds)s)))
        ORDER BY key LIMIT 1)
    UPDATE store SET updated_at = now(), value = store.value || jsonb_build_object(
        'by', %(by)s::text, 'tries', (store.value->>'tries')::int + 1,
        'free_at', {now} + %(seconds)s::float8)
    FROM free WHERE store.prefix = free.prefix AND store.key = free.key
    RETURNING store.prefix, store.key, store.value""").format(
    is_work=_IS_WORK, mine=_MINE, now=_NOW
)
"""The oldest record that is free, of a user of whom nobody is at another one."""
SETTLE = SQL("""
    UPDATE store SET updated_at = now(), value = value || %(change)s::jsonb
        || jsonb_build_object('free_at', {now} + %(seconds)s::float8)
    WHERE prefix = %(prefix)s AND key = %(key)s AND value->>'by' = %(by)s
    RETURNING key""").format(now=_NOW)
OPEN = SQL("""
    SELECT prefix, key, value - 'messages' AS value FROM store
    WHERE {is_work} AND value->>'status' IN ('due', 'failed') AND {mine}
        AND (%(process)s::text IS NULL OR value->>'process' = %(process)s)
    ORDER BY value->>'status', key LIMIT %(limit)s""").format(is_work=_IS_WORK, mine=_MINE)
RETRY = SQL("""
    UPDATE store SET updated_at = now(), value = value || %(change)s::jsonb
    WHERE {is_work} AND value->>'status' = 'failed' AND {mine}
    RETURNING key""").format(is_work=_IS_WORK, mine=_MINE)
SWEEP = SQL("""
    DELETE FROM store WHERE {is_work} AND value->>'status' = 'done'
        AND updated_at < now() - make_interval(secs => %(seconds)s)""").format(is_work=_IS_WORK)


@dataclass(frozen=True)
class WorkTable:
    """The records of one Postgres store."""

    pool: Pool

    async def claim(self, given: dict[str, Any]) -> Work | None:
        """Claim a record; claims are made one after the other, so no user is worked on twice."""
        async with self.pool.connection() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (CLAIM_LOCK,))
            rows = await _rows(connection, CLAIM, given)
        return _work(rows[0]) if rows else None

    async def settle(self, given: dict[str, Any]) -> bool:
        """Change a record while it is the caller's; return whether it was."""
        change = {"change": Jsonb(given["change"])}
        async with self.pool.connection() as connection:
            return bool(await _rows(connection, SETTLE, given | change))

    async def open(self, given: dict[str, Any]) -> list[Work]:
        """Return records that are not done."""
        async with self.pool.connection() as connection:
            return await open_in(connection, given)

    async def retry(self, given: dict[str, Any]) -> int:
        """Make records due that have failed; return how many."""
        async with self.pool.connection() as connection:
            change = {"change": Jsonb(AGAIN)}
            return len(await _rows(connection, RETRY, given | change))

    async def sweep(self, given: dict[str, Any]) -> None:
        """Remove records that have been done for long."""
        async with self.pool.connection() as connection:
            await connection.execute(SWEEP, given)


def table_of(store: BaseStore) -> WorkTable | None:
    """Return the records of a store that keeps them in Postgres, on a pool; None for others."""
    pool = getattr(store, "conn", None)
    return WorkTable(cast("Pool", pool)) if isinstance(pool, AsyncConnectionPool) else None


async def open_in(connection: AsyncConnection[Any], given: dict[str, Any]) -> list[Work]:
    """Return records that are not done, from one connection."""
    return [_work(row) for row in await _rows(connection, OPEN, given)]


async def _rows(
    connection: AsyncConnection[Any], statement: Composed, given: dict[str, Any]
) -> list[DictRow]:
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(statement, given)
        return await cursor.fetchall()


def _work(row: DictRow) -> Work:
    return work_of(raw(row["prefix"].split(".")[1]), row["key"], row["value"])
