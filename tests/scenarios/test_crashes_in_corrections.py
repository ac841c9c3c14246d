"""A crash between any two writes of what a person does to memory: done again, it ends the same."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from everlong.stores import (
    corrections,
    erasure,
    forgetting,
    ledger,
    ledger_archive,
    memory,
    retention,
    transcripts,
)
from everlong.stores.entries import Fact
from everlong.stores.passages import MARK
from everlong.stores.records import all_items
from power_cut import CutStore, Power

NOW = "2026-06-30T12:00:00Z"
LIVED = [("01-04", "lives in Oslo"), ("02-11", "phone is 555-0142"), ("04-02", "moved to Bergen")]
DOUBTED = [("05-01", "port 9580"), ("05-02", "badge 77")]
KNOWN = [text for _, text in LIVED]


async def say(store, day, text, doubt=""):
    """Leave a message, and an entry of the ledger with the fact in it."""
    said = [HumanMessage(f"I say: {text}", id=text), AIMessage("Noted.", id=f"after {text}")]
    first, at = len(await transcripts.read(store, "kim", "t")), f"2026-{day}T12:00:00Z"
    await transcripts.append(store, "kim", "t", said, first=first, instant=at)
    fact, about = Fact(text, (text,), doubt), {"zone": "UTC", "thread_id": "t", "sources": [text]}
    return await ledger.append(store, "kim", "flush", [fact], instant=at, **about)


async def consolidate(store, entry, day):
    base, (fact,) = await memory.read(store, "kim"), entry.facts
    line = f"- {fact.text}"
    return await memory.write(
        *(store, "kim"),
        text="\n".join([*(base.text.splitlines() if base else []), line]),
        base=base,
        consumed=[entry],
        instant=f"2026-{day}T13:00:00Z",
        by="consolidation",
        origins={line: [fact.key]},
    )


async def lived(store):
    """Three versions of MEMORY.md, two doubtful facts, and one that is fresh."""
    for day, text in LIVED:
        await consolidate(store, await say(store, day, text), day)
    for day, text in DOUBTED:
        await say(store, day, text, doubt="never said")
    await say(store, "06-29", "likes tea")


async def archived(store):
    """The same, the old entries in the archive, and a version since."""
    await lived(store)
    await move(store)
    await consolidate(store, await say(store, "06-20", "owns a boat"), "06-20")


async def move(store):
    await retention.archive_old_entries(store, "kim", instant=NOW, days=60)


async def remove(store):
    needed = retention.Needed()
    await retention.remove_old_messages(store, "kim", "t", needed, instant=NOW, days=60)


async def restore(store):
    oldest = (await memory.versions(store, "kim"))[-1]
    await memory.restore(store, "kim", oldest.version, instant=NOW, by="kim")


async def clear(store):
    await memory.clear(store, "kim")


async def correct(store):
    seen, text = await corrections.see(store, "kim"), "- moved to Bergen\n- drinks coffee"
    await corrections.correct(store, "kim", seen, text, instant=NOW, zone="UTC", by="kim")


async def forget(store):
    await forgetting.forget(store, "kim", "phone is 555-0142", at=NOW)


async def forget_user(store):
    await erasure.forget_user(store, "kim", at=NOW)


async def confirm(store):
    for key in await doubtful(store, "port 9580"):
        await ledger.confirm(store, "kim", key, instant=NOW, zone="UTC")


async def reject(store):
    for key in await doubtful(store, "port 9580"):
        await ledger.reject(store, "kim", key)


async def doubtful(store, text):
    return [fact.key for _, fact in await memory.review(store, "kim") if fact.text == text]


async def told(store):
    """Return all that anyone can read of kim."""
    document = await memory.read(store, "kim")
    said = await transcripts.read(store, "kim", "t")
    kept = [item.value for item in await all_items(store, ("users",))]
    return {
        "document": document.text if document else None,
        "fresh": await fresh(store),
        "ledger": [one.text for one in await ledger.entries(store, "kim")],
        "archive": [one.text for one in await ledger_archive.entries(store, "kim")],
        "review": [fact.text for _, fact in await memory.review(store, "kim")],
        "versions": {one.text for one in await memory.versions(store, "kim")},
        "transcript": [MARK if MARK in one.text else one.text for one in said],
        "phone": "555-0142" in str(kept),
    }


async def fresh(store):
    return [fact.text for e in await memory.fresh_entries(store, "kim") for fact in e.facts]


async def cut_at(cut, before, do):
    """Return a store on which the power was cut at a write of `do`, and how many that has."""
    power = Power()
    store = CutStore(power)
    await before(store)
    began = power.writes
    power.cut = began + cut if cut else 0
    assert await power.until_cut(lambda: do(store)) == bool(cut)
    return store, power.writes - began


EVERYTHING = (confirm, reject, restore, clear, correct, forget, forget_user, move, remove)
FROM_ARCHIVE = (restore, clear, correct, forget, forget_user)


@pytest.mark.parametrize(
    ("before", "do"),
    [*((lived, do) for do in EVERYTHING), *((archived, do) for do in FROM_ARCHIVE)],
)
async def test_done_again_after_a_cut_it_ends_as_without(before, do):
    whole, writes = await cut_at(0, before, do)
    wanted = await told(whole)
    assert writes
    for cut in range(1, writes + 1):
        store, _ = await cut_at(cut, before, do)
        await do(store)
        assert await told(store) == wanted, f"cut before write {cut} of {writes}"


@pytest.mark.parametrize("before", [lived, archived])
@pytest.mark.parametrize("do", [restore, clear, move, correct])
async def test_not_done_again_it_leaves_no_known_fact_fresh_and_loses_none(before, do):
    untouched, _ = await cut_at(0, before, fresh)
    done, writes = await cut_at(0, before, do)
    either = [await fresh(untouched), await fresh(done)]
    either += [["likes tea", "drinks coffee"]] if do is correct else []
    for cut in range(1, writes + 1):
        store, _ = await cut_at(cut, before, do)
        assert await fresh(store) in either, f"cut before write {cut} of {writes}"
        held = await ledger_archive.with_archived(store, "kim")
        assert {*KNOWN, "likes tea"} <= {fact.text for entry in held for fact in entry.facts}


async def test_what_is_half_forgotten_does_not_come_back():
    """The tombstone is the first write: whatever runs next keeps the fact out."""
    _, writes = await cut_at(0, archived, forget)
    for cut in range(2, writes + 1):
        store, _ = await cut_at(cut, archived, forget)
        await say(store, "06-30", "phone is 555-0142 again")
        assert not any("555" in text for text in await fresh(store))
