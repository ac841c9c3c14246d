"""What leaves a user's records with age and number, beside the ledger and the transcripts.

A step that is done again, also after a crash, is harmless.
"""

import time
from collections.abc import Collection

from langgraph.store.base import BaseStore, PutOp, SearchItem

from everlong.stores import ledger_archive, memory
from everlong.stores.compactions import PARTS
from everlong.stores.namespaces import label, space
from everlong.stores.records import all_items, put_all
from everlong.stores.retention import is_before

KEPT_RECEIPTS = 500
"""Of one thread; a younger one may have to go where a thread compacts that often."""
KEPT_VERSIONS = 100
"""Of one user's MEMORY.md."""
SETTLED_SECONDS = 86_400.0
"""Before results of calls go that no call waits for any more: their thread's state is stored."""


async def remove_receipts(
    store: BaseStore,
    user_id: str,
    thread_id: str,
    *,
    needed: Collection[str],
    instant: str,
    days: int,
) -> int:
    """Remove a thread's records of compactions that are too old or too many; return how many.

    Not those whose ids are `needed`: their compaction can be undone. `days` 0: none is too old.
    """
    place = space(user_id, "compactions", thread_id)
    found = await all_items(store, place)
    heads = sorted((one for one in found if one.namespace == place), key=lambda one: one.key)
    many = max(len(heads) - KEPT_RECEIPTS, 0)
    gone = [
        head
        for number, head in enumerate(heads)
        if str(head.value["receipt"]["id"]) not in needed
        and (number < many or (days and is_before(head.value["receipt"]["at"], instant, days)))
    ]
    keys = {head.key for head in gone}
    parts = [one for one in found if one.namespace == (*place, PARTS) and _head(one) in keys]
    await put_all(store, [PutOp(one.namespace, one.key, None) for one in (*gone, *parts)])
    return len(gone)


async def remove_finished_calls(
    store: BaseStore, user_id: str, thread_id: str, *, waiting: Collection[str], days: int = 0
) -> int:
    """Remove results that were kept while a person was asked; return how many.

    Not those of `waiting`, the ids of assistant messages with calls that have no result yet; and
    none that is younger than so many `days`.
    """
    place = space(user_id, "finished_calls", thread_id)
    still = {label(one) for one in waiting if one}
    before = time.time() - max(SETTLED_SECONDS, days * 86_400.0)
    gone = [
        one
        for one in await all_items(store, place)
        if one.namespace[-1] not in still and one.updated_at.timestamp() < before
    ]
    await put_all(store, [PutOp(one.namespace, one.key, None) for one in gone])
    return len(gone)


async def remove_versions(store: BaseStore, user_id: str) -> int:
    """Remove the oldest versions of MEMORY.md where there are too many; return how many."""
    known = await memory.versions(store, user_id)
    place = space(user_id, "memory", "versions")
    gone = [one.version for one in known[KEPT_VERSIONS:]]
    await put_all(store, [PutOp(place, version, None) for version in gone])
    return len(gone)


async def remove_archived(
    store: BaseStore, user_id: str, *, instant: str, days: int, kept: int = 0
) -> int:
    """Remove archived entries of the ledger: older than so many days, or beyond the newest `kept`.

    Return how many. Only those that MEMORY.md stands on as it is. `days` 0: none is too old; `kept`
    0: none is one too many.
    """
    document = await memory.read(store, user_id) if days or kept else None
    if document is None:
        return 0
    line = (*document.line, document.version)
    entries = await ledger_archive.entries(store, user_id)
    many = max(len(entries) - kept, 0) if kept else 0
    gone = [
        entry
        for number, entry in enumerate(entries)
        if entry.consumed_by in line
        and (number < many or (days and is_before(entry.at, instant, days)))
    ]
    place = space(user_id, ledger_archive.KIND)
    await put_all(store, [PutOp(place, entry.key, None) for entry in gone])
    return len(gone)


def _head(part: SearchItem) -> str:
    """Return the key of the record that a part belongs to."""
    return part.key.rpartition(".")[0]
