"""The summary message that may take history's place: its list, and its size (R18, R19)."""

import json
from collections.abc import Iterable, Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everlong.nodes.identifiers import identifiers, missing
from everlong.nodes.plan import Plan
from everlong.nodes.summary import (
    SHORT_SUMMARY_TOKENS,
    carried_over,
    summary_left,
    summary_message,
)
from everlong.nodes.tokens import estimate_message, estimate_messages
from everlong.nodes.transcript import is_summary

SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Of the list's room, until the message is small enough: the list is no reason to refuse it, nor is
the line that counts what it leaves."""
LEAST_LIST_TOKENS = 200
"""The list has so much room even where the request seems to have none left."""


def framed(
    plan: Plan, text: str, *, most_tokens: int, where: str, doubtful: Iterable[str] = ()
) -> HumanMessage:
    """Frame a summary with the identifiers that it lacks, in the room that R19 leaves them.

    `most_tokens` is the setting's; `doubtful` was in the earlier summary and nobody's word.
    """
    replaced = plan.split.replaced
    unstated = set(missing(doubtful, stated(m for m in replaced if not is_summary(m))))
    carried = [name for name in carried_over(replaced, text) if name not in unstated]
    left = sum(summary_left(message) for message in replaced if is_summary(message))
    bare = summary_message(text, (), most_tokens=0)
    room = _list_room(plan, bare, most_tokens)
    for share in SHARES:
        most = int(room * share)
        message = summary_message(text, carried, most_tokens=most, left=left, where=where)
        if not too_big(plan, message):
            return message
    return bare


def _list_room(plan: Plan, bare: BaseMessage, most_tokens: int) -> int:
    """Return the list's room in tokens: half of what is freed, or what a short summary leaves."""
    size = estimate_message(bare)
    freed = estimate_messages(plan.split.replaced) - size
    short = SHORT_SUMMARY_TOKENS - size if short_passes(plan) else 0
    left = max(plan.summary_room - size, LEAST_LIST_TOKENS)
    return max(min(most_tokens, max(freed // 2, short), left), 0)


def short_passes(plan: Plan) -> bool:
    """Whether a short summary passes although what it replaces is no larger."""
    return plan.trigger in ("messages", "manual")


def too_big(plan: Plan, message: BaseMessage) -> str:
    """Say why a summary does not earn its place; empty when it does (measured when finished)."""
    after, before = estimate_message(message), estimate_messages(plan.split.replaced)
    if not plan.fits and after > max(plan.summary_room, SHORT_SUMMARY_TOKENS):
        return f"does not fit: {after} tokens where {max(plan.summary_room, 0)} are left"
    if after < before or (short_passes(plan) and after <= SHORT_SUMMARY_TOKENS):
        return ""
    return f"not smaller: {after} tokens for {before}"


def invented(
    text: str, known: Iterable[BaseMessage], *, instructions: str, doubtful: Iterable[str] = ()
) -> list[str]:
    """Return the identifiers of a summary that nobody stated in `known`, nor in the instructions.

    What was `doubtful` in an earlier summary stays so until somebody else states it.
    """
    messages = list(known)
    named = identifiers(text)
    spoken = f"{stated(messages)}\n{instructions}"
    unstated = set(missing(doubtful, stated(m for m in messages if not is_summary(m))))
    lost = set(missing(named, spoken))
    return [name for name in named if name in lost or name in unstated]


def stated(messages: Iterable[BaseMessage]) -> str:
    """Return all that messages say, with the arguments of their calls."""
    return "\n".join(part for message in messages for part in _said(message))


def _said(message: BaseMessage) -> Sequence[str]:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return [
        str(message.text),
        *(json.dumps(call["args"], ensure_ascii=False, default=str) for call in calls),
    ]
