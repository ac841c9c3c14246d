"""Files that nothing names any more: texts that were moved out of messages, and long messages.

A file's path comes from its text, so the same text is one file, whoever names it. Who stores a text
that is there already makes the file new again, unless that was within the last day: so between the
look at all who may name it and the removal nobody comes to name it unseen.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Any

from langgraph.store.base import BaseStore, SearchItem

from everlong.stores import files
from everlong.stores.namespaces import space
from everlong.stores.records import all_items
from everlong.stores.sweeping import namespaces_of

PATH = re.compile(r"(?:large_tool_results|transcripts)/[0-9a-f]{32}\.(?:txt|json)")
HOLDING = frozenset({"files", "file_parts"})
REMOVE = """
WITH gone AS (
    DELETE FROM store WHERE prefix = %(files)s AND key = %(path)s AND updated_at < %(before)s
    RETURNING key
), parts AS (
    DELETE FROM store WHERE prefix = %(parts)s AND updated_at < %(before)s
    AND EXISTS (SELECT FROM gone)
)
SELECT count(*) AS count FROM gone
"""
"""Where the file is new by now, nothing goes."""

Paths = Callable[[str], Awaitable[Collection[str] | None]]
"""Returns what a thread's states name; None where they are elsewhere and nothing tells."""


async def remove_unnamed(store: BaseStore, user_id: str, *, before: Any, paths: Paths) -> int:
    """Remove the user's files last written before an instant that nothing names; return how many.

    What may name them: the user's records, and the states of the threads that they come from. A
    file stays where nothing tells what one of these names.
    """
    found = await all_items(store, space(user_id, "files"))
    old = [one for one in found if one.updated_at < before and PATH.fullmatch(one.key)]
    if not old:
        return 0
    named = await _named(store, user_id)
    untold: set[str] = set()
    for thread_id in sorted(_threads(old)):
        if (found_there := await paths(thread_id)) is None:
            untold.add(thread_id)
        else:
            named.update(found_there)
    named |= await _named_in_files(store, user_id, named)
    gone = [one for one in old if one.key not in named and not _threads([one]) & untold]
    return sum([await _remove(store, user_id, one, before) for one in gone])


async def _named(store: BaseStore, user_id: str) -> set[str]:
    named: set[str] = set()
    for place in await namespaces_of(store, user_id):
        if place[2] not in HOLDING:
            items = [one for one in await all_items(store, place) if one.namespace == place]
            named |= await asyncio.to_thread(paths_in, [one.value for one in items])
    return named


async def _named_in_files(store: BaseStore, user_id: str, named: Collection[str]) -> set[str]:
    """Return what long messages name, which lie in files themselves."""
    found: set[str] = set()
    for path in named:
        if path.endswith(".json") and (text := await files.read_text(store, user_id, path)):
            found |= await asyncio.to_thread(paths_in, [text])
    return found


def paths_in(values: Iterable[Any]) -> set[str]:
    """Return the paths of such files that values name."""
    return {path for value in values for path in PATH.findall(str(value))}


def _threads(old: Iterable[SearchItem]) -> set[str]:
    origins = [one.value["origin"] for one in old]
    several = {str(thread) for origin in origins for thread in origin.get("threads", ())}
    return several | {str(origin["thread"]) for origin in origins if origin.get("thread")}


async def _remove(store: BaseStore, user_id: str, file: SearchItem, before: Any) -> bool:
    pool: Any = getattr(store, "conn", None)
    if pool is None:
        now = await store.aget(file.namespace, file.key)
        is_old = now is not None and now.updated_at < before
        return is_old and await files.remove(store, user_id, file.key)
    parts = space(user_id, "file_parts", files.digest_of(file.key))
    given = {"files": ".".join(file.namespace), "parts": ".".join(parts)}
    async with pool.connection() as connection:
        cursor = await connection.execute(REMOVE, given | {"path": file.key, "before": before})
        row = await cursor.fetchone()
    return bool(row["count"])
