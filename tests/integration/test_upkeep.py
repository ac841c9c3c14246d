"""A worker's sweep: users who are forgotten meanwhile, clocks that were ahead, work beside it."""

import asyncio

from everlong.graph import cli_forgetting, upkeep
from everlong.graph.runtime import open_agent
from everlong.graph.upkeep import Upkeep
from everlong.graph.worker import hands_on, work_on
from everlong.nodes.context import Context
from everlong.nodes.working import now_of
from everlong.stores import erasure, work
from everlong.stores.traces import traces
from everlong.stores.users import SWEEP
from everlong.stores.work import Work
from fix_sweeping import broom
from scripted_model import ScriptedModel

AT = "2026-06-30T12:00:00Z"


async def say_hello(dsn, *users, **settings):
    model = ScriptedModel(script=lambda _: "Confirmed.")
    async with open_agent(tools=[], mcp={}, dsn=dsn) as agent:
        for user in users:
            config = {"configurable": {"thread_id": f"of-{user}"}}
            said = {"messages": [{"role": "user", "content": "hello"}]}
            given = {"user_id": user, "model": model, "memory": {"enabled": False}} | settings
            await agent.ainvoke(said, config, context=Context.model_validate(given))


async def sweep_state(stores):
    item = await stores.store.aget(*SWEEP)
    return item.value if item else None


async def rows_of(dsn, user_id, *threads):
    return sum(one.rows for one in await traces(dsn, user_id, threads))


async def test_a_user_whom_a_sweep_is_at_is_forgotten_whole(dsn, stores, calendar):
    await say_hello(dsn, "kim", "lee")
    assert await Upkeep(broom(stores, calendar)).step()
    assert await sweep_state(stores) == {"user": "lee"}
    done = await erasure.forget_user(stores.store, "kim", saver=stores.saver, at=AT)
    assert done.left == 0
    assert await sweep_state(stores) == {"user": "lee"}, "of another"
    assert await cli_forgetting.forget_user("lee", yes=True, dsn=dsn) == 0
    assert await sweep_state(stores) is None
    await stores.store.aput(*SWEEP, {"user": "lee"}, index=False)  # by a worker that was slow
    assert await rows_of(dsn, "lee") == 1
    assert await cli_forgetting.forget_user("lee", yes=True, dsn=dsn) == 0
    assert await rows_of(dsn, "lee") == 0


async def test_a_thread_that_a_sweep_is_at_is_forgotten_with_its_user(
    dsn, stores, calendar, monkeypatch
):
    await say_hello(dsn, "kim", "lee")
    monkeypatch.setattr("everlong.graph.sweeping.THREADS_AT_ONCE", 1)
    sweep = Upkeep(broom(stores, calendar))
    while await sweep_state(stores) != {"thread": "of-kim"}:
        assert await sweep.step()
    await erasure.forget_user(stores.store, "kim", saver=stores.saver, at=AT)
    assert await rows_of(dsn, "kim", "of-kim") == 0
    await stores.store.aput(*SWEEP, {"thread": ""}, index=False)
    pruned = upkeep.sweep_checkpoints

    async def forgotten_meanwhile(*given, **more):
        after = await pruned(*given, **more)
        await erasure.forget_user(stores.store, "lee", saver=stores.saver, at=AT)
        await stores.store.adelete(*SWEEP)
        return after or "of-lee"

    monkeypatch.setattr(upkeep, "sweep_checkpoints", forgotten_meanwhile)
    assert await sweep.step()
    assert await rows_of(dsn, "lee", "of-lee") == 0


async def test_a_sweep_that_a_clock_dated_ahead_does_not_stop_the_next(stores, calendar):
    calendar.days = 3_650
    sweep = Upkeep(broom(stores, calendar))
    while await sweep.step():
        pass
    assert set(await sweep_state(stores) or ()) == {"at"}
    calendar.days = 0.5
    assert await Upkeep(broom(stores, calendar)).step()


async def leave_record(stores, calendar):
    """Leave what a call of another process would; nothing has to be flushed."""
    instant = now_of(calendar)
    settings = {"model": "offline", "memory_model": None, "time_zone": "UTC", "transcript": False}
    settings |= {"compaction": {}, "memory": {"flush_mode": "background"}}
    about = {"user_id": "kim", "thread_id": "t1", "instant": instant, "settings": settings}
    await work.add(stores.store, Work(key=work.key_of(instant, "t1", ()), **about))


async def test_records_are_done_beside_a_sweep_that_takes_long(dsn, stores, calendar, monkeypatch):
    begun, ended = asyncio.Event(), []

    async def long(*_):
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    await say_hello(dsn, "kim")
    monkeypatch.setattr(upkeep, "sweep_user", long)
    finished = asyncio.Event()
    sweep = Upkeep(broom(stores, calendar))
    hands = hands_on(stores.store, calendar)
    working = asyncio.create_task(work_on(hands, tell=lambda _: finished.set(), upkeep=sweep))
    try:
        async with asyncio.timeout(30):
            await begun.wait()
            await leave_record(stores, calendar)
            await finished.wait()
    finally:
        working.cancel()
        await asyncio.wait([working])
    assert ended == [True], "the sweep ends with the worker"
