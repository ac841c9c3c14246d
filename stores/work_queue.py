"""Who does which work (R50): records are claimed for a while, then done, tried again or given up.

On Postgres a claim is one compare-and-swap; a plain store's records are claimed within the process.
A user's records are done one after the other.
"""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langgraph.store.base import BaseStore, PutOp

from everlong.stores import tombstones
from everlong.stores.namespaces import ROOT, raw, space
from everlong.stores.records import FIRST_LIMIT, all_items, put_all
from everlong.stores.text import clean_text
from everlong.stores.tombstones import UserForgottenError
from everlong.stores.turns import alone
from everlong.stores.work import KIND, Work, process, value_of, wake, works_of

if TYPE_CHECKING:
    from everlong.stores.work_table import WorkTable

LEASE_SECONDS = 60.0
"""How long a claim holds without being renewed: what a killed worker's records wait."""
PAUSES_SECONDS = (5.0, 30.0, 120.0, 600.0, 1_800.0, 3_600.0, 7_200.0)
"""Before the second try and those that follow; after the last one a record has failed."""
MOST_TRIES = len(PAUSES_SECONDS) + 1
OWN_SECONDS = 120.0
"""So long a record whose model has no name is left to the process that holds the model."""
KEPT_SECONDS = 86_400.0
"""How long a record is remembered when it is done, so that nobody writes it again."""
MOST_LISTED = 1_000
MOST_REASON_CHARS = 300
FLUSHED: dict[str, Any] = {"ids": [], "places": [], "messages": []}
DONE: dict[str, Any] = FLUSHED | {"status": "done", "by": "", "reason": "", "settings": {}}


@dataclass(frozen=True, kw_only=True)
class Worker:
    """Somebody who does records of a store."""

    store: BaseStore
    name: str
    has_model: bool = False
    """There is a model for records whose own has no name."""
    lease_seconds: float = LEASE_SECONDS


def worker_on(store: BaseStore, *, has_model: bool = False, lease_seconds: float = 0) -> Worker:
    """Return a worker with a name of its own."""
    lease = lease_seconds or LEASE_SECONDS
    return Worker(
        store=store,
        name=f"{process()}-{uuid4().hex[:8]}",
        has_model=has_model,
        lease_seconds=lease,
    )


async def claim(worker: Worker, user_id: str | None = None) -> Work | None:
    """Claim the oldest record that is free, of one user or of all; None where none is.

    Nobody else gets it while the claim is renewed.
    """
    if table := _table(worker.store):
        return await table.claim(
            {
                "by": worker.name,
                "seconds": worker.lease_seconds,
                "prefix": _prefix(user_id),
                "process": process(),
                "has_model": worker.has_model,
                "own_seconds": OWN_SECONDS,
            }
        )
    return await _claim_plain(worker, user_id)


async def renew(worker: Worker, work: Work) -> bool:
    """Hold a claim for longer; False where it is not the worker's any more."""
    return await _settle(worker, work, {}, seconds=worker.lease_seconds)


async def flushed(worker: Worker, work: Work) -> bool:
    """Note that nothing of a record is left to flush, so that no later try does it again."""
    return await _settle(worker, work, FLUSHED, seconds=worker.lease_seconds)


async def done(worker: Worker, work: Work) -> bool:
    """Note that a record is done; return whether it was still the worker's."""
    settled = await _settle(worker, work, DONE)
    wake()
    return settled


async def failed(worker: Worker, work: Work, reason: str) -> Work:
    """Note that a try has failed; return the record, which is tried again or has failed for good.

    What the user had forgotten is struck out of the reason, which may quote what was said.

    Raises:
        LookupError: the record is not the worker's any more.
    """
    stones = await tombstones.load(worker.store, work.user_id)
    reason = stones.without(clean_text(" ".join(reason.split())))[:MOST_REASON_CHARS]
    over = work.tries >= MOST_TRIES
    pause = 0.0 if over else PAUSES_SECONDS[max(work.tries, 1) - 1]
    change = {"status": "failed" if over else "due", "by": "", "reason": reason}
    if not await _settle(worker, work, change, seconds=pause):
        msg = f"expected the record {work.key} of {work.user_id!r} to be ours; it is not any more"
        raise LookupError(msg)
    wake()
    return replace(work, status="failed" if over else "due", reason=reason, by="", free_at=pause)


