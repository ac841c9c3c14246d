"""Our tools for a graph of your own, and what is known of the tools that its model has."""

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import ToolMessage, convert_to_messages
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import ToolNode, ToolRuntime
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command

from everlong.graph.agent import Clock, utc_now
from everlong.graph.callers import checked
from everlong.graph.exchange import fields_in
from everlong.graph.foreign import KEPT, SMALL
from everlong.graph.ownership import refuse_stranger
from everlong.nodes.context import Context, context_within, user_of
from everlong.nodes.eviction import moved, spilled
from everlong.nodes.guidance import READ_STORED
from everlong.nodes.internals import value_in
from everlong.nodes.oversize import waits
from everlong.nodes.pruning import EVICTED
from everlong.nodes.reading_tools import read_file
from everlong.nodes.run import Run, thread_of
from everlong.nodes.state import Injected
from everlong.nodes.tokens import estimate_text, estimate_tools
from everlong.nodes.toolbox import MEMORY, READING, SESSIONS, Toolbox
from everlong.nodes.working import now_of

Outcome = ToolMessage | Command[Any]
Execute = Callable[[ToolCallRequest], Awaitable[Outcome]]
Wrapper = Callable[[ToolCallRequest, Execute], Awaitable[Outcome]]
Tools = Sequence[BaseTool | Callable[..., Any] | dict[str, Any]]


class Carried(Toolbox):
    """What a model that is not ours to ask is sent beside the history, as far as is known."""

    sends = False

    def __init__(self, tools: Tools = (), system_prompt: str = "") -> None:
        named = [tool for tool in tools if not isinstance(tool, dict)]
        own = ToolNode(named).tools_by_name if named else {}
        schemas = [convert_to_openai_tool(tool) for tool in own.values()]
        schemas += [tool for tool in tools if isinstance(tool, dict)]
        self._names = frozenset(own)
        self._size = estimate_tools(schemas) + estimate_text(system_prompt)

    def offered(self, context: Context) -> tuple[str, ...]:  # noqa: ARG002 - as the base class
        """Return the names of the tools."""
        return tuple(sorted(self._names))

    def reader(self, context: Context) -> str:  # noqa: ARG002 - as the base class
        """Return the name of the tool that reads back what we store; empty: there is none."""
        return READ_STORED if READ_STORED in self._names else ""

    def fixed_tokens(self, context: Context, injected: Injected) -> int:  # noqa: ARG002 - as the base class
        """Estimate what each request carries beside the history."""
        return self._size


def tools_of(
    settings: Context | Mapping[str, Any] | None = None,
    *,
    memory: bool = True,
    messages_key: str = "messages",
    clock: Clock = utc_now,
) -> list[BaseTool]:
    """Return our tools for a graph of your own: `read_stored`, `list_files` and those of memory.

    They run in any `ToolNode` of a graph with a store. `settings` as those of its nodes.

    Raises:
        InvalidInputError: a setting is unknown or out of range.
    """
    defaults = checked(settings)
    chosen = (*READING, *(MEMORY if memory else ()), *(SESSIONS if memory else ()))
    return [_adapted(tool, defaults, messages_key, clock) for tool in chosen]


def eviction_wrapper(
    settings: Context | Mapping[str, Any] | None = None,
    *,
    tools: Tools = (),
    messages_key: str = "messages",
    clock: Clock = utc_now,
) -> Wrapper:
    """Return what moves oversized results away before any checkpoint holds them.

    For `ToolNode(my_tools, awrap_tool_call=...)`, in the place of an eviction node. `tools` as
    there.

    Raises:
        InvalidInputError: a setting is unknown or out of range.
    """
    defaults, reader = checked(settings), Carried(tools).reader(Context())

    async def wrap(request: ToolCallRequest, execute: Execute) -> Outcome:
        given = cast("ToolRuntime[Any, Any]", request.runtime)
        runtime = ours_in(given, defaults, messages_key, clock)
        outcome = await execute(request)
        return await small(runtime, outcome, reader=reader, messages_key=messages_key)

    return wrap


