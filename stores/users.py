"""Which users there are, some at a time: nobody reads a list of millions to find the next."""

from collections.abc import Collection
from typing import Any

from langgraph.store.base import BaseStore

from everlong.stores.namespaces import ROOT, label, raw
from everlong.stores.records import FIRST_LIMIT

NEXT = """
SELECT prefix FROM store WHERE prefix ~>~ %s AND prefix ~<~ %s ORDER BY prefix USING ~<~ LIMIT 1
"""
"""By bytes, as the store's own index on `prefix` sorts; so a user costs one look into it."""

SWEEP = ("everlong_upkeep",), "sweep"
"""Where it stands how far a sweep of all users is: by the id of a user, or of a thread."""


async def sweep_is_at(store: BaseStore, user_id: str, threads: Collection[str] = ()) -> bool:
    """Tell whether what says how far a sweep is names the user, or one of the threads."""
    item = await store.aget(*SWEEP)
    return item is not None and (
        item.value.get("user") == user_id or item.value.get("thread") in threads
    )


async def users_after(store: BaseStore, after: str, *, most: int) -> list[str]:
    """Return the next users with records after `after` (empty: the first), at most so many.

    The order is the store's own. Who comes or goes meanwhile is among them or not.
    """
    pool: Any = getattr(store, "conn", None)
    if pool is None:
        begin = label(after) if after else ""
        return [raw(one) for one in await _all_labels(store) if one > begin][:most]
    found: list[str] = []
    bound = f"{ROOT}.{label(after)}/" if after else f"{ROOT}."  # after `.` comes `/`
    async with pool.connection() as connection:
        while len(found) < most:
            cursor = await connection.execute(NEXT, (bound, f"{ROOT}/"))
            row = await cursor.fetchone()
            if row is None:
                break
            spelled = str(row["prefix"]).split(".")[1]
            found.append(raw(spelled))
            bound = f"{ROOT}.{spelled}/"
    return found


async def _all_labels(store: BaseStore) -> list[str]:
    limit = FIRST_LIMIT
    while True:
        found = await store.alist_namespaces(prefix=(ROOT,), max_depth=2, limit=limit)
        if len(found) < limit:
            return sorted({place[1] for place in found})
        limit *= 4
