"""Our nodes in a graph that is not ours: its state class, its tools, its way of asking a model.

Run it with `python examples/composing/nodes_in_my_graph.py`.
"""

import asyncio
from typing import Any, Literal

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from everlong.graph.parts import (
    after_overflow,
    compaction_node,
    eviction_wrapper,
    memory_node,
    tools_of,
)
from everlong.nodes.models import chat_model

model = chat_model("offline")
SETTINGS = {"model": model, "compaction": {"trigger_messages": 8, "keep_messages": 3}}


class Planned(MessagesState):
    """The graph's own state; what our nodes keep is in a channel that they bring along."""

    plan: str


def price_list() -> str:
    """Return the whole price list."""
    return "\n".join(f"article {number}: {number * 3} EUR" for number in range(6_000))


tools = [price_list, *tools_of(SETTINGS)]


async def think(state: Planned) -> Command[Literal["tools", "remember", "compact"]]:
    """Ask the model, and let `compact` answer where it says that the request is too long."""
    try:
        answer = await model.bind_tools(tools).ainvoke(state["messages"])
    except Exception as error:  # noqa: BLE001 - raised again where it says anything else
        return Command(goto="compact", update=after_overflow(error))
    goto: Any = "tools" if answer.tool_calls else "remember"
    return Command(goto=goto, update={"messages": [answer], "plan": "answered"})


graph = (
    StateGraph(Planned)
    .add_node("compact", compaction_node(SETTINGS, tools=tools))
    .add_node(think)
    .add_node("tools", ToolNode(tools, awrap_tool_call=eviction_wrapper(SETTINGS, tools=tools)))
    .add_node("remember", memory_node(SETTINGS))
    .add_edge(START, "compact")
    .add_edge("compact", "think")
    .add_edge("tools", "compact")
    .add_edge("remember", END)
    .compile(checkpointer=InMemorySaver(), store=InMemoryStore())
)


async def main() -> None:
    """Have a long result moved away, and the history compacted."""
    thread: Any = {"configurable": {"thread_id": "t1"}}
    for text in (
        "My order is A-17.",
        "Call price_list {}.",
        "And my deposit is 250 EUR.",
        "Thanks.",
    ):
        given: Any = {"messages": [("user", text)]}
        async for event in graph.astream(
            given, thread, context={"user_id": "kim"}, stream_mode="custom"
        ):
            print(f"[{event['type']}]")
        state = (await graph.aget_state(thread)).values
        print(
            f"> {text}\n{state['messages'][-1].text[:200]}\n({len(state['messages'])} messages)\n"
        )


if __name__ == "__main__":
    asyncio.run(main())