async def small(
    runtime: ToolRuntime[Context, Any],
    outcome: Outcome,
    *,
    reader: str,
    messages_key: str = "messages",
) -> Outcome:
    """Return what came of a call, with a preview in the place of a text that is too long."""
    several: Any = outcome  # a tool may return a list, of which the wrapper's type does not know
    if isinstance(several, list):
        each = cast("list[Outcome]", several)
        done = [await small(runtime, o, reader=reader, messages_key=messages_key) for o in each]
        return cast("Outcome", done)
    if isinstance(outcome, Command):
        update: Any = outcome.update
        if not isinstance(update, dict) or messages_key not in update:
            return outcome
        given = convert_to_messages(cast("list[Any]", update[messages_key]))
        changed = [await _small(runtime, one, reader) for one in given]
        return replace(outcome, update=update | {messages_key: changed})
    return await _small(runtime, outcome, reader)


async def _small(runtime: ToolRuntime[Context, Any], message: Any, reader: str) -> Any:
    run, named = run_of_call(runtime), runtime.state.get("named_windows", {})
    spilt = await spilled(run, message, named=named, reader=reader)
    if run.store is None or not isinstance(spilt, ToolMessage) or not waits(spilt):
        return spilt
    done = await moved(run, run.store, spilt, named=named, reader=reader)
    run.tell({"type": "eviction", "call": done.tool_call_id, **done.additional_kwargs[EVICTED]})
    return done


def run_of_call(runtime: ToolRuntime[Context, Any]) -> Run:
    """Return the run that a tool is called in."""
    return Run(
        context=runtime.context,
        user_id=user_of(runtime),
        thread_id=thread_of(runtime),
        store=runtime.store,
        instant=runtime.state["call"]["instant"],
        tell=runtime.stream_writer,
    )


def _adapted(
    tool: BaseTool, defaults: Mapping[str, Any], messages_key: str, clock: Clock
) -> BaseTool:
    """Return a tool of ours that finds its way in a foreign graph's state and context."""
    own = cast("StructuredTool", tool)
    work = cast("Callable[..., Any]", own.coroutine)

    @functools.wraps(work)
    async def found(*args: Any, **given: Any) -> Any:
        ours = ours_in(given["runtime"], defaults, messages_key, clock)
        return await work(*args, **given | {"runtime": ours})

    name = READ_STORED if tool.name == read_file.name else tool.name
    changes = {"coroutine": found, "name": name, "handle_tool_error": True}
    return own.model_copy(update=changes)  # others' graphs do not take a tool's error for a result


def ours_in(
    runtime: ToolRuntime[Any, Any], defaults: Mapping[str, Any], messages_key: str, clock: Clock
) -> ToolRuntime[Context, Any]:
    """Return a tool's runtime in a foreign graph as our tools know theirs.

    Raises:
        InvalidInputError: a setting in the run's context is out of range, or another user's thread.
    """
    values = fields_in(runtime.state, (KEPT, messages_key))
    kept: Mapping[str, Any] = values.get(KEPT) or {}
    state: dict[str, Any] = {name: kept[name] for name in SMALL if name in kept}
    state["messages"] = values.get(messages_key) or []
    state["call"] = {"instant": now_of(clock)} | state.get("call", {})
    ours = replace(runtime, state=state, context=context_within(runtime.context, defaults))
    _refuse_resumed(ours, kept or value_in(runtime.config, KEPT) or {})
    return ours


def _refuse_resumed(runtime: ToolRuntime[Context, Any], kept: Mapping[str, Any]) -> None:
    """Refuse a call in another user's run: who resumes it may be another than who began it.

    `kept` is of the graph itself, since its nodes see no channel that its state class lacks.
    """
    if owner := kept.get("owner"):
        refuse_stranger(user_of(runtime), thread_of(runtime), owner)
