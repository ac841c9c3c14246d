"""A process in which several threads of one user run at once; others run beside it.

Usage: python running_process.py DSN MODE NUMBER BEGIN; it begins at BEGIN, seconds since 1970, and
its clock is wrong by minutes, which ones its NUMBER says.
"""

import asyncio
import sys
import time
from datetime import UTC, datetime, timedelta

from langchain_core.runnables import RunnableConfig

from everlong.graph.runtime import open_agent
from everlong.nodes.context import Context, Memory

PROCESSES, THREADS = 4, 5
MINUTES_WRONG = (-9, 0, 4, 13)
COMMON = "My badge number is 5512."


def own(number: int, thread: int) -> str:
    """Return what is said in one thread only."""
    return f"My locker key for hall {number} is K-{number}{thread}."


def said(number: int, thread: int) -> str:
    """Return what is said; in the last thread the fact is saved by the tool."""
    if thread == THREADS - 1:
        return f'{COMMON} Then call memory_save {{"content": "{own(number, thread)}"}}'
    return f"Just confirm: {COMMON} {own(number, thread)}"


async def main(dsn: str, mode: str, number: int, begin: float) -> None:
    noon = datetime(2026, 3, 9, 12, tzinfo=UTC) + timedelta(minutes=MINUTES_WRONG[number])
    started = time.monotonic()

    def clock() -> datetime:
        return noon + timedelta(seconds=time.monotonic() - started)

    memory = Memory.model_validate({"flush_mode": mode, "consolidate_every_minutes": 0})
    context = Context(user_id="kim", model="offline", memory=memory)
    async with open_agent(dsn=dsn, clock=clock) as agent:

        async def say(thread: int) -> None:
            config: RunnableConfig = {"configurable": {"thread_id": f"t{number}-{thread}"}}
            given = {"messages": [{"role": "user", "content": said(number, thread)}]}
            await agent.ainvoke(given, config, context=context)

        await asyncio.sleep(begin - time.time())
        await asyncio.gather(*(say(thread) for thread in range(THREADS)))
        await agent.await_quiescence(60, user_id="kim")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
