"""A parent with channels of its own: a node of it asks the agent, which goes on where it was.

Run it with `python examples/composing/asked_by_a_node.py`.
"""

import asyncio
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict

from everlong.graph.agent import build

agent = build(defaults={"model": "offline", "memory": {"enabled": False}}).compile()


class Ticket(TypedDict, total=False):
    """What the parent keeps: no messages at all."""

    question: str
    answer: str


async def ask(state: Ticket) -> Ticket:
    """Ask the agent; its thread is that of this node, in the parent's."""
    answered = await agent.ainvoke({"messages": [("user", state["question"])]})
    return {"answer": answered["messages"][-1].text}


graph = (
    StateGraph(Ticket)
    .add_node(ask)
    .add_edge(START, "ask")
    .compile(checkpointer=InMemorySaver(), store=InMemoryStore())
)


async def main() -> None:
    """Ask twice; the second answer needs the first question."""
    thread: Any = {"configurable": {"thread_id": "ticket-1"}}
    context: Any = {"user_id": "kim"}
    for question in ("My order is A-17.", "What is my order?"):
        after = await graph.ainvoke({"question": question}, thread, context=context)
        print(f"> {question}\n{after['answer']}\n")


if __name__ == "__main__":
    asyncio.run(main())
