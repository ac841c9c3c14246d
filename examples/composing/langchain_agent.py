"""langchain's `create_agent` with our compaction, eviction and memory.

Run it with `python examples/composing/langchain_agent.py`; it needs `everlong[middleware]`.
"""

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from everlong.graph.middleware import EverlongMiddleware
from everlong.nodes.models import chat_model


def stock_level(item: str) -> str:
    """Say how many of an item are in stock."""
    return f"{item}: 12 in stock"


agent = create_agent(
    chat_model("offline"),
    [stock_level],
    system_prompt="You keep a shop.",
    middleware=[EverlongMiddleware({"compaction": {"trigger_messages": 6, "keep_messages": 2}})],
    checkpointer=InMemorySaver(),
    store=InMemoryStore(),
)


async def main() -> None:
    """Talk until the history is compacted; then ask, in another thread, for what was said."""
    for thread_id, text in (
        ("t1", "From now on all my exports go through Shanghai port."),
        ("t1", 'Call stock_level {"item": "pallet"}.'),
        ("t1", "My order is A-17."),
        ("t1", "What is my order?"),
        ("t2", "Which port do my exports go through?"),
    ):
        given: Any = {"messages": [("user", text)]}
        thread: Any = {"configurable": {"thread_id": thread_id}}
        print(f"> {text}")
        async for mode, part in agent.astream(
            given, thread, context={"user_id": "kim"}, stream_mode=["messages", "custom"]
        ):
            if mode == "messages" and isinstance(part[0], AIMessageChunk):
                print(part[0].text, end="", flush=True)
            elif mode == "custom" and part["type"].startswith("compaction"):
                print(f"[{part['type']}] ", end="")
        print("\n")


if __name__ == "__main__":
    asyncio.run(main())
