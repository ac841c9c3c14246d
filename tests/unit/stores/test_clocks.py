"""Workers whose clocks differ by minutes: no entry is lost, and versions follow one another."""

from langgraph.store.base import BaseStore

from everlong.stores import ledger, memory, retention
from everlong.stores.documents import Document
from everlong.stores.entries import Entry, Fact, moment

FAST, SLOW = "2026-03-09T12:13:00Z", "2026-03-09T11:51:00Z"
LONG_AGO = "2025-01-01T12:00:00Z"


async def add(store: BaseStore, text: str, instant: str) -> Entry:
    about = {"zone": "UTC", "thread_id": "t", "sources": [text]}
    return await ledger.append(store, "u", "flush", [Fact(text)], instant=instant, **about)


async def write(store: BaseStore, text: str, entry: Entry, instant: str) -> Document:
    base = await memory.read(store, "u")
    about = {"instant": instant, "by": "consolidation"}
    return await memory.write(store, "u", text=text, base=base, consumed=[entry], **about)


async def test_versions_follow_one_another_whatever_clocks_say(store: BaseStore) -> None:
    first = await write(store, "a", await add(store, "a", FAST), FAST)
    second = await write(store, "b", await add(store, "b", SLOW), SLOW)
    third = await memory.restore(store, "u", first.version, instant=SLOW, by="kim")
    assert await memory.versions(store, "u") == [third, second, first]
    assert moment(first.written_at) < moment(second.written_at) < moment(third.written_at)


async def test_a_slow_worker_after_a_fast_one_leaves_every_entry_fresh(store: BaseStore) -> None:
    await write(store, "a", await add(store, "a", FAST), FAST)
    await add(store, "said later, by a slow clock", SLOW)
    (fresh,) = await memory.fresh_entries(store, "u")
    assert fresh.facts[0].text == "said later, by a slow clock"
    assert await memory.has_fresh(store, "u")


async def test_what_a_slow_worker_took_up_and_archived_comes_back_with_an_earlier_version(
    store: BaseStore,
) -> None:
    first = await write(store, "a", await add(store, "a", FAST), FAST)
    await write(store, "a\nb", await add(store, "b", LONG_AGO), SLOW)
    await retention.archive_old_entries(store, "u", instant=FAST, days=90)
    assert [one.facts[0].text for one in await ledger.entries(store, "u")] == ["a"]
    await memory.restore(store, "u", first.version, instant=FAST, by="kim")
    assert [one.facts[0].text for one in await memory.fresh_entries(store, "u")] == ["b"]
