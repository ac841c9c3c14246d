"""Search every table of a database for a user (R49): the proof that nothing is left."""

from collections.abc import Sequence
from dataclasses import dataclass
from json import dumps
from typing import Any, LiteralString

import ormsgpack
import psycopg
from psycopg import sql
from psycopg.rows import DictRow, dict_row

from everlong.stores.namespaces import ROOT, label

COLUMNS = """
SELECT c.table_schema AS schema, c.table_name AS name, c.column_name AS column, c.data_type AS type
FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
WHERE t.table_type = 'BASE TABLE' AND c.table_schema NOT IN ('pg_catalog', 'information_schema')
ORDER BY 1, 2, 3"""
HOLDS: dict[str, LiteralString] = {
    "bytea": "EXISTS (SELECT FROM unnest(%(bytes)s::bytea[]) n WHERE position(n IN {}) > 0)",
    "json": "EXISTS (SELECT FROM unnest(%(quoted)s::text[]) n WHERE strpos({}::text, n) > 0)",
    "text": "({0}::text = ANY(%(whole)s) OR starts_with({0}::text, %(below)s))",
}
OTHERS_RECORD: LiteralString = """
(starts_with(prefix, 'users.') AND prefix <> %(space)s AND NOT starts_with(prefix, %(below)s))"""
OTHERS_THREAD: LiteralString = """
EXISTS (SELECT FROM checkpoints o WHERE o.thread_id = t.thread_id AND coalesce(
    o.checkpoint->'channel_values'->>'owner', o.metadata->>'everlong_owner', '')
    NOT IN ('', %(user)s))"""
Connection = psycopg.AsyncConnection[DictRow]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What a table holds of a user."""

    table: str
    rows: int
    """Under the user's namespace, of the user's threads, or with the id as a value.

    Not what other users' records and threads say: there an id may be a word like any other.
    """
    is_ours: bool
    """Made by everlong, or by LangGraph for it."""


async def traces(dsn: str, user_id: str, threads: Sequence[str] = ()) -> list[Trace]:
    """Return for every table of the database how much it holds of the user and the threads."""
    connection: Connection = await psycopg.AsyncConnection[DictRow].connect(
        dsn, autocommit=True, prepare_threshold=None, connect_timeout=5, row_factory=dict_row
    )
    async with connection:
        tables: dict[tuple[str, str], dict[str, str]] = {}
        for row in await (await connection.execute(COLUMNS)).fetchall():
            columns = tables.setdefault((row["schema"], row["name"]), {})
            columns[row["column"]] = row["type"]
        given = _looked_for(user_id, threads)
        has_owners = any(name == "checkpoints" for _, name in tables)
        return [
            Trace(
                table=place[1],
                rows=await _count(connection, place, columns, given, has_owners),
                is_ours=_is_ours(place[1], columns),
            )
            for place, columns in tables.items()
        ]


def _is_ours(name: str, columns: dict[str, str]) -> bool:
    known = ("checkpoint", "store", "forgotten_users")
    return name.startswith(known) or "prefix" in columns or "checkpoint_ns" in columns


async def _count(
    connection: Connection,
    place: tuple[str, str],
    columns: dict[str, str],
    given: dict[str, Any],
    has_owners: bool,
) -> int:
    """Return how many rows of a table hold any of the ids in any column, each row once."""
    tests = [
        sql.SQL(HOLDS[kind if kind == "bytea" else "json" if kind.startswith("json") else "text"])
        .format(sql.SQL("t.") + sql.Identifier(name))
        for name, kind in columns.items()
    ]  # fmt: skip
    others: list[LiteralString] = []
    if "prefix" in columns:
        others.append(OTHERS_RECORD)
    if "thread_id" in columns and has_owners:
        others.append(OTHERS_THREAD)
    query = sql.SQL("SELECT count(*) AS n FROM {} t WHERE ({})").format(
        sql.Identifier(*place), sql.SQL(" OR ").join(tests)
    )
    for other in others:
        query += sql.SQL(" AND NOT ") + sql.SQL(other)
    row = await (await connection.execute(query, given)).fetchone()
    return int(row["n"]) if row else 0


def _looked_for(user_id: str, threads: Sequence[str]) -> dict[str, Any]:
    """Return the ids in each way that they may be written: in a column, in JSON, in a blob."""
    ids = [user_id, *threads]
    own = f"{ROOT}.{label(user_id)}"
    quoted = [dumps(one, ensure_ascii=False) for one in ids]
    packed = [ormsgpack.packb(one) for one in ids]
    return {
        "user": user_id,
        "whole": [*ids, *map(label, ids), own],
        "space": own,
        "below": f"{own}.",
        "quoted": quoted,
        "bytes": [*packed, *(one.encode() for one in quoted)],
    }
