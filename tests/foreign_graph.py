"""A graph of somebody else: its own state class, its own tools, its own model; our nodes in it."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from everlong.graph.parts import after_overflow, compaction_node, eviction_node, memory_node
from scripted_model import ScriptedModel, asks_for_summary, kind_of

KIM = {"user_id": "kim"}
SUMMARY = "What was said before."
COMPACTING = {"trigger_messages": 6, "keep_messages": 2, "flush_before": False}


class Planned(MessagesState):
    """A state with a channel of its own."""

    plan: str


def says(messages: Sequence[BaseMessage]) -> str:
    """Sum up and remember where that is asked for; else say how much was heard."""
    if asks_for_summary(messages):
        return SUMMARY
    return "NO_REPLY" if kind_of(messages) == "flush" else f"{len(messages)} heard"


def foreign(
    backend: Any,
    model: ScriptedModel,
    *,
    schema: Any = Planned,
    tools: Sequence[Any] = (),
    tool_node: ToolNode | None = None,
    key: str = "messages",
    **settings: Any,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build it: evict, compact, the agent that calls tools, and what keeps a call at its end."""
    given: Any = {"model": model, "memory": {"enabled": False}, "compaction": COMPACTING} | settings
    bound = model.bind_tools(list(map(_schema, tools))) if tools else model

    async def agent(state: Any) -> Command[Literal["tools", "remember", "compact"]]:
        history = state[key] if isinstance(state, dict) else getattr(state, key)
        try:
            answer = await bound.ainvoke(history)
        except Exception as error:  # noqa: BLE001 - raised again where it is none of ours
            return Command(goto="compact", update=after_overflow(error))
        goto = "tools" if answer.tool_calls else "remember"
        return Command(goto=goto, update={key: [answer], "plan": "answer"})

    builder = (
        StateGraph(schema, context_schema=dict)
        .add_node("evict", eviction_node(given, tools=tools, messages_key=key))
        .add_node("compact", compaction_node(given, tools=tools, messages_key=key))
        .add_node("agent", agent)
        .add_node("tools", tool_node or ToolNode(list(tools), messages_key=key))
        .add_node("remember", memory_node(given, messages_key=key))
        .add_edge(START, "evict")
        .add_edge("evict", "compact")
        .add_edge("compact", "agent")
        .add_edge("tools", "evict")
        .add_edge("remember", END)
    )
    return builder.compile(checkpointer=backend.saver, store=backend.store)


def _schema(tool: Any) -> dict[str, Any]:
    name = getattr(tool, "name", None) or tool.__name__
    return {"type": "function", "function": {"name": name, "parameters": {}}}


def thread(name: str = "t1") -> Any:
    return {"configurable": {"thread_id": name}}


def user(text: str, key: str = "messages") -> dict[str, Any]:
    return {key: [{"role": "user", "content": text}]}


def texts(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


Begin = Callable[..., CompiledStateGraph[Any, Any, Any, Any]]
