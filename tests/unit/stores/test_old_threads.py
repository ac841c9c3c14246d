"""A sweep looks at the threads in which something is old, and at no others."""

from datetime import timedelta

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from everlong.stores import compactions, finished_calls, old_threads, retention, transcripts
from everlong.stores.entries import iso, moment
from everlong.stores.postgres import open_stores

NOW = "2026-06-30T12:00:00Z"


@pytest.fixture
async def store(dsn):
    async with open_stores(dsn, pool_size=4) as opened:
        yield opened.store


def ago(days):
    return iso(moment(NOW) - timedelta(days=days))


async def said(store, thread_id, *, days, user="u"):
    messages = [HumanMessage("hello", id=f"of-{thread_id}-{number}") for number in range(3)]
    await transcripts.append(store, user, thread_id, messages, first=0, instant=ago(days))


async def compacted(store, thread_id, *, days, count=1):
    for number in range(count):
        receipt = {"id": f"r{number}", "number": number, "at": ago(days), "outcome": "refused"}
        await compactions.record(store, "u", thread_id, receipt)


async def looked_at(store, *, days=180, **limits):
    given = old_threads.Limits(days=days, **limits)
    return await old_threads.to_look_at(store, "u", given, instant=NOW)


async def test_what_is_old_or_too_many_is_found_and_the_young_are_left_alone(store, monkeypatch):
    monkeypatch.setattr(old_threads, "KEPT_RECEIPTS", 2)
    await said(store, "old", days=181)
    await said(store, "young", days=179)
    await said(store, "of another", days=300, user="u2")
    await compacted(store, "young", days=179, count=2)
    await compacted(store, "old receipt", days=181)
    await compacted(store, "often", days=1, count=3)
    result = ToolMessage("paid", tool_call_id="c1", id="m")
    await finished_calls.keep(store, "u", "a person's", "ai", [result])
    assert await looked_at(store) == ["a person's", "often", "old", "old receipt"]
    assert await looked_at(store, days=0) == ["a person's", "often"]
    assert await looked_at(store, days=0, messages=3) == ["a person's", "often"]
    assert await looked_at(store, days=0, messages=2) == ["a person's", "often", "old", "young"]


async def test_a_thread_where_something_old_had_to_stay_is_looked_at_again_later(store):
    await said(store, "old", days=300)
    needed = retention.Needed(message_ids={f"of-old-{number}" for number in range(3)})
    place = (store, "u", "old", needed)
    is_last = False
    while not is_last:
        step = await retention.remove_old_messages(*place, instant=ago(10), days=180, noted=False)
        assert step.removed == 0
        is_last = step.is_last
    assert await looked_at(store, again_days=30) == []
    assert await looked_at(store, again_days=9) == ["old"]
    ahead = {"instant": ago(-400), "days": 180, "noted": False}
    await retention.remove_old_messages(*place, **ahead)
    assert await looked_at(store, again_days=30) == ["old"], "a clock was once ahead"
    assert await looked_at(store) == ["old"]
