"""Fact extraction (R43): for `flush_memory`, after the answer, and `compact`, before it removes."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.store.base import BaseStore

from everlong.nodes.acceptance import CUT_SHORT, ERROR_TEXT, objection, summary_text
from everlong.nodes.attribution import heard, sifted
from everlong.nodes.drafts import NO_REPLY, Draft, drafts_in
from everlong.nodes.inner import ask
from everlong.nodes.models import load, window
from everlong.nodes.news import news
from everlong.nodes.prompts import render
from everlong.nodes.rendering import render_messages, within_frame
from everlong.nodes.run import Run
from everlong.nodes.thresholds import window_for
from everlong.nodes.tokens import estimate_text
from everlong.nodes.transcript import is_summary
from everlong.nodes.utterances import Utterance
from everlong.stores import ledger, memory, tombstones, transcripts
from everlong.stores.amounts import amount
from everlong.stores.entries import Fact, line_of, moment
from everlong.stores.tombstones import Tombstones
from everlong.stores.turns import alone

log = logging.getLogger("everlong.memory")

FLUSH_SECONDS = 60.0
FLUSH_INPUT_CHARS = 60_000
REMEMBERED_TOKENS = 4_000
WINDOW_SHARE = 0.6
"""Of the model's window, for what a flush reads; the instruction and the answer need room, too."""
MOST_LOOKUPS = 20
"""Messages that are looked up one by one; for more, the transcript is read."""
CLOCKS_APART = timedelta(days=1)
LONGEST_HELD = timedelta(days=30)
"""So far back a fact that no MEMORY.md has taken up is looked for, before it is added again."""
KEPT_SHARE = 0.9
"""Of what would just fit, so that a text is soon short enough."""


@dataclass(frozen=True, kw_only=True)
class Flushed:
    """What a flush came to."""

    facts: int = 0
    """Facts that were written to the ledger and are beyond doubt."""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    read: bool = False
    """The messages count as read: by the model, or because they hold nothing to read."""
    failed: bool = False
    """The messages could not be read; they have to be read later."""
    reason: str = ""
    """Why that failed."""
    queued: bool = False
    """A record has a worker read them."""


