import asyncio
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp

from everlong.stores import ledger
from everlong.stores.entries import Entry, Fact, Kind, facts_in, render_day
from everlong.stores.namespaces import space
from everlong.stores.records import put_all

NOON = "2026-03-08T12:00:00Z"


async def add(store: BaseStore, text: str, *, user: str = "u", **given: Any) -> Entry:
    kind: Kind = given.pop("kind", "flush")
    usual: dict[str, Any] = {"instant": NOON, "zone": "UTC", "thread_id": "t", "sources": [text]}
    return await ledger.append(store, user, kind, facts_in(text), **(usual | given))


async def texts(store: BaseStore, user: str = "u") -> list[str]:
    return ["; ".join(fact.text for fact in e.facts) for e in await ledger.entries(store, user)]


async def test_an_entry_comes_back_as_it_was_added(store: BaseStore) -> None:
    added = await add(store, "- badge 5512", sources=["h1", "a1"], thread_id="A")
    assert await ledger.entries(store, "u") == [added]
    assert (added.kind, added.sources, added.thread_id) == ("flush", ("h1", "a1"), "A")
    assert (added.promoted, added.consumed_by) == (False, "")
    assert (await add(store, "x", kind="save")).promoted


async def test_recent_entries_come_without_the_older_ones(store: BaseStore) -> None:
    await add(store, "old", instant="2026-03-01T12:00:00Z")
    await add(store, "kept", instant="2026-03-08T12:00:00.500Z")
    await add(store, "new", instant="2026-03-09T00:30:00+09:00", kind="save")
    since = datetime(2026, 3, 8, 20, tzinfo=timezone(timedelta(hours=8)))
    found = await ledger.recent(store, "u", since)
    assert [entry.facts[0].text for entry in found] == ["kept", "new"]


async def test_day_and_heading_use_the_users_clock(store: BaseStore) -> None:
    entry = await add(
        store, "- dentist 2026-03-10", instant="2026-03-08T17:30:00Z", zone="Asia/Shanghai"
    )
    assert (entry.day, entry.at) == ("2026-03-09", "2026-03-08T17:30:00Z")
    assert render_day([entry]) == (
        "## Memory Flush — 2026-03-09T01:30:00+08:00\n\n- dentist 2026-03-10\n"
    )


async def test_a_day_reads_as_its_file(store: BaseStore) -> None:
    await add(store, "- one\n- two", instant="2026-10-30T08:00:00.250Z")
    await add(store, "three", kind="save", instant="2026-10-30T09:00:00+00:00")
    assert render_day(await ledger.entries(store, "u", "2026-10-30")) == (
        "## Memory Flush — 2026-10-30T08:00:00.250Z\n\n- one\n- two\n\n"
        "## Memory Save — 2026-10-30T09:00:00Z\n\n- three\n"
    )


async def test_a_zone_without_offset_that_is_not_utc_says_so(store: BaseStore) -> None:
    entry = await add(store, "x", zone="Europe/London")
    assert "12:00:00+00:00" in render_day([entry])


async def test_a_flush_of_the_same_messages_is_stored_once_whenever_it_runs(
    store: BaseStore,
) -> None:
    first = await add(store, "- Oslo", sources=["h1"])
    again = await add(store, "- lives in Oslo", sources=["h1"], instant="2026-03-09T12:00:00Z")
    assert again == first
    assert await texts(store) == ["Oslo"]


async def test_flushes_of_other_messages_or_threads_or_of_none_are_kept_apart(
    store: BaseStore,
) -> None:
    for number, (thread, sources) in enumerate(
        [("A", ["h1"]), ("A", ["h1", "h2"]), ("B", ["h1"]), ("A", []), ("A", [])]
    ):
        await add(store, str(number), thread_id=thread, sources=sources)
    assert sorted(await texts(store)) == ["0", "1", "2", "3", "4"]


async def test_a_save_is_the_same_by_text_and_instant(store: BaseStore) -> None:
    await add(store, "a", kind="save", sources=["h1"])
    await add(store, "a", kind="save", sources=["h1"])
    await add(store, "b", kind="save", sources=["h1"])
    await add(store, "a", kind="save", sources=["h1"], instant="2026-03-08T12:00:01Z")
    assert sorted(await texts(store)) == ["a", "a", "b"]


