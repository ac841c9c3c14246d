"""The agent as a node of your own graph: it keeps its history, the supervisor keeps its own.

Run it with `python examples/composing/supervisor.py`.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore

from everlong.graph.agent import build


@dataclass
class Shop:
    """What a run of the whole graph is given; the agent takes `user_id` from it."""

    user_id: str
    branch: str = "Shanghai"


SETTINGS = {
    "model": "offline",
    "compaction": {"trigger_messages": 6, "keep_messages": 2},
}
"""Of the agent's runs, wherever a run's context does not say otherwise."""


def who_answers(state: MessagesState) -> Literal["opening_hours", "everlong"]:
    """Let a plain function answer what it can."""
    return "opening_hours" if "open" in state["messages"][-1].text else "everlong"


async def opening_hours(_: MessagesState, runtime: Runtime[Shop]) -> dict[str, Any]:
    """Answer without a model."""
    return {"messages": [AIMessage(f"{runtime.context.branch} is open from 9 to 18.")]}


graph = (
    StateGraph(MessagesState, context_schema=Shop)
    .add_node(opening_hours)
    .add_node("everlong", build(defaults=SETTINGS).compile())
    .add_conditional_edges(START, who_answers)
    .compile(checkpointer=InMemorySaver(), store=InMemoryStore())
)


async def main() -> None:
    """Talk until the agent has compacted, and show both histories."""
    thread: Any = {"configurable": {"thread_id": "t1"}}
    for text in (
        "My order is A-17.",
        "When do you open?",
        "My deposit is 250 EUR.",
        "Deliver it to Hamburg, please.",
        "What is my order?",
    ):
        given: Any = {"messages": [("user", text)]}
        after = await graph.ainvoke(given, thread, context=Shop(user_id="kim"))
        print(f"> {text}\n{after['messages'][-1].text}\n")
    whole = (await graph.aget_state(thread)).values["messages"]
    place: Any = {"configurable": {"thread_id": "t1", "checkpoint_ns": "everlong"}}
    own = (await graph.aget_state(place)).values["messages"]
    print(f"The supervisor holds {len(whole)} messages, the agent {len(own)}:")
    for message in own:
        print(f"  {message.type:5} {' '.join(message.text.split())[:100]}")


if __name__ == "__main__":
    asyncio.run(main())
