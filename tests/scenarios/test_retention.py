"""What is old leaves the ledger and the transcript with time, and nothing that is still needed."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from everlong.stores import (
    compactions,
    ledger,
    ledger_archive,
    memory,
    pages,
    retention,
    transcripts,
    work_queue,
)
from everlong.stores.entries import Fact
from failing_store import FailingStore
from scripted_model import ScriptedModel, asks_for_summary

START = datetime(2026, 1, 5, 12, tzinfo=UTC)
ANIMALS = ("heron", "otter", "lynx", "marten", "osprey", "badger", "curlew", "weasel", "plover")
_SAID = re.compile(r"^I like the (\w+)", re.MULTILINE)


def likes(number):
    """Return what a person says, something new each time."""
    return f"I like the {ANIMALS[number % 9]}{'s' * (number // 9)}."


class Calendar:
    """A clock that a test turns on."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += timedelta(days=days)


def script(messages):
    last = messages[-1].text
    if "<ledger>" in last:
        material = last.partition("<document>")[2]
        return "# Likes\n" + "\n".join(dict.fromkeys(re.findall(r"^- .+", material, re.MULTILINE)))
    if "NO_REPLY" in last and "<conversation>" in last:
        liked = _SAID.findall(last.partition("<conversation>")[2])
        return "\n".join(f"- Likes the {animal}" for animal in liked) or "NO_REPLY"
    return "SUMMARY" if asks_for_summary(messages) else "Confirmed."


@pytest.fixture
def calendar():
    return Calendar()


@pytest.fixture
def talk(converse, calendar):
    """A conversation that remembers, consolidates at each call, and compacts at five messages."""
    return converse(
        model=ScriptedModel(script=script),
        memory={"enabled": True, "consolidate_every_minutes": 0},
        compaction={"trigger_messages": 5, "keep_messages": 2},
        clock=calendar,
    )


async def numbers(talk, thread="thread-1"):
    return [entry.number for entry in await transcripts.read(talk.store, "kim", thread)]


async def test_entries_move_to_the_archive_after_their_days_and_their_day_still_reads(
    talk, calendar
):
    await talk.say(likes(0))
    calendar.pass_days(91)
    await talk.say(likes(1))
    (archived,) = await ledger_archive.entries(talk.store, "kim")
    assert archived.day == "2026-01-05"
    assert [one.day for one in await ledger.entries(talk.store, "kim")] == ["2026-04-06"]
    page = await pages.read_page(talk.store, "kim", "memory/2026-01-05.md")
    assert "- Likes the heron" in str(page)
    found = await pages.search(talk.store, "kim", "likes")
    assert [one.path for one in found][-1] == "memory/2026-01-05.md"
    assert await memory.fresh_entries(talk.store, "kim") == []


async def test_a_setting_of_zero_keeps_everything_for_good(converse, calendar):
    talk = converse(
        model=ScriptedModel(script=script),
        memory={"enabled": True, "consolidate_every_minutes": 0, "ledger_days": 0},
        compaction={"trigger_messages": 5, "keep_messages": 2},
        transcript_days=0,
        clock=calendar,
    )
    for number in range(5):
        await talk.say(likes(number))
        calendar.pass_days(300)
    assert await ledger_archive.entries(talk.store, "kim") == []
    assert await numbers(talk) == list(range(10))


async def test_a_look_that_a_clock_dated_ahead_does_not_put_off_the_next(talk, calendar):
    await talk.say(likes(0))
    ahead = {"first": 0, "at": "2028-10-01T12:00:00Z"}
    await talk.store.aput(("users", "kim", "retention"), "thread-1", ahead)
    calendar.pass_days(0.5)
    await talk.say(likes(1))
    assert (await retention.swept_at(talk.store, "kim", "thread-1"))[:10] == "2026-01-06"


async def test_old_messages_leave_the_transcript_but_not_those_that_a_compaction_can_give_back(
    talk, calendar
):
    for number in range(8):
        await talk.say(likes(number))
        calendar.pass_days(1)
    held = await numbers(talk)
    receipts = await compactions.read(talk.store, "kim", "thread-1")
    calendar.pass_days(400)
    await talk.say(likes(8))
    gone = [number for number in held if number not in await numbers(talk)]
    last = (await compactions.read(talk.store, "kim", "thread-1"))[-1]
    assert len(receipts) > 1
    assert gone
    originals = await compactions.originals(talk.store, "kim", "thread-1", last)
    wanted = [one for one in last["message_ids"] if not one.startswith("__")]
    assert {entry.message_id for entry in originals} == set(wanted)
    in_history = {message.id for message in await talk.messages()}
    kept = {one.message_id for one in await transcripts.read(talk.store, "kim", "thread-1")}
    assert {one for one in in_history if not one.startswith("__")} <= kept


