"""A model call of langchain's agent, as our nodes know theirs: what is sent, with which tools."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from langchain.agents.middleware.types import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config
from langgraph.prebuilt import ToolRuntime

from everlong.graph.foreign import Work
from everlong.graph.views import has_view
from everlong.nodes.context import Context
from everlong.nodes.guidance import READ_STORED
from everlong.nodes.hearing import Heard
from everlong.nodes.inner import Answering
from everlong.nodes.internals import saver_in
from everlong.nodes.reading_tools import read_file
from everlong.nodes.repair import NOT_JSON, error_result
from everlong.nodes.request import fixed_tokens, system_message, with_material
from everlong.nodes.rewriting import whole_history
from everlong.nodes.state import Injected, Update
from everlong.nodes.tokens import estimate_tools
from everlong.nodes.toolbox import Toolbox
from everlong.nodes.transcript import call_ids

ALL = Toolbox()
NEWEST_CHECKPOINTS = 3
"""In which results of calls are looked for that a new user message has overtaken."""


class Asked(Toolbox):
    """The tools of one request: the agent's own and, of ours, those that are on."""

    def __init__(
        self, request: ModelRequest[Any], context: Context, ours: Sequence[BaseTool]
    ) -> None:
        names = {READ_STORED if n == read_file.name else n for n in ALL.offered(context)}
        on = names if request.runtime.store is not None else set[str]()
        registered = [tool for tool in request.tools if any(tool is one for one in ours)]
        off = [tool for tool in registered if cast("BaseTool", tool).name not in on]
        self.tools = [tool for tool in request.tools if not any(tool is one for one in off)]
        self._names = tuple(cast("BaseTool", tool).name for tool in registered if tool not in off)
        self._size = estimate_tools([convert_to_openai_tool(tool) for tool in self.tools])
        self._options = request.model_settings

    def offered(self, context: Context) -> tuple[str, ...]:  # noqa: ARG002 - as the base class
        """Return the names of those of ours that are on."""
        return self._names

    def reader(self, context: Context) -> str:  # noqa: ARG002 - as the base class
        """Return the name of the tool that reads back what we store; empty: none is offered."""
        return READ_STORED if READ_STORED in self._names else ""

    def fixed_tokens(self, context: Context, injected: Injected) -> int:
        """Estimate what the request carries beside the history."""
        return fixed_tokens(context, injected, tools=self._names, tools_tokens=self._size)

    def bind(self, model: BaseChatModel, names: Sequence[str]) -> Answering:  # noqa: ARG002 - all
        """Return the model as the agent asks it, but without anything that forces a call."""
        return model.bind_tools(self.tools, **self._options) if self.tools else model


def sized(runtime: ToolRuntime[Context, Any]) -> ToolRuntime[Context, Any]:
    """Return a tool's runtime whose settings know the window of the model that called it."""
    settings: Mapping[str, Any] = runtime.state["call"].get("settings", {})
    window = settings.get("compaction", {}).get("window_tokens", 0)
    compaction = runtime.context.compaction.model_copy(update={"window_tokens": window})
    context = runtime.context.model_copy(update={"compaction": compaction})
    return replace(runtime, context=context)


def request_of(request: ModelRequest[Any], work: Work, asked: Asked) -> ModelRequest[Any]:
    """Return the request that is sent: their system prompt and ours, MEMORY.md, the history."""
    context = work.runtime.context
    history = _history(request, work)
    messages = with_material(context, work.state.injected, history)
    return request.override(
        system_message=_system(request.system_message, context, history, asked),
        messages=cast("list[AnyMessage]", messages),
        tools=asked.tools,
    )


def _system(
    given: SystemMessage | None, context: Context, history: Sequence[BaseMessage], asked: Asked
) -> SystemMessage | None:
    """Return the system message with our guidance at its end; blocks of theirs stay blocks."""
    names = asked.offered(context)
    whole = system_message(context, history, names)
    if given is None or isinstance(given.content, str):
        return whole if whole.content else None
    bare = context.model_copy(update={"system_prompt": ""})
    ours = system_message(bare, history, names).text
    blocks = [*given.content, *([{"type": "text", "text": ours}] if ours else [])]
    return given.model_copy(update={"content": blocks})


def _history(request: ModelRequest[Any], work: Work) -> list[BaseMessage]:
    """Return the history that is sent: ours, with what middleware around us has made of it.

    They may send a message otherwise than the state has it, and put one at the end that is in no
    state; that is as they want it, unless a message is shorter now.
    """
    if not work.written and not has_view(request.state):
        return list(request.messages)
    before = {message.id: message for message in request.state["messages"]}
    views = {message.id: message for message in request.messages}
    last = max((i for i, one in enumerate(request.messages) if one.id in before), default=-1)
    kept = [
        views.get(one.id, one) if one is before.get(one.id) else one for one in work.state.messages
    ]
    return [*kept, *request.messages[last + 1 :]]


@contextmanager
def listening() -> Generator[Heard]:
    """Hear whether a part of the answer is given out meanwhile."""
    heard = Heard()
    outside = var_child_runnable_config.set(heard.config())
    try:
        yield heard
    finally:
        var_child_runnable_config.reset(outside)


def with_malformed_answered(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the history with a result for each call that was no valid JSON.

    As langchain sends it, and writes it in a moment.
    """
    answered = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
    found: list[BaseMessage] = []
    for message in messages:
        calls = message.invalid_tool_calls if isinstance(message, AIMessage) else ()
        ids = [call["id"] for call in calls if call["id"] and call["id"] not in answered]
        found += [message, *(error_result(cast("AIMessage", message), i, NOT_JSON) for i in ids)]
    return found


async def with_overtaken(work: Work) -> Work:
    """Add results that were there when the user typed instead of answering a question.

    Calls of one message run side by side; where one waits for a person, the results of the others
    are in no history yet, and a new user message would lose them.
    """
    messages = work.state.messages
    places = [i for i, one in enumerate(messages) if isinstance(one, AIMessage)]
    if not places or not isinstance(messages[-1], HumanMessage):
        return work
    answered = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
    waiting = set(call_ids(messages[places[-1]])) - answered
    found = await _pending(waiting) if waiting else []
    if not found:
        return work
    after = places[-1] + 1
    return work.with_update(
        Update(messages=whole_history([*messages[:after], *found, *messages[after:]]))
    )


async def _pending(calls: set[str]) -> list[ToolMessage]:
    """Return results of these calls that a step which did not end has left in the checkpointer."""
    config = get_config()
    saver = saver_in(config)
    if saver is None:
        return []
    names = ("thread_id", "checkpoint_ns")
    given = config.get("configurable", {})
    place = {name: given[name] for name in names if name in given}
    place["checkpoint_ns"] = str(place.get("checkpoint_ns", "")).rpartition("|")[0]
    results: dict[str, ToolMessage] = {}
    async for one in saver.alist({"configurable": place}, limit=NEWEST_CHECKPOINTS):
        written = [value for _, channel, value in one.pending_writes or () if channel == "messages"]
        for message in (each for value in written for each in as_list(value)):
            if isinstance(message, ToolMessage) and message.tool_call_id in calls:
                results.setdefault(message.tool_call_id, message)
    return list(results.values())


def as_list(value: Any) -> list[Any]:
    """Return what a step has written to the messages, one or many."""
    return cast("list[Any]", value) if isinstance(value, list) else [value]
