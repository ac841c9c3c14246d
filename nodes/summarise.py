"""Get a summary that may replace history, or say why there is none (R18-R20)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from everlong.nodes.acceptance import objection, summary_text
from everlong.nodes.chunks import chunks
from everlong.nodes.digest import digest
from everlong.nodes.framing import framed, invented, too_big
from everlong.nodes.inner import Answering, ask
from everlong.nodes.models import explain, load
from everlong.nodes.overflow import overflow_in
from everlong.nodes.plan import Plan
from everlong.nodes.rendering import summary_request
from everlong.nodes.run import Run
from everlong.nodes.summary import ARCHIVE, SHORT_SUMMARY_TOKENS, summary_carried, summary_message
from everlong.nodes.tokens import estimate_message, estimate_messages, estimate_text
from everlong.nodes.transcript import call_ids
from everlong.nodes.windows import window_of

log = logging.getLogger("everlong.compaction")

LEAST_DIGEST_TOKENS = 300
CHUNK_SHARE = 0.6
UNKNOWN_WINDOW_CHUNK_TOKENS = 80_000
MOST_CHUNKINGS = 3
"""How often the conversation is cut into smaller chunks, where the summariser still overflows."""


@dataclass(frozen=True, kw_only=True)
class Summarised:
    """A summary message, or the reason why there is none."""

    message: HumanMessage | None = None
    refused: str = ""
    """Why the model's summary was not taken; empty when it was."""
    failed: bool = False
    """The model gave no answer at all."""
    by: str = "model"
    """`model`, or `digest` where code stood in."""
    carried: int = 0
    """Identifiers that the list in the message carries over."""
    invented: list[str] = field(default_factory=list[str])
    """Identifiers of the summary that nobody stated."""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@dataclass(frozen=True, kw_only=True)
class Sent:
    """The request that was sent last, up to the cut: what a summary request may extend (R25)."""

    model: Answering
    """The run's model with its tools."""
    messages: list[BaseMessage]
    tokens: int


async def summarise(
    run: Run,
    plan: Plan,
    instructions: str,
    sent: Sent | None,
    *,
    doubtful: Sequence[str] = (),
    given_up: str = "",
) -> Summarised:
    """Ask for a summary of what the plan replaces; refuse one that would lose the history.

    Where none can be had and the request does not fit, an extractive digest stands in. A cancel
    passes through; any other failure becomes a reason. `doubtful` are identifiers of the earlier
    summary that nobody stated. `given_up`: why the model is not asked again; empty where it is.
    """
    if given_up:
        return _instead(run, plan, Summarised(refused=given_up), doubtful)
    requests: list[dict[str, Any]] = []
    failed = False
    try:
        text, reason = await _asked(run, plan, instructions, requests, sent)
    except Exception as error:
        text, reason, failed = "", _why(run, error), True
        log.warning("The summariser failed: %s", reason, exc_info=log.isEnabledFor(logging.DEBUG))
    if not reason:
        message = _framed(run, plan, text, doubtful)
        if not (reason := too_big(plan, message)):
            known = [*plan.split.replaced, *plan.split.kept, *(sent.messages if sent else ())]
            return Summarised(
                message=message,
                carried=len(summary_carried(message)),
                invented=invented(text, known, instructions=instructions, doubtful=doubtful),
                requests=requests,
            )
    found = Summarised(refused=reason, failed=failed, requests=requests)
    return _instead(run, plan, found, doubtful)


def _instead(run: Run, plan: Plan, found: Summarised, doubtful: Sequence[str]) -> Summarised:
    """Let a digest stand in where the request does not fit and it is smaller than the original."""
    if plan.fits:
        return found
    text = digest(plan.split.replaced, limit_tokens=_digest_room(plan))
    message = _framed(run, plan, text, doubtful)
    if estimate_message(message) >= estimate_messages(plan.split.replaced):
        return found
    log.warning("No acceptable summary (%s); an extractive digest stands in", found.refused)
    return replace(found, message=message, by="digest", carried=len(summary_carried(message)))


