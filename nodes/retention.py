"""Let go of what is old (R45), a bounded step at a time: after consolidations, and in a sweep."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from everlong.nodes.due import minutes_between
from everlong.nodes.run import Run
from everlong.nodes.state import State
from everlong.stores import compactions, retention, work
from everlong.stores.amounts import amount
from everlong.stores.compactions import BEGUN, MESSAGE_IDS
from everlong.stores.namespaces import space
from everlong.stores.records import all_items
from everlong.stores.retention import Needed, Step
from everlong.stores.text import clean_text

log = logging.getLogger("everlong.memory")

MINUTES_APART = 24 * 60
"""Least time between two looks at a thread by its own calls, unless the last one left some."""
NEWEST = 20
"""Attempts to compact that are looked through first, for the one whose summary is alive."""


async def shorten(run: Run, state: State) -> None:
    """Do one step for the user's ledger and the thread's transcript; a failure is logged."""
    try:
        await archive_entries(run)
        if run.archive is not None and has_limit(run):
            last = await retention.swept_at(run.archive, run.user_id, run.thread_id)
            since = minutes_between(last, run.instant)
            if not 0 <= since < MINUTES_APART:  # in the future: a clock was once ahead
                kept = await needed(run, state.messages, state.unflushed, state.archived)
                await remove_messages(run, kept)
    except Exception:
        log.exception("What is old could not be let go of; the next consolidation tries again")


def has_limit(run: Run) -> bool:
    """Tell whether anything of a transcript goes."""
    return bool(run.context.transcript_days or run.context.transcript_messages)


async def archive_entries(run: Run) -> Step:
    """Move old entries of the user's ledger to the archive, one step.

    Raises:
        Exception: the store's own.
    """
    days = run.context.memory.ledger_days
    if run.memory is None:
        return Step()
    done = await retention.archive_old_entries(
        run.memory, run.user_id, instant=run.instant, days=days
    )
    if done.removed:
        moved = amount(done.removed, "ledger entry", "ledger entries")
        log.info("%s older than %d days moved to the archive", moved, days)
    return done


async def remove_messages(run: Run, kept: Needed, *, noted: bool = True) -> Step:
    """Remove the thread's old messages from its transcript but for those to be kept, one step.

    `noted`: that it was looked at is kept though nothing was old, for the thread's own calls.

    Raises:
        Exception: the store's own.
    """
    if run.archive is None:
        return Step()
    done = await retention.remove_old_messages(
        *(run.archive, run.user_id, run.thread_id, kept),
        instant=run.instant,
        days=run.context.transcript_days,
        kept=run.context.transcript_messages,
        noted=noted,
    )
    if done.removed:
        log.info("%s removed from the transcript", amount(done.removed, "old message"))
    return done


async def needed(
    run: Run,
    history: Sequence[BaseMessage],
    unflushed: Sequence[Mapping[str, Any]],
    archived: Mapping[str, Any],
) -> Needed:
    """Return what of the thread's transcript has to stay, given what its state holds.

    That is the history, for the compaction that will take it out; what the last compaction took
    out, and one that may have come about, for their undoing; what a flush has still to read.
    """
    if run.archive is None:
        return Needed()
    ids = {clean_text(str(message.id)) for message in history}
    alive = await _alive(run.archive, run, ids)
    for receipt in alive:
        ids.update(receipt.get(MESSAGE_IDS, ()))
    ids.update(await _handed_over(run.archive, run))
    places = [part for part in unflushed if "first" in part]
    ranges = [(part["first"], part["first"] + part["count"] - 1) for part in places]
    return Needed(
        message_ids=ids,
        ranges=ranges,
        receipts={str(one["id"]) for one in alive},
        count=int(archived.get("count", 0)),
    )


async def _handed_over(store: BaseStore, run: Run) -> set[str]:
    """Return the ids of the messages that a worker has still to flush, or failed to."""
    place = space(run.user_id, work.KIND)
    items = await all_items(store, place, matching={"thread_id": run.thread_id})
    records = work.works_of(run.user_id, items)
    return {one for record in records if record.status != "done" for one in record.ids}


async def _alive(store: BaseStore, run: Run, ids: set[str]) -> list[dict[str, Any]]:
    """Return the receipts of the compaction whose summary the history has, and of later ones."""
    place = (store, run.user_id, run.thread_id)
    receipts = await compactions.read(*place, limit=NEWEST)
    done_ids = {one.get("summary_id", "") for one in receipts if one["outcome"] == "done"}
    if len(receipts) == NEWEST and not done_ids & {"", *ids}:  # a branch may have an older one
        receipts = await compactions.read(*place)
    changing = [one for one in receipts if one["outcome"] in ("done", BEGUN)]
    alive = [n for n, one in enumerate(changing) if one.get("summary_id", "") in ids]
    done = [n for n, one in enumerate(changing) if one["outcome"] == "done"]
    return changing[(alive or [0, *done])[-1] :]
