"""Run one call of a tool: once a person has agreed where one has to, and not for ever."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ToolCall,
    ToolMessage,
    convert_to_messages,
)
from langgraph.types import Command

from everlong.nodes.approval import approved, needs_approval, noted
from everlong.nodes.repair import error_result
from everlong.nodes.run import Run
from everlong.nodes.toolbox import Toolbox
from everlong.stores.settings import settings

Outcome = BaseMessage | Command[Any]
SECONDS = 300.0
NOT_OFFERED = "Not run: there is no tool {name!r} here. The tools are: {tools}."
TIMED_OUT = (
    "Not finished: {name} has given no answer within {seconds:g} seconds, and is waited for no "
    "longer. Whether it had an effect is not known."
)


@dataclass(frozen=True, kw_only=True)
class Round:
    """The calls of one message, which run in parallel."""

    run: Run
    toolbox: Toolbox
    asking: AIMessage
    state: dict[str, Any]
    asked: list[ToolCall] = field(default_factory=list[ToolCall])
    """Calls that wait for a person's answer."""
    noted: list[list[Outcome]] = field(default_factory=list[list[Outcome]])
    """What has come of calls so far."""


async def called(these: Round, call: ToolCall) -> list[Outcome]:
    """Return what came of a call: a refusal, an error and a time-out are results, too.

    A person is asked first, also about a tool that has gone since: the answer is for this call.

    Raises:
        GraphInterrupt: the call, or the tool, waits for a person.
        ValidationError: a person's answer is none.
    """
    agreed: ToolCall | ToolMessage = call
    if needs_approval(call["name"], these.run.context, these.state):
        agreed = approved(call, these.asked)
    if isinstance(agreed, ToolMessage):
        return [agreed]
    offered = these.toolbox.offered(these.run.context)
    if call["name"] not in offered:
        return [_not_offered(these.asking, call, offered)]
    given = {"__type": "tool_call_with_context", "tool_call": agreed, "state": these.state}
    seconds = seconds_for(call["name"])
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            answered: Any = await these.toolbox.node.ainvoke(given)
    except TimeoutError:
        if not limit.expired():
            raise
        return [_timed_out(call, seconds)]
    parts = cast("list[Any]", answered if isinstance(answered, list) else [answered])
    found = [outcome for part in parts for outcome in _unpacked(part)]
    return [noted(agreed, call, one) if isinstance(one, ToolMessage) else one for one in found]


def seconds_for(name: str) -> float:
    """Return how long a call of a tool may take: by its name, else by the first pattern it fits."""
    limits = settings().tool_seconds
    fitting = (seconds for pattern, seconds in limits.items() if fnmatchcase(name, pattern))
    return limits.get(name, next(fitting, SECONDS))


def _not_offered(asking: AIMessage, call: ToolCall, offered: Sequence[str]) -> ToolMessage:
    """Refuse a tool that is not there, or is switched off: models call what they remember."""
    text = NOT_OFFERED.format(name=call["name"], tools=", ".join(offered) or "none")
    return error_result(asking, str(call["id"]), text)


def _timed_out(call: ToolCall, seconds: float) -> ToolMessage:
    text = TIMED_OUT.format(name=call["name"], seconds=seconds)
    return ToolMessage(text, tool_call_id=str(call["id"]), name=call["name"], status="error")


def _unpacked(part: dict[str, Any] | Command[Any]) -> list[Outcome]:
    """Take the messages out of an update or a command; a command that says more goes along."""
    if isinstance(part, dict):
        return list(part["messages"])
    if part.graph is not None or not isinstance(part.update, dict):
        return [part]
    update = cast("dict[str, Any]", part.update)
    rest = {name: value for name, value in update.items() if name != "messages"}
    says_more = bool(rest) or bool(part.goto) or part.resume is not None
    found = convert_to_messages(update.get("messages", []))
    return [*found, *([replace(part, update=rest)] if says_more else [])]
