"""A process that works in a thread and is killed inside a given node.

Usage: python dying_process.py DSN NODE LEDGER; the tool notes its runs in the file LEDGER.
"""

import asyncio
import logging
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from everlong.graph.runtime import open_agent
from everlong.nodes.context import Compaction, Context, Eviction
from scripted_model import ScriptedModel, asks_for_summary, calling

WHOLE = "row,12,ok\n" * 300
ASKED = "I like room 12: book the room"
THREAD: RunnableConfig = {"configurable": {"thread_id": "t1"}}


def tools_noting_in(path: Path):
    @tool
    def book(room: str) -> str:
        """Book a room."""
        with path.open("a") as file:
            file.write(f"booked {room}\n")
        return f"booked {room}, receipt 881\n{WHOLE}"

    @tool
    async def fetch_key() -> str:
        """Fetch the key; a process that is dying does not live to the end of it."""
        if DYING[0] == "tools":
            await asyncio.sleep(2)  # the other call has long finished
            os.kill(os.getpid(), signal.SIGKILL)
        return "the key"

    return [book, fetch_key]


DYING = [""]


def script(*, dying: str = ""):
    """Answer by what is asked; die where told to."""

    def answer(messages):
        last = messages[-1].text
        if "<conversation>" in last and "NO_REPLY" in last:
            die_if(dying, "flush_memory")
            return "- The user likes room 12."
        if "<document>" in last:
            die_if(dying, "consolidate")
            return "# Rooms\n- The user likes room 12."
        if asks_for_summary(messages):
            die_if(dying, "compact")
            return "They talked about rooms."
        if messages[-1].type == "tool":
            die_if(dying, "reason")
            return "Booked, receipt 881."
        if "book" in last:
            return calling(("book", {"room": "12"}), ("fetch_key", {}))
        return f"Noted: {last}"

    return answer


def die_if(dying: str, here: str) -> None:
    if dying == here:
        os.kill(os.getpid(), signal.SIGKILL)


def context(model) -> Context:
    return Context(
        user_id="kim",
        model=model,
        compaction=Compaction(trigger_messages=6, keep_messages=2, flush_before=False),
        eviction=Eviction(over_chars=1_000, preview_chars=100),
    )


class DyingHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


async def main(dsn: str, node: str, ledger: str) -> None:
    dying = ""

    def clock():
        die_if(dying, "open_call")
        return datetime(2026, 3, 9, 12, tzinfo=UTC)

    async with open_agent(tools=tools_noting_in(Path(ledger)), dsn=dsn, clock=clock) as agent:

        async def say(text: str, model: ScriptedModel) -> None:
            given = {"messages": [{"role": "user", "content": text}]}
            await agent.ainvoke(given, THREAD, context=context(model))

        if node != "consolidate":
            await say("one", ScriptedModel(script=script()))
        if node == "compact":
            await say("two", ScriptedModel(script=script()))
        if node == "evict":
            logger = logging.getLogger("everlong.eviction")
            logger.setLevel(logging.INFO)
            logger.addHandler(DyingHandler())
        dying = DYING[0] = node
        await say(ASKED, ScriptedModel(script=script(dying=node)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
