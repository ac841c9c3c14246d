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
)
from langgraph.errors import GraphInterrupt
from langgraph.func import task
from langgraph.runtime import Runtime
from langgraph.types import Command, Interrupt

from everlong.nodes.calling import Outcome, Round, called
from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError
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

ROUND_CAP = (
    "Not run: this call has used its {most} rounds of tools. Answer now with what is known, and "
    "say what is still open."
)
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
        InvalidInputError: what waits is a call of another agent.
    """
    _refuse_foreign(state)
    run = run_of(state, runtime)
    await load(run.context.model)  # the forks ask for its window, perhaps first after a restart
    asking = cast("AIMessage", state.messages[-1])
    rounds = state.call.get("tool_rounds", 0) + 1
    outcomes: list[Outcome] = [_malformed(asking, call) for call in asking.invalid_tool_calls]
    if rounds > run.context.max_tool_rounds:
        text = ROUND_CAP.format(most=run.context.max_tool_rounds)
        outcomes += [error_result(asking, str(call["id"]), text) for call in asking.tool_calls]
    else:
        snapshot = {field.name: getattr(state, field.name) for field in fields(state)}
        outcomes += await _outcomes(Round(run=run, toolbox=toolbox, asking=asking, state=snapshot))
    call = state.call | {"tool_rounds": rounds}
    results, commands = _sorted(asking, outcomes)
    update = Update(messages=results, call=call)
    if any(one["name"] == TOOL for one in asking.tool_calls):
        update |= await after_tools(run, replace(state, call=call), results, toolbox)
    return [*commands, update] if commands else update


def _refuse_foreign(state: object) -> None:
    """Refuse what is no call of ours: what another agent left waiting, or an update put on it."""
    last = state.messages[-1] if isinstance(state, State) and state.messages else None
    if not isinstance(last, AIMessage):
        msg = (
            "expected a call of this agent to resume; the thread waits in one of another agent's, "
            "or a message was put behind it. Send a new message: that call is then closed as not "
            "answered."
        )
        raise InvalidInputError(msg)


async def _outcomes(these: Round) -> list[Outcome]:
    """Run every call to its end; keep the finished results before waiting for a person."""
    # A task each, in the order of the message: what it has done is found again by its place.
    running = [_run_call(these, call) for call in these.asking.tool_calls]
    try:
        ended = await asyncio.gather(*running, return_exceptions=True)
    except asyncio.CancelledError:
        await asyncio.shield(_keep(these.run, these.asking, these.noted))
        raise
    finished = [outcomes for outcomes in ended if not isinstance(outcomes, BaseException)]
    stopped = [error for error in ended if isinstance(error, BaseException)]
    if stopped:
        await _keep(these.run, these.asking, finished)
        _raise_all(stopped)
    return [outcome for outcomes in finished for outcome in outcomes]


@task
async def _run_call(these: Round, call: ToolCall) -> list[Outcome]:
    """Run one call; its result is in the checkpoint before the next step begins.

    It is noted at once, for a cancel that comes before that.
    """
    found = await called(these, call)
    run, named = these.run, these.state["named_windows"]
    reader = these.toolbox.reader(run.context)
    outcomes = [
        one if isinstance(one, Command) else await spilled(run, one, named=named, reader=reader)
        for one in found
    ]
    these.noted.append(outcomes)
    return outcomes


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


def _malformed(asking: AIMessage, call: InvalidToolCall) -> ToolMessage:
    text = MALFORMED.format(error=call.get("error") or "not parsable", name=call.get("name"))
    return error_result(asking, str(call["id"]), text)