def _framed(run: Run, plan: Plan, text: str, doubtful: Sequence[str]) -> HumanMessage:
    return framed(
        plan,
        text,
        most_tokens=run.context.compaction.identifier_tokens,
        where=_archive_of(run),
        doubtful=doubtful,
    )


def _archive_of(run: Run) -> str:
    """Say where the identifiers are that a list has no room for."""
    if run.archive is None:
        return "left out"
    memory = run.context.memory
    return f"{ARCHIVE}: session_search finds them" if memory.enabled and memory.tools else ARCHIVE


def _why(run: Run, error: Exception) -> str:
    settings = run.context.compaction
    if type(error) is TimeoutError:
        return f"no answer within `summary_seconds` {settings.summary_seconds:g}"
    return explain(error, run.context.summary_model or run.context.model)


async def _asked(
    run: Run,
    plan: Plan,
    instructions: str,
    requests: list[dict[str, Any]],
    sent: Sent | None,
) -> tuple[str, str]:
    """Return a summary's text and what speaks against it.

    The request extends the one that was sent last, which a provider's prefix cache then pays for;
    where that does not fit, or the answer is a call, the conversation is rendered as text.
    """
    settings = run.context.compaction
    window = plan.limits.window
    if sent is not None and sent.tokens < plan.limits.usable:
        request = summary_request(settings.summary_prompt, None, instructions)
        seconds = settings.summary_seconds
        try:
            answer = await ask(
                sent.model, [*sent.messages, request], kind="summary", seconds=seconds
            )
        except Exception as error:
            if (overflow := overflow_in(error)) is None:
                raise
            window = overflow.limit or window
        else:
            requests.append(answer.record)
            if not call_ids(answer.message):
                return summary_text(answer.message), objection(answer.message)
    model = await load(run.context.summary_model or run.context.model)
    if run.context.summary_model:
        window = window_of(model)
    return await _asked_in_text(run, plan, instructions, requests, model=model, window=window)


async def _asked_in_text(
    run: Run,
    plan: Plan,
    instructions: str,
    requests: list[dict[str, Any]],
    *,
    model: Answering,
    window: int | None,
) -> tuple[str, str]:
    """Return a summary's text and what speaks against it; in smaller chunks on each overflow."""
    most = int(window * CHUNK_SHARE) if window else UNKNOWN_WINDOW_CHUNK_TOKENS
    for _ in range(MOST_CHUNKINGS - 1):
        try:
            return await _asked_in_chunks(run, plan, instructions, requests, model=model, most=most)
        except Exception as error:
            if (overflow := overflow_in(error)) is None:
                raise
            named = int(overflow.limit * CHUNK_SHARE) if overflow.limit else most
            most = min(named, most // 2)
    return await _asked_in_chunks(run, plan, instructions, requests, model=model, most=most)


async def _asked_in_chunks(
    run: Run,
    plan: Plan,
    instructions: str,
    requests: list[dict[str, Any]],
    *,
    model: Answering,
    most: int,
) -> tuple[str, str]:
    """Return a summary of one chunk after the other, each with the summary so far."""
    settings = run.context.compaction
    text = ""
    for chunk in chunks(plan.split.replaced, most):
        if (size := estimate_text(text)) > most // 2:
            return "", f"too long: {size} tokens where {most // 2} may go along with the next part"
        so_far = [summary_message(text, (), most_tokens=0)] if text else []
        request = summary_request(settings.summary_prompt, [*so_far, *chunk], instructions)
        answer = await ask(model, [request], kind="summary", seconds=settings.summary_seconds)
        requests.append(answer.record)
        if reason := objection(answer.message):
            return "", reason
        text = summary_text(answer.message)
    return text, ""


def _digest_room(plan: Plan) -> int:
    """Return a digest's limit in tokens: from what is left, and half of what it replaces."""
    half = estimate_messages(plan.split.replaced) // 2
    return max(min(plan.summary_room // 2, half, SHORT_SUMMARY_TOKENS * 2), LEAST_DIGEST_TOKENS)
