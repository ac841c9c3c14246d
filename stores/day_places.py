"""On which line of its day's page each fact of the ledger stands.

Postgres is asked for the keys alone: a search wants a number, and a day may hold hundreds of facts.
"""

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, cast

from langgraph.store.base import BaseStore

from everlong.stores import ledger_archive
from everlong.stores.entries import Fact, entry_of, line_numbers
from everlong.stores.ledger import standing
from everlong.stores.namespaces import space

if TYPE_CHECKING:  # another store needs no driver
    from psycopg import AsyncConnection
    from psycopg.rows import DictRow
    from psycopg_pool import AsyncConnectionPool

    Pool = AsyncConnectionPool[AsyncConnection[DictRow]]

SET_UP = {
    name: f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON store ({columns}) WHERE {held}"
    for name, columns, held in (
        ("store_day", "(value->'day'), prefix text_pattern_ops", "value->'day' IS NOT NULL"),
        ("store_same", "(value->'same'), prefix text_pattern_ops", "value->'same' IS NOT NULL"),
        ("store_saved", "prefix text_pattern_ops", "value->'promoted' = 'true'::jsonb"),
    )
}
"""Indexes for the filters by which the ledger is read, spelled as the store spells them."""
KEYS = """SELECT prefix, key, value->>'day' AS day, value->>'is' AS verdict, ARRAY(
        SELECT fact->>'key' FROM jsonb_array_elements(value->'facts') AS fact) AS facts,
        CASE WHEN value->'facts' IS NULL THEN value END AS whole
    FROM store WHERE value->'day' = ANY(%s::jsonb[]) AND prefix = ANY(%s)"""
"""`whole`: the entry, where its facts were not kept one by one yet."""


async def places(store: BaseStore, user_id: str, days: Collection[str]) -> dict[str, int]:
    """Return for each fact of these days its line, by key; judged ones have none."""
    found: dict[str, int] = {}
    for by_entry in (await _keys(store, user_id, days)).values():
        found |= line_numbers(by_entry[key] for key in sorted(by_entry))
    return found


async def _keys(
    store: BaseStore, user_id: str, days: Collection[str]
) -> dict[str, dict[str, list[str]]]:
    """Return the keys of the days' facts, by day and entry."""
    pool = getattr(store, "conn", None)
    if hasattr(pool, "getconn"):
        return await _from_postgres(cast("Pool", pool), user_id, days)
    read = {day: await ledger_archive.with_archived(store, user_id, day) for day in days}
    return {
        day: {entry.key: [fact.key for fact in entry.facts] for entry in some}
        for day, some in read.items()
    }


async def _from_postgres(
    pool: "Pool", user_id: str, days: Collection[str]
) -> dict[str, dict[str, list[str]]]:
    from psycopg.rows import dict_row  # noqa: PLC0415 - as above

    archive, entries, verdicts = (
        ".".join(space(user_id, *kind))
        for kind in ((ledger_archive.KIND,), ("ledger", "entries"), ("ledger", "verdicts"))
    )
    given = ([json.dumps(day) for day in days], [archive, entries, verdicts])
    async with pool.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
        rows = await (await cursor.execute(KEYS, given)).fetchall()
    hidden = {row["key"] for row in rows if row["prefix"] == verdicts and _hides(row)}
    found: dict[str, dict[str, list[str]]] = {}
    for place in (archive, entries):  # of one that is in both, the ledger's counts
        for row in rows:
            if row["prefix"] == place:
                facts = row["facts"]
                if row["whole"] is not None:
                    facts = [fact.key for fact in entry_of(row["whole"]).facts]
                if place == entries and not hidden.isdisjoint(facts):
                    facts = [key for key in facts if key not in hidden]
                found.setdefault(row["day"], {})[row["key"]] = facts
    return found


def _hides(row: "DictRow") -> bool:
    """Tell a verdict that takes its fact out."""
    fact = Fact("", key=row["key"])
    return not list(standing([fact], {fact.key: {"is": row["verdict"], "on": ""}}))