async def test_a_repeated_run_does_not_make_a_consumed_entry_fresh(store: BaseStore) -> None:
    entry = await add(store, "a")
    await store.abatch(ledger.mark_consumed("u", [entry], "v1"))
    assert (await add(store, "a")).key == entry.key
    assert await ledger.fresh(store, "u") == []


async def test_parallel_writers_lose_nothing(store: BaseStore) -> None:
    async def session(thread: str) -> None:
        for number in range(20):
            await add(store, f"{thread}{number}", thread_id=thread, sources=[str(number)])

    await asyncio.gather(*(session(thread) for thread in "ABCD"))
    assert len(set(await texts(store))) == 80


async def test_entries_come_oldest_first_and_by_day(store: BaseStore) -> None:
    for instant in ("2026-03-08T10:00:00.5Z", "2026-03-08T10:00:00Z", "2026-03-07T23:00:00-02:00"):
        await add(store, instant, instant=instant)
    assert await texts(store) == [
        "2026-03-07T23:00:00-02:00",
        "2026-03-08T10:00:00Z",
        "2026-03-08T10:00:00.5Z",
    ]
    await add(store, "later", instant="2026-03-09T00:00:00Z")
    assert await ledger.days(store, "u") == ["2026-03-08", "2026-03-09"]
    assert [e.text for e in await ledger.entries(store, "u", "2026-03-09")] == ["- later"]
    assert await ledger.entries(store, "u", "2026-03-10") == []


async def test_more_entries_than_one_search_returns_are_all_read(store: BaseStore) -> None:
    entry = await add(store, "one")
    place = space("u", "ledger", "entries")
    item = await store.aget(place, entry.key)
    assert item is not None
    await put_all(store, [PutOp(place, str(n), item.value | {"key": str(n)}) for n in range(1_000)])
    assert len(await ledger.entries(store, "u")) == 1_001


async def test_fresh_is_what_no_document_has_taken_up(store: BaseStore) -> None:
    one, two, three = [await add(store, text) for text in "abc"]
    await store.abatch(ledger.mark_consumed("u", [one], "v1"))
    fresh = {entry.key for entry in await ledger.fresh(store, "u")}
    assert fresh == {two.key, three.key}
    listed = {entry.key for entry in await ledger.fresh(store, "u", consumed_in=[two.key])}
    assert listed == {three.key}
    other_line = {entry.key for entry in await ledger.fresh(store, "u", line=["v0"])}
    assert other_line == {one.key, two.key, three.key}
    marked = {entry.key: entry.consumed_by for entry in await ledger.entries(store, "u", one.day)}
    assert marked == {one.key: "v1", two.key: "", three.key: ""}


async def test_a_mark_does_not_bring_back_an_entry_that_was_removed(store: BaseStore) -> None:
    entry = await add(store, "secret")
    await store.adelete(space("u", "ledger", "entries"), entry.key)
    await store.abatch(ledger.mark_consumed("u", [entry], "v1"))
    assert await ledger.entries(store, "u") == []


async def test_no_user_sees_anothers_entries(store: BaseStore) -> None:
    await add(store, "of ada", user="ada")
    for other in ("ad", "adaa", "Ada", "../ada", "*"):
        assert await ledger.entries(store, other) == []
        assert await ledger.days(store, other) == []
        assert await ledger.fresh(store, other) == []


async def test_what_no_store_holds_is_replaced(store: BaseStore) -> None:
    entry = await add(store, "a\x00b", sources=["h\x00"], thread_id="t\ud83d")
    assert (entry.facts[0].text, entry.sources, entry.thread_id) == (
        "a\ufffdb",
        ("h\ufffd",),
        "t\ufffd",
    )
    assert await ledger.entries(store, "u") == [entry]


@pytest.mark.parametrize("instant", ["2026-03-08T12:00:00", "2026-03-08", "soon"])
async def test_an_instant_without_an_offset_is_refused(store: BaseStore, instant: str) -> None:
    with pytest.raises(ValueError, match=r"expected an instant|Invalid isoformat"):
        await add(store, "x", instant=instant)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../UTC"])
async def test_an_unknown_zone_is_refused(store: BaseStore, zone: str) -> None:
    with pytest.raises(ValueError, match="`zone`: expected an IANA time zone"):
        await add(store, "x", zone=zone)


