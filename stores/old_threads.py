"""Which of a user's threads a sweep has to look at: of most, nothing is old.

To look at a thread is to load its state, which costs more than all else in a sweep.
"""

from dataclasses import dataclass
from typing import Any

from langgraph.store.base import BaseStore

from everlong.stores.namespaces import key, raw, space
from everlong.stores.record_retention import KEPT_RECEIPTS
from everlong.stores.retention import is_before
from everlong.stores.sweeping import namespaces_of

WAITING = "finished_calls"
KINDS = (WAITING, "transcripts", "compactions")
OLDEST = """
SELECT given.prefix, first.at, swept.value->>'at' AS swept, given.most > 0 AND EXISTS (
    SELECT FROM store WHERE store.prefix = given.prefix OFFSET given.most
) AS are_many
FROM unnest(%(prefixes)s::text[], %(mosts)s::bigint[], %(names)s::text[])
    AS given (prefix, most, name)
CROSS JOIN LATERAL (
    SELECT coalesce(value->>'at', value->'receipt'->>'at') AS at FROM store
    WHERE store.prefix = given.prefix ORDER BY key LIMIT 1
) AS first
LEFT JOIN store AS swept ON swept.prefix = %(retention)s AND swept.key = given.name
"""
"""Of transcripts and receipts, whose keys sort by place and by time: each costs one look."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is too old or one too many; 0: nothing."""

    days: int = 0
    messages: int = 0
    """Of a transcript."""
    again_days: int = 0
    """For so long a thread is left alone that was looked at and in which something had to stay."""


async def to_look_at(store: BaseStore, user_id: str, limits: Limits, *, instant: str) -> list[str]:
    """Return the ids of the user's threads in which something may have to go, sorted."""
    kinds: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for _, _, kind, *rest in await namespaces_of(store, user_id):
        if rest and kind in kinds:
            kinds[kind].add(raw(rest[0]))
    pool: Any = getattr(store, "conn", None)
    if pool is None:
        return sorted({one for threads in kinds.values() for one in threads})
    waiting = kinds.pop(WAITING)
    mosts = {"transcripts": limits.messages, "compactions": KEPT_RECEIPTS}
    places = [(kind, thread_id) for kind in kinds for thread_id in sorted(kinds[kind])]
    given = {
        "prefixes": [".".join(space(user_id, *place)) for place in places],
        "mosts": [mosts[kind] for kind, _ in places],
        "names": [key(thread_id) for _, thread_id in places],
        "retention": ".".join(space(user_id, "retention")),
    }
    async with pool.connection() as connection:
        rows = await (await connection.execute(OLDEST, given)).fetchall()
    due = {str(row["prefix"]) for row in rows if _is_due(row, limits, instant)}
    found = zip(places, given["prefixes"], strict=True)
    return sorted(waiting.union(thread for (_, thread), prefix in found if prefix in due))


def _is_due(row: dict[str, Any], limits: Limits, instant: str) -> bool:
    is_old = bool(limits.days) and is_before(row["at"], instant, limits.days)
    if not is_old and not row["are_many"]:
        return False
    again, swept = limits.again_days, row["swept"]
    if not (again and swept):
        return True
    return is_before(swept, instant, again) or is_before(instant, swept, 0)  # a clock was ahead
