"""A deployed agent as a node of a graph here.

Start a server with `langgraph dev`, then run
`python examples/composing/remote_agent.py http://127.0.0.1:2024`.
"""

import asyncio
import sys
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client

from everlong.graph.remote import remote_node


async def main(url: str) -> None:
    """Ask the agent there, twice; the second answer needs what was said first."""
    async with get_client(url=url, api_key=None) as client:
        remote = RemoteGraph("everlong", client=client)
        graph = (
            StateGraph(MessagesState)
            .add_node("agent", remote_node(remote, {"memory": {"enabled": False}}))
            .add_edge(START, "agent")
            .compile(checkpointer=InMemorySaver())
        )
        thread: Any = {"configurable": {"thread_id": "t1"}}
        for text in ("My order is A-17.", "What is my order?"):
            given: Any = {"messages": [("user", text)]}
            after = await graph.ainvoke(given, thread, context={"user_id": "kim"})
            print(f"> {text}\n{after['messages'][-1].text}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