async def doubtful(store: BaseStore) -> Entry:
    facts = [Fact("likes tea", ("h1",)), Fact("moves on 2026-02-13", ("h1", "h2"), "never said")]
    return await ledger.append(
        store, "u", "flush", facts, instant=NOON, zone="UTC", thread_id="t", sources=["h1", "h2"]
    )


async def test_facts_keep_their_sources_doubts_and_keys(store: BaseStore) -> None:
    entry = await doubtful(store)
    assert [fact.key for fact in entry.facts] == [f"{entry.key}#0", f"{entry.key}#1"]
    (read,) = await ledger.entries(store, "u")
    assert [(f.key, f.sources, f.doubt) for f in read.facts] == [
        (f"{entry.key}#0", ("h1",), ""),
        (f"{entry.key}#1", ("h1", "h2"), "never said"),
    ]
    assert read.text == "- likes tea\n- moves on 2026-02-13"
    assert render_day([read]).endswith(
        "- likes tea\n- moves on 2026-02-13 [unverified: never said]\n"
    )


async def test_a_doubtful_fact_is_never_fresh(store: BaseStore) -> None:
    await doubtful(store)
    only_doubt = [Fact("owns 40 goats", ("h3",), "never said")]
    await ledger.append(
        store, "u", "flush", only_doubt, instant=NOON, zone="UTC", thread_id="t", sources=["h3"]
    )
    assert [entry.text for entry in await ledger.fresh(store, "u")] == ["- likes tea"]
    assert len(await ledger.entries(store, "u")) == 2


async def test_a_confirmed_fact_is_saved_from_its_own_messages_and_doubted_no_more(
    store: BaseStore,
) -> None:
    entry = await doubtful(store)
    later = "2026-03-09T12:00:00Z"
    saved = await ledger.confirm(store, "u", f"{entry.key}#1", instant=later, zone="UTC")
    assert (saved.kind, saved.promoted, saved.day) == ("save", True, "2026-03-09")
    assert saved.facts == (Fact("moves on 2026-02-13", ("h1", "h2")),)
    assert [one.text for one in await ledger.entries(store, "u")] == [
        "- likes tea",
        "- moves on 2026-02-13",
    ]
    with pytest.raises(LookupError, match="key of an unverified fact"):
        await ledger.confirm(store, "u", f"{entry.key}#1", instant=later, zone="UTC")


async def test_confirming_goes_on_after_a_crash_between_its_writes(store: BaseStore) -> None:
    entry = await doubtful(store)
    later = "2026-03-09T12:00:00Z"
    await ledger.confirm(store, "u", f"{entry.key}#1", instant=later, zone="UTC")
    await store.adelete(space("u", "ledger", "verdicts"), f"{entry.key}#1")
    await ledger.confirm(store, "u", f"{entry.key}#1", instant="2026-03-10T12:00:00Z", zone="UTC")
    assert len(await ledger.saved(store, "u")) == 1


async def test_a_rejected_fact_is_read_nowhere(store: BaseStore) -> None:
    entry = await doubtful(store)
    rejected = await ledger.reject(store, "u", f"{entry.key}#1")
    assert rejected.text == "moves on 2026-02-13"
    assert [one.text for one in await ledger.entries(store, "u", entry.day)] == ["- likes tea"]
    with pytest.raises(LookupError, match="key of an unverified fact"):
        await ledger.reject(store, "u", f"{entry.key}#1")


@pytest.mark.parametrize("key", ["", "nope", "#0"])
async def test_only_a_doubtful_fact_is_judged(store: BaseStore, key: str) -> None:
    entry = await doubtful(store)
    for wrong in (key, f"{entry.key}#0", f"{entry.key}#9"):
        with pytest.raises(LookupError):
            await ledger.reject(store, "u", wrong)
        with pytest.raises(LookupError):
            await ledger.confirm(store, "u", wrong, instant=NOON, zone="UTC")


async def test_an_entry_written_again_without_a_fact_keeps_the_keys_of_the_others(
    store: BaseStore,
) -> None:
    entry = await doubtful(store)
    await store.abatch([ledger.put_of("u", replace(entry, facts=entry.facts[1:]))])
    (left,) = await ledger.entries(store, "u")
    assert [fact.key for fact in left.facts] == [f"{entry.key}#1"]
    assert await doubtful(store) == left


async def test_an_entry_without_facts_is_refused(store: BaseStore) -> None:
    with pytest.raises(ValueError, match="`facts`: expected at least one"):
        await add(store, "")