async def test_a_history_that_was_never_compacted_stays_in_the_transcript(converse, calendar):
    talk = converse(
        model=ScriptedModel(script=script),
        memory={"enabled": True, "consolidate_every_minutes": 0},
        clock=calendar,
    )
    await talk.say(*map(likes, range(3)))
    calendar.pass_days(700)
    await talk.say(likes(3))
    assert await numbers(talk) == list(range(8))


async def test_what_a_failed_flush_has_still_to_read_stays(converse, calendar):
    state = {"fail": True}

    def failing(messages):
        last = messages[-1].text
        if state["fail"] and "NO_REPLY" in last and "<conversation>" in last:
            msg = "503 overloaded"
            raise RuntimeError(msg)
        return script(messages)

    talk = converse(
        model=ScriptedModel(script=failing),
        memory={"enabled": True, "consolidate_every_minutes": 0},
        compaction={"trigger_messages": 5, "keep_messages": 2},
        clock=calendar,
    )
    await talk.say(*map(likes, range(8)))
    unflushed = (await talk.values())["unflushed"]
    assert unflushed
    calendar.pass_days(400)
    save = {"instant": "2026-01-05T12:00:00Z", "zone": "UTC", "thread_id": "t", "sources": []}
    await ledger.append(talk.store, "kim", "save", [Fact("Size of shoes")], **save)
    await talk.send({"request": {"consolidate": True}})
    waiting = [n for part in unflushed for n in range(part["first"], part["first"] + part["count"])]
    assert set(waiting) <= set(await numbers(talk))
    state["fail"] = False
    await talk.say("and again")
    assert (await talk.values())["unflushed"] == []


async def test_a_thread_is_looked_at_once_a_day_and_by_the_calls_own_clock(talk, calendar):
    for number in range(8):
        await talk.say(likes(number))
    calendar.pass_days(181)
    await talk.say(likes(8))
    first = await numbers(talk)
    assert 0 not in first
    await talk.say(likes(9), likes(10))
    assert set(first) <= set(await numbers(talk))
    calendar.pass_days(1.1)
    await talk.say(likes(11))
    assert not set(first) <= set(await numbers(talk))


async def test_a_store_that_fails_while_old_things_go_costs_no_answer(
    backend, talk, calendar, caplog
):
    await talk.say(likes(0))
    calendar.pass_days(400)
    talk.use_store(FailingStore(backend.store))
    talk.store.fail_writes = OSError("store is down")
    assert await talk.say(likes(1)) == "Confirmed."
    talk.store.fail_writes = None
    calendar.pass_days(1)
    assert await talk.say(likes(2)) == "Confirmed."
    assert len(await ledger_archive.entries(talk.store, "kim")) == 1
    every = await ledger_archive.with_archived(talk.store, "kim")
    facts = sorted(fact.text for entry in every for fact in entry.facts)
    assert facts == sorted(f"Likes the {animal}" for animal in ANIMALS[:3])


async def test_an_edited_history_never_takes_a_number_again_after_messages_went(talk, calendar):
    for number in range(8):
        await talk.say(likes(number))
    calendar.pass_days(400)
    await talk.say(likes(8))
    before = await numbers(talk)
    newest = (await talk.messages())[-1]
    await talk.graph.aupdate_state(
        talk.config, {"messages": [{"type": "remove", "content": "", "id": newest.id}]}
    )
    await talk.say("after an edit")
    after = await numbers(talk)
    assert len(after) == len(set(after))
    assert max(after) == max(before) + 2


async def test_what_a_worker_has_still_to_flush_stays(converse, calendar):
    talk = converse(
        model=ScriptedModel(script=script),
        memory={"enabled": True, "flush_mode": "background", "consolidate": "on_request"},
        compaction={"trigger_messages": 5, "keep_messages": 2, "flush_before": False},
        clock=calendar,
    )
    await talk.say(*map(likes, range(8)))
    records = await work_queue.open_records(talk.store, "kim")
    waiting = {one for record in records for one in record.ids}
    assert waiting
    calendar.pass_days(400)
    await talk.send({"request": {"consolidate": True}})
    held = await transcripts.read(talk.store, "kim", "thread-1")
    assert waiting <= {entry.message_id for entry in held}


async def test_what_a_compaction_may_have_taken_out_that_was_not_seen_to_end_stays(talk, calendar):
    await talk.say(*map(likes, range(8)))
    first = await transcripts.read(talk.store, "kim", "thread-1", limit=2)
    ids = [entry.message_id for entry in first]
    begun = {"id": "unseen", "at": calendar().isoformat(), "outcome": "begun", "number": 99}
    receipt = begun | {"message_ids": ids}
    await compactions.record(talk.store, "kim", "thread-1", receipt)
    calendar.pass_days(400)
    await talk.send({"request": {"consolidate": True}})
    held = [entry.message_id for entry in await transcripts.read(talk.store, "kim", "thread-1")]
    assert held[:2] == ids
    assert len(held) < 16
