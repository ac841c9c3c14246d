"""What each attempt to compact a thread came to: receipts (R18, R61, R62).

An item per attempt, whose key sorts by time. What a receipt lists without bound, the ids of the
messages that it replaced, lies in parts of its own, so that no value grows near a megabyte. The
parts are written first: a receipt that can be read is whole.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from everlong.stores import transcripts
from everlong.stores.entries import moment
from everlong.stores.namespaces import space
from everlong.stores.records import all_items, put_all
from everlong.stores.text import clean

MESSAGE_IDS = "message_ids"
"""The ids of the messages that a compaction replaced; a receipt without any has no such field."""
BEGUN = "begun"
"""Outcome of a receipt whose compaction was ready and has not been seen in the thread's state.

It stays so only where the process ended in between, or the call was lost: then it may or may not
have come about, which the thread's own `compaction` channel tells.
"""
PART_CHARS = 200_000
PARTS = "parts"


async def record(
    store: BaseStore, user_id: str, thread_id: str, receipt: Mapping[str, Any]
) -> None:
    """Keep the receipt of an attempt; the same attempt again takes the place of the first.

    The same is who has the same `id` and the same `at` (when its call began: ISO 8601, UTC).

    Raises:
        ValueError: `id` or `at` is missing, or `at` is no instant.
    """
    name, place = _key(receipt), space(user_id, "compactions", thread_id)
    parts = _in_parts(clean(list(cast("Sequence[str]", receipt.get(MESSAGE_IDS, ())))))
    puts = [
        PutOp((*place, PARTS), f"{name}.{number:06d}", {"ids": ids}, index=False)
        for number, ids in enumerate(parts)
    ]
    head = {field: value for field, value in receipt.items() if field != MESSAGE_IDS}
    value = {"receipt": head, PARTS: len(parts)}
    await put_all(store, [*puts, PutOp(place, name, clean(value), index=False)], at_once=5)


async def complete(
    store: BaseStore, user_id: str, thread_id: str, receipt: Mapping[str, Any]
) -> None:
    """Say of an attempt that its outcome is in the thread's state; record it where it is missing.

    What is recorded already and `receipt` does not name stays. A receipt that says so already is
    not written again.
    """
    place = space(user_id, "compactions", thread_id)
    item = await store.aget(place, _key(receipt))
    if item is None:
        await record(store, user_id, thread_id, receipt)
    elif item.value["receipt"]["outcome"] != receipt["outcome"]:
        value = item.value | {"receipt": item.value["receipt"] | dict(receipt)}
        await put_all(store, [PutOp(place, item.key, clean(value), index=False)])


async def read(
    store: BaseStore, user_id: str, thread_id: str, *, limit: int | None = None
) -> list[dict[str, Any]]:
    """Return the thread's receipts, oldest first: all of them, or the newest `limit`."""
    items = await _items(store, user_id, thread_id)
    chosen = items if limit is None else items[len(items) - min(limit, len(items)) :]
    return [await _whole(store, user_id, thread_id, item) for item in chosen]


async def find(
    store: BaseStore, user_id: str, thread_id: str, compaction_id: str
) -> dict[str, Any] | None:
    """Return the receipt of this id, or of the only id that begins so; None without one.

    Raises:
        LookupError: more than one id begins so.
    """
    items = await _items(store, user_id, thread_id)
    by_id = {str(item.value["receipt"]["id"]): item for item in items}
    if (exact := by_id.get(compaction_id)) is not None:
        return await _whole(store, user_id, thread_id, exact)
    found = [one for one in by_id if compaction_id and one.startswith(compaction_id)]
    if len(found) > 1:
        msg = f"expected more of the compaction's id than {compaction_id!r}; {found} begin so"
        raise LookupError(msg)
    return await _whole(store, user_id, thread_id, by_id[found[0]]) if found else None


async def originals(
    store: BaseStore, user_id: str, thread_id: str, receipt: Mapping[str, Any]
) -> list[transcripts.Entry]:
    """Return the transcript's entries that a compaction took out of the history, in order.

    Its own only: an earlier summary that it merged stands for what the earlier receipt names, and
    another branch of the thread may have used the same numbers.

    Raises:
        LookupError: the file of a long message is gone.
    """
    ids = set(cast("Sequence[str]", receipt.get(MESSAGE_IDS, ())))
    ranges = cast("Sequence[tuple[int, int]]", receipt.get("transcript", ()))
    found: list[transcripts.Entry] = []
    for first, last in ranges:
        entries = await transcripts.read_between(store, user_id, thread_id, first, last)
        found += [entry for entry in entries if not ids or entry.message_id in ids]
    return found


def _key(receipt: Mapping[str, Any]) -> str:
    """Spell a key that sorts by time, then by the attempts of the thread."""
    missing = [name for name in ("id", "at", "outcome") if not receipt.get(name)]
    if missing:
        msg = f"expected a receipt with `id`, `at` and `outcome`; {missing} missing in {receipt!r}"
        raise ValueError(msg)
    at = moment(str(receipt["at"]))
    return f"{at:%Y%m%dT%H%M%S%fZ}-{int(receipt.get('number', 0)):08d}-{receipt['id']}"


def _in_parts(ids: Sequence[str]) -> list[list[str]]:
    """Split ids into lists that each fit a value."""
    parts: list[list[str]] = []
    room = 0
    for one in ids:
        size = len(json.dumps(one)) + 2
        if size > room or not parts:
            parts.append([])
            room = PART_CHARS
        parts[-1].append(one)
        room -= size
    return parts


async def _items(store: BaseStore, user_id: str, thread_id: str) -> list[Item]:
    """Return the heads of the thread's receipts, oldest first."""
    place = space(user_id, "compactions", thread_id)
    found = [item for item in await all_items(store, place) if item.namespace == place]
    return sorted(found, key=lambda item: item.key)


async def _whole(store: BaseStore, user_id: str, thread_id: str, item: Item) -> dict[str, Any]:
    place = (*space(user_id, "compactions", thread_id), PARTS)
    count = int(item.value[PARTS])
    gets = [GetOp(place, f"{item.key}.{number:06d}") for number in range(count)]
    held = cast("list[Item | None]", await store.abatch(gets)) if gets else []
    ids = [one for part in held if part is not None for one in part.value["ids"]]
    return dict(item.value["receipt"]) | ({MESSAGE_IDS: ids} if count else {})
