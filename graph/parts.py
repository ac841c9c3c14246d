"""Our nodes for a graph of your own: `compact` and `evict` alone, or with long-term memory.

    StateGraph(MyState)
    .add_node("evict", eviction_node(settings, tools=my_tools))
    .add_node("compact", compaction_node(settings, tools=my_tools))
    .add_node("agent", my_agent)

They are the nodes of the agent itself. Each brings its channels along (`foreign.Foreign`), so a
state class needs nothing but a channel of messages that merges by id, such as `MessagesState` has.
The first of them in a run begins the call: it repairs what is broken in the history and reads
MEMORY.md. Each does nothing where nothing is to be done.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.pregel import Pregel
from langgraph.runtime import Runtime

from everlong.graph.agent import Clock, utc_now
from everlong.graph.callers import Caller, checked, held_by, own_input, undivided
from everlong.graph.exchange import MESSAGES, brought, new_from_parent
from everlong.graph.foreign import KEPT, OVERFLOW, Work, reads, refuse_unmerged, work_on
from everlong.graph.foreign_tools import Carried, Tools, eviction_wrapper, tools_of
from everlong.graph.steps import (
    compacted,
    evicted,
    forgotten,
    heard,
    opened,
    refused,
    remembered,
    told,
)
from everlong.nodes.context import Context, context_within
from everlong.nodes.internals import saver_in
from everlong.nodes.overflow import overflow_in
from everlong.nodes.toolbox import Toolbox

__all__ = [
    "after_overflow",
    "as_node",
    "compaction_node",
    "eviction_node",
    "eviction_wrapper",
    "memory_node",
    "tools_of",
]

Settings = Context | Mapping[str, Any] | None
Node = Callable[..., Awaitable[dict[str, Any]]]
Step = Callable[[Work, Toolbox], Awaitable[Work]]


def compaction_node(
    settings: Settings = None,
    *,
    tools: Tools = (),
    system_prompt: str = "",
    messages_key: str = "messages",
    clock: Clock = utc_now,
) -> Node:
    """Return a node that compacts the history where it is over a trigger; put it before your model.

    `settings` hold where the context of a run does not say otherwise; `model` is the one whose
    window counts, and which sums up. `tools` and `system_prompt` are what your model is sent
    besides: they count until a provider reports the true size.

    Raises:
        InvalidInputError: a setting is unknown or out of range.
    """
    return _node(compacted, settings, Carried(tools, system_prompt), messages_key, clock)


def eviction_node(
    settings: Settings = None,
    *,
    tools: Tools = (),
    messages_key: str = "messages",
    clock: Clock = utc_now,
) -> Node:
    """Return a node that moves oversized results to the user's files; put it after your tools.

    `tools` are those that your model is told of: `read_stored` of `tools_of` should be among them.

    Raises:
        InvalidInputError: a setting is unknown or out of range.
    """
    return _node(evicted, settings, Carried(tools), messages_key, clock)


def memory_node(
    settings: Settings = None, *, messages_key: str = "messages", clock: Clock = utc_now
) -> Node:
    """Return a node that keeps what a call has brought: transcript, facts, MEMORY.md; put it last.

    Raises:
        InvalidInputError: a setting is unknown or out of range.
    """

    async def step(work: Work, _: Toolbox) -> Work:
        return await remembered(work)

    return _node(step, settings, Carried(), messages_key, clock)


def as_node(agent: Pregel[Any, Any, Any, Any]) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return an agent as a node of a graph whose messages it shares, with a history of its own.

    For an agent of langchain's with our middleware, compiled with `checkpointer=True`; our own
    graph needs no such node around it. It is given what is new to it, and brings what it says.
    """

    async def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
        given = own_input(state, config)
        saver = saver_in(config) if agent.checkpointer is True else None
        caller = Caller(config=config, runtime=Runtime(), saver=saver, is_inside=True)
        async with undivided(caller):
            values: Mapping[str, Any] = await held_by(agent, config) if agent.checkpointer else {}
            ours: Mapping[str, Any] = values.get(KEPT) or {}
            kept = {MESSAGES: values.get(MESSAGES, ()), "call": ours.get("call")}
            new = new_from_parent(given, kept)
            return brought(await agent.ainvoke(new), given)

    return node


def after_overflow(error: Exception) -> dict[str, Any]:
    """Return the update that has the next compaction answer a provider's refusal.

    For the node that asks your model, which then goes to the compaction and comes back:
    `return Command(goto="compact", update=after_overflow(error))`. The second refusal in a run is
    raised by the compaction, as langchain-core's `ContextOverflowError`.

    Raises:
        Exception: `error` itself, where it says anything but "too long".
    """
    found = overflow_in(error)
    if found is None:
        raise error
    return {OVERFLOW: {"limit": found.limit, "requested": found.requested, "said": str(error)}}


def _node(
    step: Step, settings: Settings, carried: Toolbox, messages_key: str, clock: Clock
) -> Node:
    """Return a step of ours as a node of a foreign graph."""
    defaults = checked(settings)

    async def part(values: Mapping[str, Any], runtime: Runtime[Any]) -> dict[str, Any]:
        refuse_unmerged(get_config(), messages_key)
        context = context_within(runtime.context, defaults)
        messages: Sequence[BaseMessage] = values.get(messages_key) or ()
        work = work_on(values, runtime, messages=messages, context=context)
        work = refused(await opened(work, carried, clock), values.get(OVERFLOW))
        work = await forgotten(await told(work, may_wait=True), carried)
        work = await step(heard(work), carried)
        return (await told(work, may_wait=False)).update(messages_key)

    part.__annotations__["values"] = reads(messages_key)  # LangGraph adds its channels to the graph
    return part
