"""Work records: claimed once, tried again for a while, done or given up; on both kinds of store."""

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.base import BaseStore

from everlong.stores import forgetting, ledger, transcripts, work, work_queue
from everlong.stores.entries import Fact
from everlong.stores.namespaces import space
from everlong.stores.records import all_items
from everlong.stores.spelling import spelled
from everlong.stores.work import Work
from everlong.stores.work_queue import worker_on


@pytest.fixture
def store(backend) -> BaseStore:
    return backend.store


NOON = "2026-03-09T12:00:00.000Z"


def record(number: int = 0, user_id: str = "kim", **more) -> Work:
    ids = (f"m{number}",)
    key = work.key_of(NOON.replace("00.000", f"{number:02d}.000"), "t", ids)
    given = {"settings": {"model": "offline"}, "process": work.process(), "ids": ids}
    return Work(key=key, user_id=user_id, thread_id="t", instant=NOON, **given | more)


async def test_of_many_workers_at_once_each_record_has_one(store: BaseStore):
    users = [f"user.{n}@x" for n in range(6)]
    for user in users:
        await work.add(store, record(user_id=user))
    workers = [worker_on(store) for _ in range(12)]
    claimed = await asyncio.gather(*(work_queue.claim(one) for one in workers))
    assert sorted(one.user_id for one in claimed if one) == users
    assert await work_queue.claim(workers[0]) is None


async def test_a_users_records_are_done_one_after_the_other_oldest_first(store: BaseStore):
    for number in (2, 0, 1):
        await work.add(store, record(number))
    one, other = worker_on(store), worker_on(store)
    order = []
    while (mine := await work_queue.claim(one)) is not None:
        order.append(mine.ids[0])
        assert await work_queue.claim(other) is None
        assert await work_queue.done(one, mine)
    assert order == ["m0", "m1", "m2"]
    assert await work_queue.open_records(store) == []


async def test_the_same_record_is_written_once_though_it_is_done(store: BaseStore):
    worker = worker_on(store)
    assert await work.add(store, record())
    assert not await work.add(store, record())
    await work_queue.done(worker, await work_queue.claim(worker))
    assert not await work.add(store, record())
    assert await work_queue.claim(worker) is None
    assert await work.add(store, record(), again=True)


async def test_a_claim_that_runs_out_is_anybodys_and_not_its_first_holders(store: BaseStore):
    dead, alive = worker_on(store, lease_seconds=0.2), worker_on(store)
    await work.add(store, record())
    lost = await work_queue.claim(dead)
    assert await work_queue.claim(alive) is None
    assert await work_queue.renew(dead, lost)
    await asyncio.sleep(0.3)
    taken = await work_queue.claim(alive)
    assert (taken.key, taken.tries) == (lost.key, 2)
    assert not await work_queue.renew(dead, lost)
    assert not await work_queue.done(dead, lost)
    with pytest.raises(LookupError, match="not any more"):
        await work_queue.failed(dead, lost, "late")
    assert await work_queue.done(alive, taken)


async def test_a_failure_is_tried_again_later_at_most_so_often_and_then_kept(
    store: BaseStore, monkeypatch
):
    monkeypatch.setattr(work_queue, "PAUSES_SECONDS", (0.0,) * 3)
    monkeypatch.setattr(work_queue, "MOST_TRIES", 4)
    worker = worker_on(store)
    await work.add(store, record())
    statuses = []
    while (mine := await work_queue.claim(worker)) is not None:
        statuses.append((await work_queue.failed(worker, mine, "503\noverloaded")).status)
    assert statuses == ["due", "due", "due", "failed"]
    (kept,) = await work_queue.open_records(store)
    assert (kept.status, kept.reason, kept.tries) == ("failed", "503 overloaded", 4)
    assert await work_queue.retry_failed(store) == 1
    assert (await work_queue.claim(worker)).tries == 1


async def test_a_try_that_has_failed_waits_and_holds_up_nothing_else_of_the_user(store: BaseStore):
    worker = worker_on(store)
    await work.add(store, record(0))
    await work.add(store, record(1))
    await work_queue.failed(worker, await work_queue.claim(worker), "503")
    assert (await work_queue.claim(worker)).ids == ("m1",)
    assert await work_queue.claim(worker) is None


