"""`flush_mode`: the answer first, the work by whoever comes (R50); the switches of memory (R48)."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from background import PORT, Told, drained, facts_of, flushes
from everlong.stores import ledger, memory, transcripts, work_queue
from everlong.stores.namespaces import space
from everlong.stores.records import all_items
from failing_store import FailingStore
from scripted_model import ScriptedModel, asks_for_summary, calling, kind_of

BACKGROUND = {"enabled": True, "flush_mode": "background"}
MODES = ["inline", "background"]


async def test_the_answer_comes_before_the_flush_and_the_record_holds_no_words(converse):
    model = Told().model(PORT)
    talk = converse(model=model, memory=BACKGROUND)
    assert await talk.say("Exports only through Shanghai.") == "Confirmed."
    assert flushes(model) == []
    (record,) = await work_queue.open_records(talk.store)
    assert len(record.ids) == 2
    assert record.places == ((0, 1),)
    items = await all_items(talk.store, space("kim", "work"))
    assert "Shanghai" not in str([item.value for item in items])
    assert {"type": "memory.queued", "messages": 2, "thread_id": "thread-1"} in talk.events

    (finished,) = await drained(talk)
    assert finished.outcome == "done"
    assert [event["type"] for event in finished.events] == ["memory.flushed", "memory.consolidated"]
    assert await facts_of(talk.store) == [PORT[2:]]
    assert "Shanghai" in (await memory.read(talk.store, "kim")).text
    assert await drained(talk) == []
    assert len(flushes(model)) == 1


async def test_each_message_is_handed_over_once_and_flushed_in_order(converse):
    model = Told().model()
    talk = converse(model=model, memory=BACKGROUND | {"consolidate": "on_request"})
    await talk.say("one", "two", "three")
    await drained(talk)
    read = [text.split("<conversation>")[1] for text in flushes(model)]
    assert [[word for word in ("one", "two", "three") if word in text] for text in read] == [
        ["one"],
        ["two"],
        ["three"],
    ]


async def test_without_a_transcript_the_record_holds_the_messages_until_it_is_done(converse):
    talk = converse(model=Told().model(PORT), memory=BACKGROUND, transcript=False)
    await talk.say("Exports only through Shanghai.")
    (held,) = await all_items(talk.store, space("kim", "work"))
    assert "Exports only" in str(held.value)
    await drained(talk)
    assert await facts_of(talk.store) == [PORT[2:]]
    (left,) = await all_items(talk.store, space("kim", "work"))
    assert "Exports only" not in str(left.value)


async def test_facts_are_dated_by_their_call_and_the_gap_by_the_worker(converse):
    said = datetime(2026, 3, 2, 23, 30, tzinfo=UTC)
    now = datetime(2026, 3, 20, 2, 0, tzinfo=UTC)
    model = Told().model(PORT)
    talk = converse(model=model, memory=BACKGROUND, time_zone="Asia/Shanghai", clock=lambda: said)
    await talk.say("Exports only through Shanghai.")
    await drained(talk, clock=lambda: now)
    (entry,) = await ledger.entries(talk.store, "kim")
    assert entry.day == "2026-03-03"
    assert "It is now 2026-03-03T07:30:00+08:00" in flushes(model)[0]
    assert (await memory.read(talk.store, "kim")).consolidated_at.startswith("2026-03-20T02:00")


async def test_a_flush_that_fails_is_tried_again_and_a_consolidation_costs_no_second_flush(
    converse, monkeypatch
):
    monkeypatch.setattr(work_queue, "PAUSES_SECONDS", (0.0,) * 7)
    told = Told(fails=True)
    model = told.model(PORT)
    talk = converse(model=model, memory=BACKGROUND)
    await talk.say("Exports only through Shanghai.")
    finished = await drained(talk)
    assert [one.outcome for one in finished] == ["waits"] * 7 + ["failed"]
    (kept,) = await work_queue.open_records(talk.store)
    assert (kept.status, kept.reason) == ("failed", "RuntimeError: 503 overloaded")

    await work_queue.retry_failed(talk.store)
    broken = iter([RuntimeError("502"), None])

    def script(messages):
        if kind_of(messages) == "consolidation" and (error := next(broken)):
            raise error
        return Told().answer(messages, (PORT,))

    model.script = script
    asked = len(flushes(model))
    assert [one.outcome for one in await drained(talk)] == ["waits", "done"]
    assert len(flushes(model)) == asked + 1
    assert await facts_of(talk.store) == [PORT[2:]]
    assert "Shanghai" in (await memory.read(talk.store, "kim")).text


async def test_a_cancelled_worker_gives_its_record_back(converse):
    asked, hang = asyncio.Event(), [30.0]

    def script(messages):
        if kind_of(messages) == "flush" and hang:
            asked.set()
            return hang.pop()
        return Told().answer(messages, (PORT,))

    talk = converse(model=ScriptedModel(script=script), memory=BACKGROUND)
    await talk.say("Exports only through Shanghai.")
    working = asyncio.ensure_future(drained(talk))
    await asked.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    (record,) = await work_queue.open_records(talk.store)
    assert (record.by, record.tries) == ("", 0)
    assert [one.outcome for one in await drained(talk)] == ["done"]


async def test_a_consolidation_that_is_due_without_a_flush_is_left_to_the_worker_too(converse):
    def script(messages):
        if "remember" in messages[-1].text:
            return calling(("memory_save", {"content": PORT}))
        return Told().answer(messages, ())

    talk = converse(model=ScriptedModel(script=script), memory=BACKGROUND | {"flush": "never"})
    await talk.say("remember it", "hello")
    (record,) = await work_queue.open_records(talk.store)
    assert record.ids == ()
    assert await memory.read(talk.store, "kim") is None
    await drained(talk)
    assert "Shanghai" in (await memory.read(talk.store, "kim")).text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transcript", [True, False])
async def test_a_store_that_is_down_costs_nothing_but_time(
    backend, converse, caplog, mode, transcript
):
    """The call answers; the next one makes up for it, also where a compaction came between."""
    model = Told().model(PORT)
    talk = converse(
        model=model, memory={"enabled": True, "flush_mode": mode}, transcript=transcript
    )
    talk.use_store(FailingStore(backend.store))
    talk.store.fail_writes = talk.store.fail_reads = OSError("store is down")
    assert await talk.say("Exports only through Shanghai.") == "Confirmed."
    await talk.compact()
    talk.store.fail_writes = talk.store.fail_reads = None
    await talk.say("hello")
    talk.use_store(backend.store)
    await drained(talk)
    assert await facts_of(talk.store) == [PORT[2:]]
    if transcript:
        entries = await transcripts.read(talk.store, "kim", "thread-1")
        assert [entry.role for entry in entries] == ["human", "ai"] * 2
    assert "store is down" in caplog.text


@pytest.mark.parametrize("mode", MODES)
async def test_what_a_compaction_removes_without_a_transcript_is_not_lost_to_a_failed_flush(
    converse, mode
):
    told = Told(fails=True)
    model = told.model(PORT)
    talk = converse(
        model=model,
        memory={"enabled": True, "flush_mode": mode, "consolidate": "on_request"},
        transcript=False,
        compaction={"strategy": "window", "trigger_messages": 5, "keep_messages": 2},
    )
    await talk.say("Exports only through Shanghai.", "two", "three")
    assert not any("Shanghai" in message.text for message in await talk.messages())
    told.fails = False
    await talk.say("four")
    await drained(talk)
    assert await facts_of(talk.store) == [PORT[2:]]


@pytest.mark.parametrize("mode", MODES)
async def test_a_summary_that_is_refused_does_not_have_its_part_flushed_twice(converse, mode):
    def script(messages):
        return "" if asks_for_summary(messages) else Told().answer(messages, (PORT,))

    model = ScriptedModel(script=script)
    talk = converse(
        model=model,
        memory={"enabled": True, "flush_mode": mode, "flush": "never", "consolidate": "on_request"},
        compaction={"trigger_messages": 5, "keep_messages": 2},
    )
    await talk.say("Exports only through Shanghai.", "two", "three")
    assert (await talk.values())["compaction"]["outcome"] == "refused"
    await drained(talk)
    talk.context = talk.context.model_copy(
        update={"memory": talk.context.memory.model_copy(update={"flush": "always"})}
    )
    await talk.say("four")
    await drained(talk)
    read = [text.split("<conversation>")[1] for text in flushes(model)]
    said = ("Exports only through Shanghai.", "two", "three", "four")
    assert [sum(text.count(f"]\n{one}\n") for text in read) for one in said] == [1] * 4


@pytest.mark.parametrize("mode", MODES)
async def test_a_pinned_message_is_flushed_once_however_often_it_is_kept(converse, mode):
    model = Told().model(PORT)
    talk = converse(
        model=model,
        memory={"enabled": True, "flush_mode": mode, "consolidate": "on_request"},
        compaction={"trigger_messages": 5, "keep_messages": 2},
    )
    pinned = {"role": "user", "content": "Exports only through Shanghai.", "pin": True}
    await talk.send({"messages": [pinned | {"additional_kwargs": {"pin": True}}]})
    await talk.say(*(f"message {number}" for number in range(6)))
    await drained(talk)
    read = [text.split("<conversation>")[1] for text in flushes(model)]
    assert sum("Exports only" in text for text in read) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_said_while_memory_is_off_is_not_remembered_when_it_is_on_again(
    converse, mode
):
    shoe = "- Shoe size is 44."
    talk = converse(model=Told().model(PORT, shoe), memory={"enabled": False})
    await talk.say("My Shoe size is 44.")
    on = converse(model=Told().model(PORT, shoe), memory={"enabled": True, "flush_mode": mode})
    await on.say("Exports only through Shanghai.")
    await drained(on)
    assert await facts_of(on.store) == [PORT[2:]]


@pytest.mark.parametrize("mode", MODES)
async def test_a_throttle_is_one_for_all_graphs_threads_and_modes(converse, mode):
    """A21.4: five requests in ten seconds, each with a graph of its own, cost one flush."""
    now = [datetime(2026, 3, 9, 12, tzinfo=UTC)]
    model = Told().model()
    settings = {"enabled": True, "flush_mode": mode, "flush": 2, "consolidate": "on_request"}
    talk = None
    for number in range(6):
        talk = converse(
            model=model, memory=settings, thread_id=f"t{number % 3}", clock=lambda: now[0]
        )
        await talk.say(f"message {number}")
        now[0] += timedelta(seconds=2)
    await drained(talk)
    assert len(flushes(model)) == 1
    now[0] += timedelta(minutes=2)
    await talk.say("later")
    await drained(talk)
    assert len(flushes(model)) == 2
    assert "message 5" in flushes(model)[1]
