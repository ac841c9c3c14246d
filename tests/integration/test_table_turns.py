"""One at a time among processes that share a Postgres store; each pool here is one's."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.errors import LockNotAvailable

from everlong.stores import table_turns, work
from everlong.stores.flushes import take_turn
from everlong.stores.postgres import open_stores
from everlong.stores.table_turns import held
from everlong.stores.work import Work

NOON = "2026-03-09T12:00:00.000Z"
USERS = [f"user{number}" for number in range(10)]
AT_WORK = "FROM pg_stat_activity WHERE state LIKE 'idle in%'"


@pytest.fixture
async def two(dsn):
    async with open_stores(dsn, pool_size=2) as one, open_stores(dsn, pool_size=2) as other:
        yield one.store, other.store


async def test_what_is_read_and_written_in_a_turn_is_nobody_elses_meanwhile(two):
    async def add_one(store):
        async with held(store, ("count", "kim")):
            item = await store.aget(("counts",), "kim")
            await asyncio.sleep(0.002)
            await store.aput(("counts",), "kim", {"n": (item.value["n"] if item else 0) + 1})

    await asyncio.gather(*(add_one(store) for store in two * 10))
    assert (await two[0].aget(("counts",), "kim")).value == {"n": 20}


async def test_another_name_is_not_waited_for(two):
    async with held(two[0], ("ledger", "kim")), asyncio.timeout(5):
        for name in (("ledger", "eve"), ("memory", "kim"), ("ledger", "k", "im")):
            async with held(two[1], name):
                pass


async def test_a_hundred_users_at_once_need_no_more_connections_than_there_are(two):
    async def look(number):
        async with held(two[0], ("ledger", f"user{number}")):
            await two[0].aget(("counts",), f"user{number}")

    async with asyncio.timeout(20):
        await asyncio.gather(*(look(number) for number in range(100)))


async def test_who_hangs_in_a_turn_is_waited_for_so_long_and_no_longer(two, monkeypatch):
    monkeypatch.setattr(table_turns, "WAIT", "200ms")
    async with held(two[0], ("ledger", "kim")):
        began = time.monotonic()
        with pytest.raises(LockNotAvailable):
            async with held(two[1], ("ledger", "kim")):
                pass
        assert 0.15 < time.monotonic() - began < 5


async def test_the_turn_of_a_process_that_died_is_free(two, dsn):
    async def die():
        async with held(two[0], ("ledger", "kim")):
            async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as killer:
                await killer.execute(f"SELECT pg_terminate_backend(pid) {AT_WORK}")
            async with asyncio.timeout(5), held(two[1], ("ledger", "kim")):
                pass

    with pytest.raises(psycopg.OperationalError):
        await die()


def winners(dsn, does):
    """Have four processes do it at once for each user; return for whom it was done, how often.

    A thread with a loop and a pool of its own stands for a process.
    """
    together = threading.Barrier(4)

    async def work():
        async with open_stores(dsn, pool_size=2) as stores:
            done = []
            for user_id in USERS:
                together.wait(30)
                done += [user_id] if await does(stores.store, user_id) else []
            return done

    with ThreadPoolExecutor(together.parties) as threads:
        each = threads.map(lambda _: asyncio.run(work()), range(together.parties))
        return sorted(user_id for done in each for user_id in done)


def test_of_many_processes_at_once_one_takes_the_turn_to_flush(dsn):
    """R43: a throttle is one for all of them."""

    async def takes(store, user_id):
        turn = await take_turn(store, user_id, NOON, may=lambda last: not last)
        return turn is not None

    assert winners(dsn, takes) == USERS


def test_of_many_processes_at_once_one_writes_a_record_of_work(dsn):
    async def writes(store, user_id):
        record = Work(key="consolidation", user_id=user_id, thread_id="", instant=NOON)
        return await work.add(store, record, again=True)

    assert winners(dsn, writes) == USERS
