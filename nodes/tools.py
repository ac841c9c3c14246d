"""Node `tools`: run the calls that the model made, in parallel."""

import asyncio
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    ToolMessage,
    convert_to_messages,
)
from langgraph.errors import GraphInterrupt
from langgraph.func import task
from langgraph.runtime import Runtime
from langgraph.types import Command, Interrupt

from everlong.nodes.context import Context
from everlong.nodes.eviction import spilled
from everlong.nodes.forgetting import TOOL, after_tools
from everlong.nodes.models import load
from everlong.nodes.repair import error_result
from everlong.nodes.run import Run, run_of
from everlong.nodes.state import State, Update
from everlong.nodes.tidying import NO_OUTPUT
from everlong.nodes.toolbox import Toolbox
from everlong.stores import finished_calls
from everlong.stores.text import clean

Outcome = BaseMessage | Command[Any]
ROUND_CAP = (
    "Not run: this call has used its {most} rounds of tools. Answer now with what is known, and "
    "say what is still open."
)
NOT_OFFERED = "Not run: there is no tool {name!r} here. The tools are: {tools}."
MALFORMED = (
    "Not run: the arguments were not valid JSON ({error}). Call {name} again with valid arguments."
)


async def tools(
    state: State, runtime: Runtime[Context], *, toolbox: Toolbox
) -> Update | list[Update | Command[Any]]:
    """Run the last message's calls; each failing, unknown or malformed one becomes an error result.

    Each call is a task of its own, so that a finished one never runs again when the node is resumed
    after an interrupt or a crash. Reads `messages`, `call`. Writes `messages`, `call`.

    Raises:
        GraphInterrupt: calls wait for a person; all of them in one.
    """
    run = run_of(state, runtime)
    await load(run.context.model)  # the forks ask for its window, perhaps first after a restart
    asking = cast("AIMessage", state.messages[-1])
    rounds = state.call.get("tool_rounds", 0) + 1
    outcomes: list[Outcome] = [_malformed(asking, call) for call in asking.invalid_tool_calls]
    if rounds > run.context.max_tool_rounds:
        text = ROUND_CAP.format(most=run.context.max_tool_rounds)
        outcomes += [error_result(asking, str(call["id"]), text) for call in asking.tool_calls]
    else:
        outcomes += await _outcomes(run, state, asking, toolbox)
    call = state.call | {"tool_rounds": rounds}
    results, commands = _sorted(asking, outcomes)
    update = Update(messages=results, call=call)
    if any(one["name"] == TOOL for one in asking.tool_calls):
        update |= await after_tools(run, replace(state, call=call), results, toolbox)
    return [*commands, update] if commands else update


async def _outcomes(run: Run, state: State, asking: AIMessage, toolbox: Toolbox) -> list[Outcome]:
    """Run every call to its end; keep the finished results before waiting for a person."""
    snapshot = {field.name: getattr(state, field.name) for field in fields(state)}
    noted: list[list[Outcome]] = []
    offered = toolbox.offered(run.context)
    running = [
        _run_call(run, toolbox, call, snapshot, noted)
        for call in asking.tool_calls
        if call["name"] in offered
    ]
    try:
        ended = await asyncio.gather(*running, return_exceptions=True)
    except asyncio.CancelledError:
        await asyncio.shield(_keep(run, asking, noted))
        raise
    finished = [outcomes for outcomes in ended if not isinstance(outcomes, BaseException)]
    stopped = [error for error in ended if isinstance(error, BaseException)]
    if stopped:
        await _keep(run, asking, finished)
        _raise_all(stopped)
    refused = [one for one in asking.tool_calls if one["name"] not in offered]
    return [
        *(outcome for outcomes in finished for outcome in outcomes),
        *(_not_offered(asking, call, offered) for call in refused),
    ]


@task
async def _run_call(
    run: Run, toolbox: Toolbox, call: ToolCall, state: dict[str, Any], noted: list[list[Outcome]]
) -> list[Outcome]:
    """Run one call; its result is in the checkpoint before the next step begins.

    It is noted at once, for a cancel that comes before that.
    """
    given = {"__type": "tool_call_with_context", "tool_call": call, "state": state}
    answered: Any = await toolbox.node.ainvoke(given)
    parts = cast("list[Any]", answered if isinstance(answered, list) else [answered])
    found = [outcome for part in parts for outcome in _unpacked(part)]
    reader, named = toolbox.reader(run.context), state["named_windows"]
    outcomes = [
        one if isinstance(one, Command) else await spilled(run, one, named=named, reader=reader)
        for one in found
    ]
    noted.append(outcomes)
    return outcomes


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


async def _keep(run: Run, asking: AIMessage, finished: Sequence[Sequence[Outcome]]) -> None:
    """Keep finished results where a new user message cannot lose them."""
    results = [one for many in finished for one in many if isinstance(one, ToolMessage)]
    if run.store is not None and results:
        await finished_calls.keep(run.store, run.user_id, run.thread_id, str(asking.id), results)


def _raise_all(stopped: Sequence[BaseException]) -> None:
    """Raise what is no interrupt first; else all interrupts as one."""
    for error in stopped:
        if not isinstance(error, GraphInterrupt):
            raise error
    waiting: list[Interrupt] = [one for error in stopped for one in error.args[0]]
    raise GraphInterrupt(tuple(waiting))


def _sorted(
    asking: AIMessage, outcomes: Sequence[Outcome]
) -> tuple[list[BaseMessage], list[Command[Any]]]:
    """Return the results in the order of the calls, and the commands of tools that gave some."""
    order = [call["id"] for call in [*asking.tool_calls, *asking.invalid_tool_calls]]

    def place(message: BaseMessage) -> int:
        if isinstance(message, ToolMessage) and message.tool_call_id in order:
            return order.index(message.tool_call_id)
        return len(order)

    messages = sorted((one for one in outcomes if isinstance(one, BaseMessage)), key=place)
    commands = [one for one in outcomes if isinstance(one, Command)]
    return [_storable(message, asking) for message in messages], commands


def _storable(message: BaseMessage, asking: AIMessage) -> BaseMessage:
    """Give a result its id, and take out characters that no store holds.

    Providers may use a call's id again in a later message, so the id names the asking message, too.
    """
    if not isinstance(message, ToolMessage):
        return message
    content = clean(message.content) or NO_OUTPUT
    ident = message.id or f"result:{asking.id}:{message.tool_call_id}"
    return message.model_copy(update={"content": content, "id": ident})


def _not_offered(asking: AIMessage, call: ToolCall, offered: Sequence[str]) -> ToolMessage:
    """Refuse a tool that is not there, or is switched off: models call what they remember."""
    text = NOT_OFFERED.format(name=call["name"], tools=", ".join(offered) or "none")
    return error_result(asking, str(call["id"]), text)


def _malformed(asking: AIMessage, call: InvalidToolCall) -> ToolMessage:
    text = MALFORMED.format(error=call.get("error") or "not parsable", name=call.get("name"))
    return error_result(asking, str(call["id"]), text)
