"""A process that answers in the background mode and is killed before its record is done.

Usage: python dying_worker.py DSN WHEN; WHEN is `written`, `reading` or `flushed`.
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

from everlong.graph.runtime import open_agent
from everlong.nodes.context import Context, Memory
from everlong.stores import work_queue
from scripted_model import ScriptedModel, kind_of

FACT = "- The user likes room 12."
THREAD: RunnableConfig = {"configurable": {"thread_id": "t1"}}
LEASE_SECONDS = 1.0


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def script(messages):
    kind = kind_of(messages)
    if kind == "flush":
        if sys.argv[2:] == ["reading"]:
            die()
        return FACT
    if kind == "consolidation":
        die()  # flushed, and noted so
    return "Noted."


class DyingHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        if "handed over" in record.getMessage():
            die()


async def main(dsn: str, when: str) -> None:
    work_queue.LEASE_SECONDS = LEASE_SECONDS
    if when == "written":
        logger = logging.getLogger("everlong.memory")
        logger.setLevel(logging.INFO)
        logger.addHandler(DyingHandler())
    said = datetime(2026, 3, 9, 12, tzinfo=UTC)
    async with open_agent(dsn=dsn, clock=lambda: said) as agent:
        context = Context(
            user_id="kim",
            model=ScriptedModel(script=script),
            memory=Memory(flush_mode="background"),
        )
        given = {"messages": [{"role": "user", "content": "I like room 12."}]}
        await agent.ainvoke(given, THREAD, context=context)
        await asyncio.sleep(30)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
