"""The archive of the ledger: entries that became part of MEMORY.md long ago (R45).

They are shown with their day and found by a search, after all else; what every call reads, the
ledger, stays short. All of them are in the document: where it no longer says what they say, after
it was removed or an earlier version was restored, they go back to the ledger.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from everlong.stores import ledger
from everlong.stores.entries import Entry, entry_of, moment, value_of
from everlong.stores.namespaces import space
from everlong.stores.records import all_items, put_all
from everlong.stores.text import clean

KIND = "ledger_archive"


async def entries(store: BaseStore, user_id: str, day: str | None = None) -> list[Entry]:
    """Return the archived entries, of one day or all, oldest first."""
    found = await _items(store, user_id, {"day": day} if day is not None else None)
    return [entry for entry, _ in found]


async def with_archived(store: BaseStore, user_id: str, day: str | None = None) -> list[Entry]:
    """Return all entries, in the ledger or the archive, oldest first; each once."""
    archived = {entry.key: entry for entry in await entries(store, user_id, day)}
    found = archived | {entry.key: entry for entry in await ledger.entries(store, user_id, day)}
    return [found[key] for key in sorted(found)]


async def entry(store: BaseStore, user_id: str, key: str) -> Entry | None:
    """Return the entry of this key, in the ledger or the archive; None where it is gone."""
    places = space(user_id, "ledger", "entries"), space(user_id, KIND)
    found = await store.abatch([GetOp(place, key) for place in places])
    values = [one.value for one in found if isinstance(one, Item)]
    return entry_of(values[0]) if values else None


async def move(
    store: BaseStore, user_id: str, old: Iterable[Entry], *, under: str, since: int
) -> bool:
    """Move entries into the archive; return False where another run had some brought back.

    `under` is when the document was written that they are part of; `since` what `returns` said
    before it was read: where that has changed, the document may say something else by now. Doing
    it again, also after a crash between, is harmless.
    """
    moved = list(old)
    await put_all(store, [put_of(user_id, entry, under=under) for entry in moved])
    if await returns(store, user_id) == since:
        places = [space(user_id, "ledger", kind) for kind in ("entries", "consumed")]
        await put_all(store, [PutOp(one, entry.key, None) for one in places for entry in moved])
    if await returns(store, user_id) == since:
        return True
    held = {entry.key for entry in await with_archived(store, user_id)}
    await _put_back(store, user_id, [entry for entry in moved if entry.key not in held])
    return False


def put_of(user_id: str, entry: Entry, *, under: str) -> PutOp:
    """Return the put of an archived entry; without what is forgotten, it replaces the first."""
    value = value_of(entry) | {"consumed_by": entry.consumed_by, "under": under}
    return PutOp(space(user_id, KIND), entry.key, clean(value), index=["text"])


async def bring_back(
    store: BaseStore,
    user_id: str,
    *,
    keys: Collection[str] | None = None,
    unless_in: Collection[str] = (),
    unless_before: str = "",
) -> int:
    """Move entries back into the ledger, as they were; return how many.

    All of them, or those of `keys`; not those that a version in `unless_in` took up, nor those
    that were archived under a document written before `unless_before`.
    """
    if keys is None:
        await _note_return(store, user_id)
    chosen: list[Entry] = []
    for entry, under in await _items(store, user_id, None):
        wanted = keys is None or entry.key in keys
        before = bool(unless_before) and moment(under) <= moment(unless_before)
        if wanted and entry.consumed_by not in unless_in and not before:
            chosen.append(entry)
    await _put_back(store, user_id, chosen)
    return len(chosen)


async def _put_back(store: BaseStore, user_id: str, back: Iterable[Entry]) -> None:
    for entry in back:  # the mark first: an entry without it would count as new
        marks = ledger.mark_consumed(user_id, [entry], entry.consumed_by)
        gone = PutOp(space(user_id, KIND), entry.key, None)
        await put_all(store, [*marks, ledger.put_of(user_id, entry), gone])


async def returns(store: BaseStore, user_id: str) -> int:
    """Return how often the archive was gone through for a document that says something else."""
    item = await store.aget(*_returns_place(user_id))
    return int(item.value["count"]) if item else 0


async def _note_return(store: BaseStore, user_id: str) -> None:
    value = {"count": await returns(store, user_id) + 1}
    await put_all(store, [PutOp(*_returns_place(user_id), value, index=False)])


def _returns_place(user_id: str) -> tuple[tuple[str, ...], str]:
    return space(user_id, "retention", "ledger"), "returns"


async def _items(
    store: BaseStore, user_id: str, matching: dict[str, Any] | None
) -> list[tuple[Entry, str]]:
    found = await all_items(store, space(user_id, KIND), matching=matching)
    return [
        (replace(entry_of(one.value), consumed_by=one.value["consumed_by"]), one.value["under"])
        for one in sorted(found, key=lambda item: item.key)
    ]
