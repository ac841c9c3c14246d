"""Records of background work: what they hold, in which order they are done, and by whose model."""

import asyncio

import pytest

from background import PORT, Told, drained, facts_of
from everlong.graph import worker
from everlong.nodes import live_models
from everlong.nodes.working import work_through
from everlong.stores import ledger, work_queue
from everlong.stores.entries import Fact
from everlong.stores.namespaces import space
from everlong.stores.records import all_items
from failing_store import FailingStore

BACKGROUND = {"enabled": True, "flush_mode": "background"}
NEVER = {"trigger_messages": 0}


async def test_a_worker_waits_for_a_store_that_is_away_and_then_goes_on(
    backend, converse, caplog, monkeypatch
):
    monkeypatch.setattr(worker, "AWAY_SECONDS", 0.01)
    talk = converse(model=Told().model(PORT), memory=BACKGROUND)
    await talk.say("Exports only through Shanghai.")
    store = FailingStore(backend.store)
    store.fail_reads = store.fail_writes = OSError("store is down")
    if hasattr(backend.store, "conn"):
        monkeypatch.setattr(store, "conn", None, raising=False)  # records as on a plain store
    working = asyncio.ensure_future(worker.work_on(worker.hands_on(store, talk.clock), tell=print))
    async with asyncio.timeout(30):
        while caplog.text.count("The records cannot be read") < 2:  # noqa: ASYNC110 - its own
            await asyncio.sleep(0.01)
        store.fail_reads = store.fail_writes = None
        while await facts_of(talk.store) != [PORT[2:]]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    working.cancel()
    await asyncio.wait([working])


async def test_a_record_without_a_transcript_holds_what_a_flush_reads_and_no_more(converse):
    """Head and tail, R43: also of a history that is imported whole."""
    talk = converse(model=Told().model(PORT), memory=BACKGROUND, transcript=False, compaction=NEVER)
    said = [f"number {n}: {'row checked, ' * 300}" for n in range(60)]
    said[0], said[-1] = "Exports only through Shanghai.", f"the end {'x' * 100_000} of it"
    await talk.send({"messages": [{"role": "user", "content": text} for text in said]})
    (held,) = await all_items(talk.store, space("kim", "work"))
    assert len(str(held.value)) < 250_000
    assert "number 30:" not in str(held.value)
    await drained(talk)
    assert await facts_of(talk.store) == [PORT[2:]]


async def test_a_consolidation_is_not_put_off_by_flushes_that_keep_coming(converse):
    talk = converse(model=Told().model(), memory=BACKGROUND | {"flush": "never"})
    await talk.say("hello")
    await save(talk.store)
    await talk.say("hello again")
    flushing = converse(model=Told().model(), memory=BACKGROUND, user_id="eve", thread_id="e")
    await flushing.say("hello")
    worker_here = worker.hands_on(talk.store, talk.clock).worker
    assert (await work_queue.claim(worker_here)).user_id == "kim"


async def save(store):
    about = {"zone": "UTC", "thread_id": "t", "sources": []}
    at = "2026-03-09T12:00:00Z"
    await ledger.append(store, "kim", "save", [Fact(PORT[2:])], instant=at, **about)


async def test_a_model_object_is_nobody_elses_in_another_process(converse, monkeypatch):
    talk = converse(model=Told().model(PORT), memory=BACKGROUND)
    await talk.say("Exports only through Shanghai.")
    (record,) = await work_queue.open_records(talk.store)
    named = str(record.settings["model"])
    assert live_models.held(named) is talk.context.model
    assert live_models.held(named.replace(record.process, "another-1")) is None


async def test_a_store_that_cannot_be_read_says_so_in_its_own_words(backend, converse):
    talk = converse(model=Told().model(PORT), memory=BACKGROUND)
    store = FailingStore(backend.store)
    store.conn, store.fail_reads = None, OSError("store is down")
    with pytest.raises(OSError, match="store is down"):
        await work_through(worker.hands_on(store, talk.clock), tell=print)
