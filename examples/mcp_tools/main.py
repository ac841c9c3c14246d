"""An agent with the tools of an MCP server, one of which waits for a person.

Run it with `python examples/mcp_tools/main.py`; it needs `pip install 'everlong[mcp,embedded]'`, no
key and no network: the offline model makes the calls that it is told to make.
"""

import asyncio
import sys
from pathlib import Path
from uuid import uuid4

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from everlong.graph.runtime import Agent, open_agent
from everlong.nodes.context import Context

SERVER = Path(__file__).with_name("stock_server.py")
SERVERS = {"stock": {"command": sys.executable, "args": [str(SERVER)]}}
CONTEXT = Context(user_id="kim", approve_tools=("stock_reserve",))


async def main() -> None:
    """Ask for a stock level, and for a reservation that a person agrees to."""
    thread = {"configurable": {"thread_id": f"stock-{uuid4().hex[:8]}"}}
    async with open_agent(mcp=SERVERS) as agent:
        await say(agent, thread, 'Call stock_level {"item": "pallet"}.')
        await say(agent, thread, 'Call stock_reserve {"item": "pallet", "count": 5}.')
        (asked,) = (await agent.aget_state(thread)).interrupts
        print("asked:", asked.value["action_requests"][0]["description"])
        await say(agent, thread, Command(resume={asked.id: {"type": "approve"}}))


async def say(agent: Agent, thread: dict, given: str | Command) -> None:
    """Run a call, and print what the tools returned."""
    call = {"messages": [("user", given)]} if isinstance(given, str) else given
    before = await shown(agent, thread)
    await agent.ainvoke(call, thread, context=CONTEXT)
    for line in (await shown(agent, thread))[len(before) :]:
        print("tool:", line)


async def shown(agent: Agent, thread: dict) -> list[str]:
    """Return the tool results that the thread holds."""
    messages = (await agent.aget_state(thread)).values.get("messages", [])
    return [message.text for message in messages if isinstance(message, ToolMessage)]


if __name__ == "__main__":
    asyncio.run(main())
