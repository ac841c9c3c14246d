"""What leaves the ledger and the transcripts with time (R45), a bounded step at a time.

Time is the caller's instant. A step that is done again, also after a crash, is harmless.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile

from langgraph.store.base import BaseStore, PutOp, SearchItem

from everlong.stores import files, ledger, ledger_archive, memory
from everlong.stores.entries import moment
from everlong.stores.namespaces import key, space
from everlong.stores.records import all_items, put_all

STEP = 200
"""Most entries or messages that one step looks at."""
KEPT_ENTRIES = 10_000
"""Of a user's ledger; of more, the oldest that MEMORY.md has taken up go to the archive."""
MOST_PASSED = 50
"""So many messages that have to stay are passed by; where there are more, a step ends."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a step came to."""

    removed: int = 0
    """Entries that were moved, or messages that were removed."""
    is_last: bool = True
    """Nothing more is due; else the next step goes on."""


@dataclass(frozen=True, kw_only=True)
class Needed:
    """What of a thread's transcript has to stay, however old it is."""

    message_ids: Collection[str] = ()
    """What the history holds, and what its compaction took out of it."""
    ranges: Sequence[tuple[int, int]] = ()
    """First and last numbers of what a flush has still to read."""
    receipts: Collection[str] = ()
    """Ids of the compactions that can be undone."""
    count: int = 0
    """How many messages the transcript has had; 0: not known, then none is one too many."""

    def holds(self, number: int, message_id: str) -> bool:
        """Tell whether a message has to stay."""
        return message_id in self.message_ids or any(a <= number <= b for a, b in self.ranges)

    def with_branch(self, other: "Needed") -> "Needed":
        """Return this and what a branch of the thread needs; the count is the thread's own."""
        return Needed(
            message_ids={*self.message_ids, *other.message_ids},
            ranges=[*self.ranges, *other.ranges],
            receipts={*self.receipts, *other.receipts},
            count=self.count,
        )


async def archive_old_entries(
    store: BaseStore, user_id: str, *, instant: str, days: int, most: int = STEP
) -> Step:
    """Move old entries, or too many, into the archive: those that MEMORY.md has taken up.

    An entry with a fact that waits for a review stays, too. `days` 0: nothing moves.
    """
    returns = await ledger_archive.returns(store, user_id)
    document = await memory.read(store, user_id)
    if not days or document is None:
        return Step()
    line = (*document.line, document.version)
    entries = await ledger.entries(store, user_id)
    due = [
        entry
        for number, entry in enumerate(entries, KEPT_ENTRIES - len(entries))
        if entry.consumed_by in line
        and not entry.doubtful
        and (number < 0 or is_before(entry.at, instant, days))
    ]
    under = document.written_at
    if not due or not await ledger_archive.move(
        store, user_id, due[:most], under=under, since=returns
    ):
        return Step()
    return Step(removed=len(due[:most]), is_last=len(due) <= most)


async def remove_old_messages(  # noqa: PLR0913 - whose, what, when, how much
    store: BaseStore,
    user_id: str,
    thread_id: str,
    needed: Needed,
    *,
    instant: str,
    days: int,
    kept: int = 0,
    most: int = STEP,
    noted: bool = True,
) -> Step:
    """Remove a thread's messages that are too old, or too many, from its transcript, oldest first.

    That is older than so many `days`, or before the newest `kept`; 0: none. Where the next step
    begins is kept with the user's records; and when this was, where it is to be `noted` though
    nothing is due.
    """
    beyond = needed.count - kept if kept else 0

    def is_due(item: SearchItem) -> bool:
        return _number(item) < beyond or bool(days and is_before(item.value["at"], instant, days))

    if not (days or kept):
        return Step()
    first = await _first(store, user_id, thread_id)
    if not (first or noted) and not await _begins_with(store, user_id, thread_id, is_due):
        return Step()
    passed = await _passed(store, user_id, thread_id, first, most)
    window = await _window(store, user_id, thread_id, first, most)
    old = list(takewhile(is_due, window))
    due = [item for item in passed if is_due(item)] + old
    gone = [item for item in due if not needed.holds(_number(item), item.value["message_id"])]
    await put_all(store, [PutOp(item.namespace, item.key, None) for item in gone])
    await _remove_files(store, user_id, gone)
    stay = [item for item in due if item not in gone]
    is_last = len(stay) > MOST_PASSED or len(old) < len(window) or not window
    if len(stay) > MOST_PASSED:
        first = _number(stay[MOST_PASSED])
    elif window:
        first = _number(window[len(old)]) if len(old) < len(window) else _number(window[-1]) + 1
    if passed or window or noted:
        first = first if passed or window else 0
        await _keep(store, user_id, thread_id, first, instant if is_last else "")
    else:  # nothing is left to have a place in
        await store.adelete(space(user_id, "retention"), key(thread_id))
    return Step(removed=len(gone), is_last=is_last)


async def swept_at(store: BaseStore, user_id: str, thread_id: str) -> str:
    """Return when a thread's transcript was last swept to the end; empty where it was not."""
    item = await store.aget(space(user_id, "retention"), key(thread_id))
    return str(item.value["at"]) if item else ""


async def _first(store: BaseStore, user_id: str, thread_id: str) -> int:
    item = await store.aget(space(user_id, "retention"), key(thread_id))
    return int(item.value["first"]) if item else 0


async def _keep(store: BaseStore, user_id: str, thread_id: str, first: int, at: str) -> None:
    value = {"first": first, "at": at}
    await put_all(store, [PutOp(space(user_id, "retention"), key(thread_id), value, index=False)])


async def _begins_with(
    store: BaseStore, user_id: str, thread_id: str, is_due: Callable[[SearchItem], bool]
) -> bool:
    """Tell by its first message alone whether a thread has one that is due."""
    found = await _window(store, user_id, thread_id, 0, 1)
    return not found or is_due(found[0])


async def _passed(
    store: BaseStore, user_id: str, thread_id: str, first: int, most: int
) -> list[SearchItem]:
    """Return what earlier steps passed by, and what a branch of the thread has added there."""
    place, before = space(user_id, "transcripts", thread_id), {"$lt": f"{first:08d}"}
    limit = most + MOST_PASSED
    found = await store.asearch(place, filter={"number": before}, limit=limit) if first else []
    return sorted(found, key=lambda item: item.key)


async def _window(
    store: BaseStore, user_id: str, thread_id: str, first: int, most: int
) -> list[SearchItem]:
    """Return the next messages, in order; numbers may be missing."""
    place = space(user_id, "transcripts", thread_id)
    after = {"$gte": f"{first:08d}"}
    near = {"number": after | {"$lt": f"{first + most:08d}"}}
    found = await all_items(store, place, matching=near)
    found = found or await all_items(store, place, matching={"number": after})
    return sorted(found, key=lambda item: item.key)[:most]


async def _remove_files(store: BaseStore, user_id: str, gone: Iterable[SearchItem]) -> None:
    """Remove the files of long messages, where no other record of the user's names them."""
    own = space(user_id, "files")
    for path in {item.value["path"] for item in gone if item.value["path"]}:
        naming = await store.asearch(own[:-1], filter={"path": path}, limit=2)
        if all(item.namespace == own for item in naming):
            await files.remove(store, user_id, path)


def _number(item: SearchItem) -> int:
    return int(item.value["number"])


def is_before(at: str, instant: str, days: int) -> bool:
    """Tell what was so many days before an instant."""
    return moment(at) < moment(instant) - timedelta(days=days)
