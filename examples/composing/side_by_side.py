"""Two agents under one parent: each with its own history, both with what is known of the user.

Run it with `python examples/composing/side_by_side.py`.
"""

import asyncio
from typing import Any, Literal

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from everlong.graph.agent import build
from everlong.stores import transcripts

sales = build(defaults={"model": "offline", "system_prompt": "You sell."})
support = build(defaults={"model": "offline", "system_prompt": "You help."})


def to_whom(state: MessagesState) -> Literal["sales", "support"]:
    """Go by what the user says."""
    return "support" if "help" in state["messages"][-1].text.lower() else "sales"


store = InMemoryStore()
graph = (
    StateGraph(MessagesState)
    .add_node("sales", sales.compile())
    .add_node("support", support.compile())
    .add_conditional_edges(START, to_whom)
    .compile(checkpointer=InMemorySaver(), store=store)
)


async def main() -> None:
    """Tell one of them something that the other is asked for, in another thread."""
    for thread_id, text in (
        ("t1", "From now on all my exports go through Shanghai port."),
        ("t2", "Help: which port do my exports go through?"),
    ):
        given: Any = {"messages": [("user", text)]}
        thread: Any = {"configurable": {"thread_id": thread_id}}
        after = await graph.ainvoke(given, thread, context={"user_id": "kim"})
        print(f"> {text}\n{after['messages'][-1].text}\n")
    print("Their transcripts:", ", ".join(await transcripts.threads(store, "kim")))


if __name__ == "__main__":
    asyncio.run(main())
