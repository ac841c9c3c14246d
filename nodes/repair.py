"""Repair of broken histories, so that a thread is never refused for ever.

After it each result stands directly after its call, each call has one result, and nothing is empty.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from everlong.nodes.blocks import lonely
from everlong.nodes.tidying import is_void, made_id, name_calls, only_thinks, readable, tidy
from everlong.nodes.transcript import call_ids, conversation

NO_RESULT = "No result was recorded for this call."
NOT_ANSWERED = "not answered by the user"
NOT_JSON = "The arguments of this call were not valid JSON; the tool did not run."
NO_SUCH_TOOL = "There is no tool of this name; the call did not run."


@dataclass(frozen=True)
class Repair:
    """A history in order, and what was done to it."""

    messages: list[BaseMessage]
    notes: list[str]
    """One line for each change."""


@dataclass(frozen=True)
class _Work:
    """One repair: what it may use, and what it has noted."""

    messages: Sequence[BaseMessage]
    finished: Mapping[str, ToolMessage] = field(default_factory=dict[str, ToolMessage])
    close_open: bool = False
    known_names: Collection[str] | None = None
    notes: list[str] = field(default_factory=list[str])


def repair(
    messages: Sequence[BaseMessage],
    *,
    close_open: bool,
    finished: Mapping[str, ToolMessage] | None = None,
    known_names: Collection[str] | None = None,
) -> Repair | None:
    """Return `messages` in order, or None where nothing is wrong.

    `close_open`: a new user message came, so calls of the newest batch that have no result are
    closed, with their real result where `finished` holds it by call id; else they are left to
    run. `known_names`: the tools that exist. Repairing again changes nothing.
    """
    work = _Work(messages, finished or {}, close_open, known_names)
    work = replace(work, messages=_tidied(work))
    repaired = _arranged(work, _answers(work))
    return Repair(repaired, work.notes) if work.notes else None


def for_request(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return what is sent of `messages` besides the system's: nothing empty, no broken call.

    An answer of nothing but thoughts stays in the thread and is not sent.
    """
    return [
        readable(tidy(message))
        for message in conversation(messages)
        if isinstance(message, HumanMessage) or not (is_void(message) or only_thinks(message))
    ]


def system_text(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the texts of the system messages, which join the one that leads a request."""
    texts = [str(message.text) for message in messages if isinstance(message, SystemMessage)]
    return [text for text in texts if text.strip()]


def error_result(message: AIMessage, call_id: str, text: str) -> ToolMessage:
    """Return the error that stands as the result of one call of `message`, the same each time."""
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    name = next((call["name"] for call in calls if call["id"] == call_id), None)
    made = made_id("result", message.id, call_id)
    return ToolMessage(text, tool_call_id=call_id, name=name, id=made, status="error")


def _tidied(work: _Work) -> list[BaseMessage]:
    """Return the messages, each in order by itself, without the empty ones."""
    users = [message for message in work.messages if isinstance(message, HumanMessage)]
    halves = lonely(work.messages)
    tidied: list[BaseMessage] = []
    for index, message in enumerate(work.messages):
        alone = [at for place, at in halves if place == index]
        if alone:
            work.notes.append(f"removed half of a server-side call in message {message.id}")
        mended = tidy(message, alone)
        # The newest user message is its sender's own affair, even when it is empty.
        if is_void(mended) and (not users or message is not users[-1]):
            work.notes.append(f"removed message {message.id}, which is empty")
            continue
        if mended is not message and not alone:
            work.notes.append(f"removed or filled empty text in message {message.id}")
        if isinstance(mended, AIMessage) and (named := name_calls(mended)) is not mended:
            mended = named
            work.notes.append(f"gave the calls of message {message.id} ids of their own")
        tidied.append(mended)
    return tidied


def _answers(work: _Work) -> dict[int, dict[str, int]]:
    """Return by assistant message which result answers which call, all as indices.

    A result answers the nearest earlier call of its id that has none yet; the others are removed.
    """
    answers: dict[int, dict[str, int]] = {}
    waiting: dict[str, list[int]] = {}
    for index, message in enumerate(work.messages):
        for call_id in call_ids(message):
            waiting.setdefault(call_id, []).append(index)
        if isinstance(message, ToolMessage):
            callers = waiting.get(message.tool_call_id)
            if callers:
                answers.setdefault(callers.pop(), {})[message.tool_call_id] = index
            else:
                why = "has no call" if callers is None else "is a duplicate"
                work.notes.append(f"removed result {message.id}, which {why}")
    return answers


def _arranged(work: _Work, answers: Mapping[int, Mapping[str, int]]) -> list[BaseMessage]:
    """Return the messages with the results directly after their calls, in the calls' order."""
    arranged: list[BaseMessage] = []
    order: list[int] = []
    for index, message in enumerate(work.messages):
        if isinstance(message, ToolMessage):
            continue
        order.append(index)
        arranged.append(message)
        for call_id in call_ids(message):
            answer = answers.get(index, {}).get(call_id)
            if answer is not None:
                order.append(answer)
                arranged.append(work.messages[answer])
            elif closing := _closing(work, index, call_id):
                arranged.append(closing)
    for found, wanted in zip(sorted(order), order, strict=True):
        if found != wanted and isinstance(work.messages[wanted], ToolMessage):
            work.notes.append(f"moved result {work.messages[wanted].id} to its call")
    return arranged


def _closing(work: _Work, index: int, call_id: str) -> ToolMessage | None:
    """Return what closes a call without result, or None where it is still to run."""
    message = cast("AIMessage", work.messages[index])
    later = work.messages[index + 1 :]
    is_newest = not any(isinstance(each, AIMessage) for each in later)
    is_running = is_newest and not any(isinstance(each, HumanMessage) for each in later)
    if is_running and not work.close_open:
        return None
    work.notes.append(f"closed call {call_id} of message {message.id}")
    if is_newest and (result := work.finished.get(call_id)):
        made = made_id("result", message.id, call_id)
        return cast("ToolMessage", tidy(result.model_copy(update={"id": result.id or made})))
    return error_result(message, call_id, _why(work, message, call_id, is_newest=is_newest))


def _why(work: _Work, message: AIMessage, call_id: str, *, is_newest: bool) -> str:
    if call_id in {call["id"] for call in message.invalid_tool_calls}:
        return NOT_JSON
    name = next(call["name"] for call in message.tool_calls if call["id"] == call_id)
    if work.known_names is not None and name not in work.known_names:
        return NO_SUCH_TOOL
    return NOT_ANSWERED if is_newest else NO_RESULT