def worth_reading(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return what a flush reads: no system text, no summaries; nothing where no user speaks."""
    read = [m for m in messages if not isinstance(m, SystemMessage) and not is_summary(m)]
    return read if any(isinstance(m, HumanMessage) and m.text.strip() for m in read) else []


async def flush(run: Run, messages: Sequence[BaseMessage], *, remembered: str) -> Flushed:
    """Write the facts of `messages` to the user's ledger; failures are logged, not raised.

    The entry's key comes from the messages, so a run that is repeated stores nothing twice.
    """
    store = run.memory
    read = worth_reading(messages)
    if store is None or not read:
        return Flushed(read=store is not None)
    try:
        return await _flush(run, store, read, remembered)
    except Exception as error:
        log.exception("Memory flush failed; the messages will be read again later")
        return Flushed(failed=True, reason=f"{type(error).__name__}: {error}")


async def _flush(run: Run, store: Any, read: list[BaseMessage], remembered: str) -> Flushed:
    model = await load(run.context.memory_model or run.context.model)
    found = window(model) if run.context.memory_model else window_for(run.context)
    room = int(found * WINDOW_SHARE) if found else FLUSH_INPUT_CHARS
    known = _bounded(remembered, REMEMBERED_TOKENS * 4, most_tokens=room // 4)
    said = heard(run, read, await _times(run, read))
    prompt = render(
        "flush_memory",
        now=run.local_time.isoformat(timespec="seconds"),
        remembered=within_frame(known) or "(nothing yet)",
        conversation=_bounded(
            render_messages(read, _marks(run, said)),
            FLUSH_INPUT_CHARS,
            most_tokens=room - room // 4,
        ),
    )
    answer = await ask(model, [HumanMessage(prompt)], kind="flush", seconds=FLUSH_SECONDS)
    drafts = _drafts(answer.message, len(read))
    found = await sifted(run, said, drafts)
    for text in found.foreign:
        log.info("Memory flush: only a tool's result says this, so it is left out: %.200s", text)
    written = await _added(run, store, read, found.facts, remembered)
    return _told(run, written, answer.record)


def _told(run: Run, written: Sequence[Fact], record: dict[str, Any]) -> Flushed:
    """Log a flush, send its event, and return what it came to."""
    doubtful = len([fact for fact in written if fact.doubt])
    if written:
        unverified = f", {doubtful} of them unverified" if doubtful else ""
        facts = amount(len(written), "fact")
        log.info("Memory flush: %s written to the ledger%s", facts, unverified)
    else:
        log.info("Memory flush: nothing worth keeping (%s)", NO_REPLY)
    event = {"type": "memory.flushed", "facts": len(written), "thread_id": run.thread_id}
    run.tell(event | ({"unverified": doubtful} if doubtful else {}))
    return Flushed(read=True, facts=len(written) - doubtful, requests=[record])


def _drafts(answer: AIMessage, messages: int) -> list[Draft]:
    """Return the facts of an answer; of one that was cut off, the last line may be half a fact.

    Raises:
        RuntimeError: it is an error text.
    """
    problem = objection(answer)
    if problem == ERROR_TEXT:
        msg = f"expected facts or {NO_REPLY}; got {problem}: {answer.text[:200]!r}"
        raise RuntimeError(msg)
    found = drafts_in(summary_text(answer), messages)
    return found[:-1] if problem == CUT_SHORT else found


async def _added(
    run: Run, store: Any, read: Sequence[BaseMessage], facts: Sequence[Fact], remembered: str
) -> list[Fact]:
    """Write the facts that are new to the ledger, and return them."""
    if not facts:
        return []
    async with alone("ledger", run.user_id, store=store):
        day = run.local_time.date().isoformat()
        held = [
            fact
            for entry in await ledger.recent(store, run.user_id, await _since(run, store))
            if entry.day == day or not entry.consumed_by
            for fact in entry.facts
            if not fact.corrected
        ]
        new = news(facts, [*map(Fact, map(line_of, remembered.splitlines())), *held])
        stones = await tombstones.load(store, run.user_id)
        new = _not_forgotten(new, stones)
        if new:
            await ledger.append(
                store,
                run.user_id,
                "flush",
                new,
                instant=run.instant,
                zone=run.context.time_zone,
                thread_id=run.thread_id,
                sources=[str(message.id) for message in read],
            )
    return new


def _not_forgotten(facts: Sequence[Fact], stones: Tombstones) -> list[Fact]:
    kept = [fact for fact in facts if not stones.matches(fact.text)]
    if gone := len(facts) - len(kept):
        log.info("Memory flush: left out %s that is to stay forgotten", amount(gone, "fact"))
    return kept


async def _since(run: Run, store: BaseStore) -> datetime:
    """Return from when on the ledger may hold what MEMORY.md has not; no longer than a month."""
    now = moment(run.instant)
    document = await memory.read(store, run.user_id)
    last = moment(document.consolidated_at) if document else now - LONGEST_HELD
    return max(min(last, now) - CLOCKS_APART, now - LONGEST_HELD)


async def _times(run: Run, read: Sequence[BaseMessage]) -> dict[str, str]:
    """Return when the transcript says that the messages before the call's own were said."""
    ids = [str(message.id) for message in read]
    ids = ids[: ids.index(run.first)] if run.first in ids else ids
    if run.archive is None:
        return {}
    store, where = run.archive, (run.user_id, run.thread_id)
    if len(ids) > MOST_LOOKUPS:
        entries = await transcripts.glance(store, *where)
    else:
        lookups = (transcripts.of_message(store, *where, one) for one in ids)
        entries = [entry for found in await asyncio.gather(*lookups) for entry in found]
    return {entry.message_id: entry.at for entry in entries}


def _marks(run: Run, said: Sequence[Utterance]) -> list[str]:
    """Return the number of each message, and the day where it was said on another one."""
    today = run.local_time.date()
    days = [one.at.date() if one.at else today for one in said]
    return [
        str(number) if day == today else f"{number}, {day}"
        for number, day in enumerate(days, start=1)
    ]


def _bounded(text: str, most_chars: int, *, most_tokens: int) -> str:
    """Keep head and tail of an overlong text, so that a flush never outgrows its model."""
    kept = ends(text, most_chars)
    while (size := estimate_text(kept)) > most_tokens and most_chars:
        most_chars = int(min(most_chars, len(kept)) * most_tokens / size * KEPT_SHARE)
        kept = ends(text, most_chars)
    return kept


def ends(text: str, most_chars: int) -> str:
    """Return a text whose middle is left out where it is too long."""
    if len(text) <= most_chars:
        return text
    half = most_chars // 2
    gone = len(text) - 2 * half
    return f"{text[:half]}\n... {gone} characters left out ...\n{text[len(text) - half :]}"
