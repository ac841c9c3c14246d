"""deepagents with our compaction, eviction and memory in the place of its own summarisation.

Run it with `python examples/composing/deep_agent.py`; it needs `everlong[middleware]` and
`deepagents`.
"""

import asyncio
from typing import Any

from deepagents import create_deep_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from everlong.graph.middleware import EverlongMiddleware
from everlong.nodes.models import chat_model

SETTINGS = {"compaction": {"trigger_messages": 6, "keep_messages": 2}}

agent = create_deep_agent(
    chat_model("offline"),
    middleware=[EverlongMiddleware(SETTINGS, name="SummarizationMiddleware")],  # in its place
    checkpointer=InMemorySaver(),
    store=InMemoryStore(),
)


async def main() -> None:
    """Write a file with a tool of its own, and talk until the history is compacted."""
    thread: Any = {"configurable": {"thread_id": "t1"}}
    for text in (
        "My order is A-17.",
        'Call write_file {"file_path": "/note.txt", "content": "ship on Monday"}.',
        "My deposit is 250 EUR.",
        "What is my order?",
    ):
        given: Any = {"messages": [("user", text)]}
        after = await agent.ainvoke(given, thread, context={"user_id": "kim"})
        print(f"> {text}\n{after['messages'][-1].text}\n({len(after['messages'])} messages)\n")
    print("files:", ", ".join((await agent.aget_state(thread)).values["files"]))


if __name__ == "__main__":
    asyncio.run(main())
