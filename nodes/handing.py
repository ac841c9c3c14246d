"""Hand a call's memory work over to a worker (R50): for `flush_memory`, and `compact`, before."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from everlong.nodes.archive import ranges
from everlong.nodes.facts import FLUSH_INPUT_CHARS, Flushed, ends, worth_reading
from everlong.nodes.live_models import is_unnamed, name_for_work
from everlong.nodes.run import Run
from everlong.nodes.thresholds import window_for
from everlong.stores import work
from everlong.stores.amounts import amount
from everlong.stores.documents import BEGINNING
from everlong.stores.spelling import spelled
from everlong.stores.text import clean_text
from everlong.stores.work import Work

log = logging.getLogger("everlong.memory")

QUEUED = "memory.queued"


def in_background(run: Run) -> bool:
    """Tell whether the answer returns before the call's facts are in the ledger."""
    return run.context.memory.flush_mode == "background"


async def hand_over(
    run: Run, messages: Sequence[BaseMessage], numbers: Mapping[str, int] | None
) -> Flushed:
    """Leave a record that has `messages` flushed, and MEMORY.md rewritten where that is due.

    `numbers` says where the transcript has them; None: no transcript has them all, so the record
    holds them itself. The same messages again leave the same record. A failure is logged, not
    raised.
    """
    store = run.memory
    read = worth_reading(messages)
    if store is None or not read:
        return Flushed(read=store is not None)
    try:
        await _left(run, store, read, numbers or {})
    except Exception:
        log.exception("The record of a flush cannot be written; the messages are read again later")
        return Flushed(failed=True)
    log.info("Memory flush of %s handed over", amount(len(read), "message"))
    run.tell({"type": QUEUED, "messages": len(read), "thread_id": run.thread_id})
    return Flushed(read=True, queued=True)


async def _left(
    run: Run, store: BaseStore, read: Sequence[BaseMessage], numbers: Mapping[str, int]
) -> None:
    ids = tuple(clean_text(str(message.id)) for message in read)
    known = [numbers[str(message.id)] for message in read if str(message.id) in numbers]
    placed = len(known) == len(read)
    key = work.key_of(run.instant, run.thread_id, ids, first=min(known, default=0))
    record = _record(run, key, ids=ids)
    if placed:
        places = tuple((first, last) for first, last in ranges(known))
        await work.add(store, replace(record, places=places))
    else:
        await work.add(store, replace(record, messages=tuple(_held(read))))


def _held(read: Sequence[BaseMessage]) -> list[str]:
    """Return the messages as a record holds them: of very many, those at both ends.

    Between them, and between the ends of a long one, is what no flush reads.
    """
    short = [one.model_copy(update={"content": ends(one.text, FLUSH_INPUT_CHARS)}) for one in read]
    told = [spelled(one) for one in short]
    before = [*accumulate(map(len, told), initial=0)]
    return [
        one
        for place, one in enumerate(told)
        if min(before[place], before[-1] - before[place + 1]) < FLUSH_INPUT_CHARS
    ]


async def hand_over_consolidation(run: Run, store: BaseStore, last: str) -> None:
    """Leave a record that has MEMORY.md rewritten; one after each consolidation (`last`: when)."""
    record = _record(run, work.key_of(last or BEGINNING, "", ["consolidation"]))
    try:
        await work.add(store, record, again=True)
    except Exception:
        log.exception("The record of a consolidation cannot be written; a later call writes it")


def _record(run: Run, key: str, *, ids: tuple[str, ...] = ()) -> Work:
    name = name_for_work(run.context.memory_model or run.context.model)
    return Work(
        key=key,
        user_id=run.user_id,
        thread_id=run.thread_id,
        instant=run.instant,
        first=clean_text(run.first),
        ids=ids,
        settings=_settings(run, name),
        unnamed=is_unnamed(name),
        process=work.process(),
    )


def _settings(run: Run, model: str) -> dict[str, Any]:
    """Return the settings that a flush and a consolidation ask for, as `Context` reads them."""
    context = run.context
    own = context.memory_model is not None
    window = context.compaction.window_tokens if own else window_for(context) or 0
    return {
        "model": model,
        "memory_model": model if own else None,
        "time_zone": context.time_zone,
        "transcript": context.transcript,
        "compaction": {"window_tokens": window},
        "memory": context.memory.model_dump(mode="json"),
    }
