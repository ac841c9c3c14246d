"""A server of two dies or is stopped under load: every run ends well, nothing lost or doubled."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from uuid import uuid4

import psycopg
import pytest

from aegra_server import Aegra
from background import facts_of
from everlong.stores.postgres import open_stores
from http_thread import HttpThread, said

RUNS = 24
"""The two servers share them: a dozen each."""
SLOW = 'Call slow_tool {"seconds": 3}'
DONE = ["slow_tool", "waited 3.0 s", "slow_tool returned: waited 3.0 s"]
SECONDS = 120


@pytest.fixture
async def mortal(pair) -> AsyncIterator[Aegra]:
    """Yield a server that may be killed, and start it again."""
    yield pair.servers[0]
    pair.servers[0].process.kill()
    pair.servers[0].process.start()
    await asyncio.to_thread(pair.servers[0].await_answer)


async def at_work(threads: list[HttpThread]) -> None:
    """Return when every thread has a run that waits for its tool."""
    async with asyncio.timeout(SECONDS):
        for thread in threads:
            while (await thread.state())["next"] != ["tools"]:  # noqa: ASYNC110 - of others
                await asyncio.sleep(0.05)


async def at_each_server(dsn: str) -> list[int]:
    """Return how many runs are at work on each of the servers."""
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        found = await connection.execute(
            "SELECT count(*) FROM runs WHERE status = 'running'"
            " GROUP BY regexp_replace(claimed_by, '-worker-.*', '')"
        )
        return [row[0] for row in await found.fetchall()]


async def ended(thread: HttpThread, run_ids: list[str]) -> list[str]:
    """Wait for runs to end and return how."""
    runs, until = thread.client.runs, time.monotonic() + SECONDS
    while True:
        found = [(await runs.get(thread.thread_id, one))["status"] for one in run_ids]
        if not {"pending", "running"} & set(found):
            return found
        assert time.monotonic() < until, found
        await asyncio.sleep(0.5)


async def test_runs_of_a_dead_server_are_ended_by_the_other_with_nothing_lost(
    connect, pair, mortal
):
    users = [f"kim-{uuid4().hex[:6]}" for _ in range(RUNS)]
    threads = [await HttpThread.new(connect(user, server=1), {}, "slow") for user in users]
    asked = [f"My code is A-{i}. {SLOW}" for i in range(RUNS)]
    runs = [
        await thread.client.runs.create(thread.thread_id, "slow", input=said(text))
        for thread, text in zip(threads, asked, strict=True)
    ]
    await at_work(threads)
    assert min(await at_each_server(pair.dsn)) >= RUNS // 3
    mortal.process.kill()
    assert "Reaping" not in pair.servers[1].process.log.read_text()
    for thread, run in zip(threads, runs, strict=True):
        assert await ended(thread, [run["run_id"]]) == ["success"]
    assert "Reaping" in pair.servers[1].process.log.read_text()
    for thread, text in zip(threads, asked, strict=True):
        assert await thread.texts() == [text, *DONE]
    async with open_stores(pair.dsn, pool_size=2) as stores:
        for i, user in enumerate(users):
            assert await facts_of(stores.store, user) == [f"My code is A-{i}"]


@pytest.mark.parametrize("named", [False, True])
async def test_runs_of_one_thread_are_all_kept_once_when_their_server_dies(connect, mortal, named):
    user = f"kim-{uuid4().hex[:6]}"
    context = {"memory": {"enabled": False}}
    thread = await HttpThread.new(connect(user, server=1), context, "slow")
    asked = [f"Wish {i}: {SLOW}" for i in range(4)]
    runs = []
    for i, text in enumerate(asked):
        given = said(text)
        if named:
            given["messages"][0]["id"] = f"q{i}"
        made = await thread.client.runs.create(
            thread.thread_id, "slow", input=given, context=context
        )
        runs.append(made["run_id"])
    await at_work([thread])
    mortal.process.kill()
    assert await ended(thread, runs) == ["success"] * len(runs)
    counted = Counter(text for text in await thread.texts() if text in asked)
    assert counted == Counter(asked)


async def test_a_stopped_server_hands_over_what_it_has_no_time_to_end(connect, mortal):
    context = {"memory": {"enabled": False}}
    user = f"kim-{uuid4().hex[:6]}"
    threads = [await HttpThread.new(connect(user, server=1), context, "slow") for _ in range(4)]
    asked = 'call slow_tool {"seconds": 8}'  # longer than a server waits
    runs = [
        await thread.client.runs.create(
            thread.thread_id, "slow", input=said(asked), context=context
        )
        for thread in threads
    ]
    await at_work(threads)
    await asyncio.to_thread(mortal.process.stop)
    for thread, run in zip(threads, runs, strict=True):
        assert await ended(thread, [run["run_id"]]) == ["success"]
        assert await thread.texts() == [
            asked,
            "slow_tool",
            "waited 8.0 s",
            "slow_tool returned: waited 8.0 s",
        ]
