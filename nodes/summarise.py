"""Get a summary that may replace history, or say why there is none (R18-R20)."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from everlong.nodes.digest import digest
from everlong.nodes.identifiers import identifiers
from everlong.nodes.inner import Answering, InnerAnswer, ask
from everlong.nodes.models import load
from everlong.nodes.plan import Plan
from everlong.nodes.run import Run
from everlong.nodes.summary import (
    SHORT_SUMMARY_TOKENS,
    carried_over,
    objection,
    render_messages,
    summary_carried,
    summary_message,
    summary_request,
)
from everlong.nodes.tokens import estimate_message, estimate_messages, estimate_text
from everlong.nodes.transcript import call_ids
from everlong.nodes.windows import window_of

log = logging.getLogger("everlong.compaction")

LEAST_DIGEST_TOKENS = 300
CHUNK_SHARE = 0.6
UNKNOWN_WINDOW_CHUNK_TOKENS = 80_000


@dataclass(frozen=True, kw_only=True)
class Summarised:
    """A summary message, or the reason why there is none."""

    message: HumanMessage | None = None
    refused: str = ""
    """Why the model's summary was not taken; empty when it was."""
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


async def summarise(run: Run, plan: Plan, instructions: str, sent: Sent | None) -> Summarised:
    """Ask for a summary of what the plan replaces; refuse one that would lose the history.

    Where none can be had and the request does not fit, an extractive digest stands in. A cancel
    passes through; any other failure becomes a reason.
    """
    replaced = plan.split.replaced
    requests: list[dict[str, Any]] = []
    try:
        text, reason = await _asked(run, plan, instructions, requests, sent)
    except Exception as error:
        log.warning("The summariser failed: %s", error, exc_info=log.isEnabledFor(logging.DEBUG))
        text, reason = "", f"failed: {type(error).__name__}: {error}"
    if not reason:
        found = _framed(run, plan, text, by="model", requests=requests)
        if not (reason := _too_big(plan, found)):
            return found
    if plan.fits:
        return Summarised(refused=reason, requests=requests)
    log.warning("No acceptable summary (%s); an extractive digest stands in", reason)
    text = digest(replaced, limit_tokens=_digest_room(plan))
    found = _framed(run, plan, text, by="digest", requests=requests)
    return replace(found, refused=reason)


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
    if sent is not None and sent.tokens < plan.limits.usable:
        request = summary_request(settings.summary_prompt, None, instructions)
        answer = await ask(
            sent.model,
            [*sent.messages, request],
            kind="summary",
            seconds=settings.summary_seconds,
        )
        requests.append(answer.record)
        if not call_ids(answer.message):
            return _text_of(answer), objection(answer.message)
    return await _asked_in_text(run, plan, instructions, requests)


async def _asked_in_text(
    run: Run, plan: Plan, instructions: str, requests: list[dict[str, Any]]
) -> tuple[str, str]:
    """Return a summary's text and what speaks against it, chunk by chunk where it is too long."""
    settings = run.context.compaction
    model = await load(run.context.summary_model or run.context.model)
    window = window_of(model) if run.context.summary_model else plan.limits.window
    text = ""
    for chunk in _chunks(plan.split.replaced, window):
        so_far = [summary_message(text, (), most_tokens=0)] if text else []
        request = summary_request(settings.summary_prompt, [*so_far, *chunk], instructions)
        answer = await ask(model, [request], kind="summary", seconds=settings.summary_seconds)
        requests.append(answer.record)
        if reason := objection(answer.message):
            return "", reason
        text = _text_of(answer)
    return text, ""


def _text_of(answer: InnerAnswer) -> str:
    return answer.text.replace("<summary>", "").replace("</summary>", "").strip()


def _chunks(replaced: Sequence[BaseMessage], window: int | None) -> list[list[BaseMessage]]:
    """Split what has to be summarised into parts that the summariser's window holds."""
    most = int(window * CHUNK_SHARE) if window else UNKNOWN_WINDOW_CHUNK_TOKENS
    chunks: list[list[BaseMessage]] = [[]]
    room = most
    for message in replaced:
        size = estimate_message(message)
        if size > room and chunks[-1]:
            chunks.append([])
            room = most
        chunks[-1].append(message)
        room -= size
    return chunks


def _framed(
    run: Run, plan: Plan, text: str, *, by: str, requests: list[dict[str, Any]]
) -> Summarised:
    replaced = plan.split.replaced
    size = estimate_text(text)
    freed = estimate_messages(replaced) - size
    short = SHORT_SUMMARY_TOKENS - size if _short_passes(plan) else 0
    most = min(run.context.compaction.identifier_tokens, max(freed // 2, short, 0))
    message = summary_message(text, carried_over(replaced, text), most_tokens=most)
    stated = render_messages(replaced)
    return Summarised(
        message=message,
        by=by,
        carried=len(summary_carried(message)),
        invented=[name for name in identifiers(text) if name not in stated]
        if by == "model"
        else [],
        requests=requests,
    )


def _short_passes(plan: Plan) -> bool:
    return plan.trigger in ("messages", "manual")


def _too_big(plan: Plan, found: Summarised) -> str:
    """Say why a summary does not earn its place; empty when it does (measured when finished)."""
    if found.message is None:
        return "empty"
    after, before = estimate_message(found.message), estimate_messages(plan.split.replaced)
    if after < before or (_short_passes(plan) and after <= SHORT_SUMMARY_TOKENS):
        return ""
    return f"not smaller: {after} tokens for {before}"


def _digest_room(plan: Plan) -> int:
    """Return a digest's limit in tokens: from what is left, and half of what it replaces."""
    kept = estimate_messages(plan.split.kept)
    left = plan.limits.usable - plan.fixed_tokens - kept
    half = estimate_messages(plan.split.replaced) // 2
    return max(min(left // 2, half, SHORT_SUMMARY_TOKENS * 2), LEAST_DIGEST_TOKENS)