async def test_a_record_that_is_given_back_is_free_at_once_and_was_not_tried(store: BaseStore):
    one, other = worker_on(store), worker_on(store)
    await work.add(store, record())
    await work_queue.release(one, await work_queue.claim(one))
    assert (await work_queue.claim(other)).tries == 1


async def test_a_model_without_a_name_is_left_to_its_process(store: BaseStore, monkeypatch):
    await work.add(store, record(unnamed=True, process="another"))
    assert await work_queue.claim(worker_on(store)) is None
    monkeypatch.setattr(work_queue, "OWN_SECONDS", 0.0)
    assert await work_queue.claim(worker_on(store)) is None
    assert await work_queue.claim(worker_on(store, has_model=True)) is not None
    await work.add(store, record(unnamed=True, user_id="own"))
    assert await work_queue.claim(worker_on(store)) is not None


async def test_the_transcript_is_not_copied_and_a_record_without_one_gives_its_room_back(
    store: BaseStore,
):
    said = [HumanMessage("I like tea.", id="h"), AIMessage("Noted.", id="a")]
    await transcripts.append(
        store, "kim", "t", [HumanMessage("x", id="x"), *said], first=0, instant=NOON
    )
    placed = record(ids=("h", "a"), places=((1, 2),))
    moved = record(ids=("h", "a"), places=((7, 8),))
    for one in (placed, moved):
        assert [m.text for m in await work.messages_of(store, one)] == ["I like tea.", "Noted."]
    held = record(messages=tuple(map(spelled, said)), ids=("h", "a"))
    await work.add(store, held)
    assert "tea" not in str(await work_queue.open_records(store))
    worker = worker_on(store)
    claimed = await work_queue.claim(worker)
    assert [m.text for m in await work.messages_of(store, claimed)] == ["I like tea.", "Noted."]
    await work_queue.flushed(worker, claimed)
    (left,) = await all_items(store, space("kim", "work"))
    assert "tea" not in str(left.value)
    await work_queue.done(worker, claimed)
    (left,) = await all_items(store, space("kim", "work"))
    assert left.value["settings"] == {}


async def test_records_are_found_by_user_and_by_process(store: BaseStore):
    await work.add(store, record())
    await work.add(store, record(user_id="eve", process="another"))
    assert {one.user_id for one in await work_queue.open_records(store)} == {"kim", "eve"}
    assert [one.user_id for one in await work_queue.open_records(store, "eve")] == ["eve"]
    mine = await work_queue.open_records(store, of_process=work.process())
    assert [one.user_id for one in mine] == ["kim"]
    assert (await work_queue.claim(worker_on(store), "eve")).user_id == "eve"


async def test_who_listens_is_woken_by_a_new_record(store: BaseStore):
    with work.listening() as woken:
        await work.add(store, record())
        await asyncio.wait_for(woken.wait(), 1)


async def test_however_many_have_failed_what_is_due_is_listed_first(store: BaseStore, monkeypatch):
    monkeypatch.setattr(work_queue, "MOST_LISTED", 2)
    worker = worker_on(store)
    for number in range(3):
        await work.add(store, record(number, tries=work_queue.MOST_TRIES))
        await work_queue.failed(worker, await work_queue.claim(worker), "503")
    await work.add(store, record(9))
    found = await work_queue.open_records(store)
    assert [(one.status, one.ids) for one in found] == [("due", ("m9",)), ("failed", ("m0",))]


async def test_why_a_try_failed_does_not_say_what_is_forgotten(store: BaseStore):
    worker = worker_on(store)
    await work.add(store, record(messages=(spelled(HumanMessage("Phone is 555-0142.", id="h")),)))
    await ledger.append(
        *(store, "kim", "flush", [Fact("Phone is 555-0142", ("h",))]),
        instant=NOON,
        zone="UTC",
        thread_id="t",
        sources=["h"],
    )
    await work_queue.failed(worker, await work_queue.claim(worker), "bad: Phone is 555-0142.")
    assert "555-0142" in str(await work_queue.open_records(store))
    await forgetting.forget(store, "kim", "Phone is 555-0142", at=NOON)
    (left,) = await all_items(store, space("kim", "work"))
    assert "555" not in str(left.value)
    await work.add(store, record(1))
    await work_queue.failed(worker, await work_queue.claim(worker), "bad again: Phone is 555-0142.")
    assert "555" not in str(await work_queue.open_records(store))
