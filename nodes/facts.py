"""Fact extraction (R43): for `flush_memory`, after the answer, and `compact`, before it removes."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from everlong.nodes.inner import ask
from everlong.nodes.models import load, window
from everlong.nodes.prompts import render
from everlong.nodes.rendering import render_messages, within_frame
from everlong.nodes.run import Run
from everlong.nodes.thresholds import window_for
from everlong.nodes.tokens import estimate_text
from everlong.nodes.transcript import is_summary
from everlong.stores import ledger
from everlong.stores.amounts import amount

log = logging.getLogger("everlong.memory")

NO_REPLY = "NO_REPLY"
FLUSH_SECONDS = 60.0
FLUSH_INPUT_CHARS = 60_000
REMEMBERED_TOKENS = 4_000
WINDOW_SHARE = 0.6
"""Of the model's window, for what a flush reads; the instruction and the answer need room, too."""
KEPT_SHARE = 0.9
"""Of what would just fit, so that a text is soon short enough."""


@dataclass(frozen=True, kw_only=True)
class Flushed:
    """What a flush came to."""

    facts: int = 0
    """Lines that were written to the ledger."""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    read: bool = False
    """The messages count as read: by the model, or because they hold nothing to read."""
    failed: bool = False
    """The messages could not be read; they have to be read later."""


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
    except Exception:
        log.exception("Memory flush failed; the messages will be read again later")
        return Flushed(failed=True)


async def _flush(run: Run, store: Any, read: list[BaseMessage], remembered: str) -> Flushed:
    model = await load(run.context.memory_model or run.context.model)
    found = window(model) if run.context.memory_model else window_for(run.context)
    room = int(found * WINDOW_SHARE) if found else FLUSH_INPUT_CHARS
    known = _bounded(remembered, REMEMBERED_TOKENS * 4, most_tokens=room // 4)
    prompt = render(
        "flush_memory",
        now=run.local_time.isoformat(timespec="seconds"),
        remembered=within_frame(known) or "(nothing yet)",
        conversation=_bounded(
            render_messages(read), FLUSH_INPUT_CHARS, most_tokens=room - room // 4
        ),
    )
    answer = await ask(model, [HumanMessage(prompt)], kind="flush", seconds=FLUSH_SECONDS)
    facts = fact_lines(answer.message)
    if not facts:
        log.info("Memory flush: nothing worth keeping (%s)", NO_REPLY)
        run.tell({"type": "memory.flushed", "facts": 0, "thread_id": run.thread_id})
        return Flushed(read=True, requests=[answer.record])
    await ledger.append(
        store,
        run.user_id,
        "flush",
        "\n".join(facts),
        instant=run.instant,
        zone=run.context.time_zone,
        thread_id=run.thread_id,
        sources=[str(message.id) for message in read],
    )
    log.info("Memory flush: %s written to the ledger", amount(len(facts), "fact"))
    run.tell({"type": "memory.flushed", "facts": len(facts), "thread_id": run.thread_id})
    return Flushed(read=True, facts=len(facts), requests=[answer.record])


def fact_lines(answer: AIMessage) -> list[str]:
    """Return the facts of a flush's answer, one line each; none for NO_REPLY, prose or headings."""
    lines = [line.strip() for line in answer.text.splitlines()]
    return [
        f"- {line[1:].strip()}"
        for line in lines
        if line.startswith(("-", "*", "•")) and line[1:].strip(" -*") and NO_REPLY not in line
    ]


def _bounded(text: str, most_chars: int, *, most_tokens: int) -> str:
    """Keep head and tail of an overlong text, so that a flush never outgrows its model."""
    kept = _ends(text, most_chars)
    while (size := estimate_text(kept)) > most_tokens and most_chars:
        most_chars = int(min(most_chars, len(kept)) * most_tokens / size * KEPT_SHARE)
        kept = _ends(text, most_chars)
    return kept


def _ends(text: str, most_chars: int) -> str:
    if len(text) <= most_chars:
        return text
    half = most_chars // 2
    gone = len(text) - 2 * half
    return f"{text[:half]}\n... {gone} characters left out ...\n{text[len(text) - half :]}"
