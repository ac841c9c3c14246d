"""Twenty runs of one user at once, in four processes whose clocks differ by minutes (R40, R42)."""

import asyncio
import sys
import time
from pathlib import Path

import pytest
from running_process import COMMON, PROCESSES, THREADS, own

from background import facts_of
from everlong.nodes.consolidation import consolidation
from everlong.nodes.context import Context
from everlong.nodes.run import Run
from everlong.stores import memory, work_queue
from everlong.stores.entries import moment
from everlong.stores.postgres import open_stores

HERE = Path(__file__).parent
START_SECONDS = 6.0
"""So long a process takes to start, at most; then all begin together."""


async def run_all(dsn, mode):
    begin = time.time() + START_SECONDS
    running = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, str(HERE / "running_process.py"), dsn, mode, str(number), str(begin)),
            stderr=asyncio.subprocess.PIPE,
        )
        for number in range(PROCESSES)
    ]
    async with asyncio.timeout(120):
        said = [(await one.communicate())[1].decode() for one in running]
    assert [one.returncode for one in running] == [0] * PROCESSES, said


@pytest.mark.parametrize("mode", ["inline", "background"])
async def test_no_entry_is_lost_and_none_is_there_twice_while_all_flush_save_and_consolidate(
    dsn, mode
):
    wanted = [COMMON, *(own(n, thread) for n in range(PROCESSES) for thread in range(THREADS))]
    await run_all(dsn, mode)
    async with open_stores(dsn, pool_size=4) as stores:
        store = stores.store
        assert await work_queue.open_records(store) == []
        facts = [fact.strip(".") for fact in await facts_of(store)]
        assert sorted(facts) == sorted(one.strip(".") for one in wanted)
        await consolidation(run_on(store))
        document = await memory.read(store, "kim")
        lines = [line.strip("-. ") for line in document.text.splitlines() if line[:2] == "- "]
        assert sorted(lines) == sorted(facts)
        assert await memory.fresh_entries(store, "kim") == []
        written = [moment(one.written_at) for one in await memory.versions(store, "kim")]
        assert written == sorted(set(written), reverse=True)


def run_on(store):
    context = Context(user_id="kim", model="offline")
    later = {"instant": "2026-03-09T13:00:00Z", "thread_id": "", "tell": lambda _: None}
    return Run(context=context, user_id="kim", store=store, **later)
