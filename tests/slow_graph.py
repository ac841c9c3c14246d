"""everlong with tools that take their time, for a server to load by its path."""

import asyncio

from langgraph.types import interrupt

from everlong.graph.agent import build


async def slow_tool(seconds: float) -> str:
    """Wait for so many seconds."""
    await asyncio.sleep(seconds)
    return f"waited {seconds} s"


def ask_person(question: str) -> str:
    """Ask the person, and wait for the answer."""
    return f"the person said {interrupt(question)}"


graph = build(tools=[slow_tool, ask_person]).compile(name="everlong")