async def release(worker: Worker, work: Work) -> None:
    """Give a record back untried."""
    await _settle(worker, work, {"by": "", "tries": max(work.tries - 1, 0)})
    wake()


async def open_records(
    store: BaseStore, user_id: str | None = None, *, of_process: str | None = None
) -> list[Work]:
    """Return the records that are due, then those that have failed, oldest first; at most 1,000.

    Without the messages that they hold.
    """
    if table := _table(store):
        given = {"prefix": _prefix(user_id), "process": of_process, "limit": MOST_LISTED}
        return await table.open(given)
    found = [one for one in await _all(store, user_id) if one.status != "done"]
    mine = [one for one in found if of_process in (None, one.process)]
    listed = sorted(mine, key=lambda one: (one.status, one.key))[:MOST_LISTED]
    return [replace(one, messages=()) for one in listed]


async def retry_failed(store: BaseStore, user_id: str | None = None) -> int:
    """Make the records due that have failed for good; return how many."""
    if table := _table(store):
        return await table.retry({"prefix": _prefix(user_id)})
    async with alone(KIND):
        given_up = [one for one in await _all(store, user_id) if one.status == "failed"]
        for one in given_up:
            again = replace(one, status="due", tries=0, free_at=0.0, by="")
            await _put(store, one, value_of(again))
    return len(given_up)


async def sweep(store: BaseStore) -> None:
    """Forget the records that were done a day ago."""
    if table := _table(store):
        return await table.sweep({"seconds": KEPT_SECONDS})
    for one in await _all(store, None):
        if one.status == "done" and one.free_at < time.time() - KEPT_SECONDS:
            await store.adelete(space(one.user_id, KIND), one.key)
    return None


def _table(store: BaseStore) -> "WorkTable | None":
    """Return the records of a store that has connections of its own."""
    if getattr(store, "conn", None) is None:
        return None
    from everlong.stores.work_table import table_of  # noqa: PLC0415 - Postgres' driver, with it

    return table_of(store)


async def _claim_plain(worker: Worker, user_id: str | None) -> Work | None:
    async with alone(KIND):
        found = await _all(worker.store, user_id)
        busy = {one.user_id for one in found if one.by and one.free_at > time.time()}
        free = [one for one in found if one.user_id not in busy and _is_free(worker, one)]
        for oldest in sorted(free, key=lambda one: one.key):
            until = time.time() + worker.lease_seconds
            claimed = replace(oldest, by=worker.name, tries=oldest.tries + 1, free_at=until)
            if await _put(worker.store, claimed, value_of(claimed)):
                return claimed
    return None


async def _settle(
    worker: Worker, work: Work, change: dict[str, Any], *, seconds: float = 0.0
) -> bool:
    """Change a record while it is the worker's; return whether it was."""
    if table := _table(worker.store):
        given = {"change": change, "seconds": seconds, "prefix": _prefix(work.user_id)}
        return await table.settle(given | {"key": work.key, "by": worker.name})
    async with alone(KIND):
        found = await worker.store.aget(space(work.user_id, KIND), work.key)
        if found is None or found.value["by"] != worker.name:
            return False
        value = found.value | change | {"free_at": time.time() + seconds}
        return await _put(worker.store, work, value)


async def _all(store: BaseStore, user_id: str | None) -> list[Work]:
    """Return the records of a plain store."""
    users = [user_id] if user_id is not None else await _users(store)
    return [
        one for user in users for one in works_of(user, await all_items(store, space(user, KIND)))
    ]


async def _users(store: BaseStore) -> list[str]:
    found = await store.alist_namespaces(prefix=(ROOT, "*", KIND), max_depth=3, limit=FIRST_LIMIT)
    return sorted({raw(namespace[1]) for namespace in found})


async def _put(store: BaseStore, work: Work, value: dict[str, Any]) -> bool:
    """Write a plain store's record again; False where its user was forgotten, and it goes, too."""
    place = space(work.user_id, KIND)
    try:
        await put_all(store, [PutOp(place, work.key, value, index=False)])
    except UserForgottenError:
        return False  # what was written is gone again
    return True


def _is_free(worker: Worker, work: Work) -> bool:
    if work.status != "due" or work.free_at > time.time():
        return False
    return not work.unnamed or work.process == process() or worker.has_model


def _prefix(user_id: str | None) -> str | None:
    """Return the namespace of a user's records as Postgres spells it."""
    return None if user_id is None else ".".join(space(user_id, KIND))
