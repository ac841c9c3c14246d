"""MEMORY.md over weeks: newer facts replace older ones, its history reads on, it can be rebuilt."""

from datetime import UTC, datetime, timedelta

import pytest

from everlong.nodes.tokens import estimate_text
from everlong.stores import ledger_archive, memory, pages
from everlong.stores.entries import moment

BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
SAID = [
    (0, "I live in Oslo."),
    (1, "Our exports go through Shanghai port only."),
    (40, "I live in Bergen now."),
    (120, "My badge number is 5512."),
]
NOW_KNOWN = ["Bergen", "Shanghai port only", "5512"]
LIMIT = 400


@pytest.fixture
def talk(converse):
    now = [BEGIN]
    memory_settings = {"enabled": True, "document_tokens": LIMIT, "ledger_days": 30}
    found = converse(model="offline", memory=memory_settings, clock=lambda: now[0])
    found.now = now
    return found


@pytest.fixture
async def lived(talk):
    """A user of some months: each fact was consolidated on its day, old ones are archived."""
    for days, text in SAID:
        talk.now[0] = BEGIN + timedelta(days=days)
        await talk.say(text)
    assert len(await ledger_archive.entries(talk.store, "kim")) == len(SAID) - 1
    return talk


def day(days):
    return f"memory/{(BEGIN + timedelta(days=days)).date().isoformat()}.md"


async def page(talk, days):
    return str(await pages.read_page(talk.store, "kim", day(days)))


async def document(talk):
    return (await memory.read(talk.store, "kim")).text


async def consolidate(talk):
    await talk.send({"request": {"consolidate": True}})


async def test_a_newer_fact_replaces_the_one_it_contradicts_and_its_day_reads_on(lived):
    text = await document(lived)
    assert [word for word in NOW_KNOWN if word not in text] == []
    assert "Oslo" not in text
    old, new = [await page(lived, days) for days in (0, 40)]
    assert old.startswith("## Memory Flush — 2026-01-05T09:00:00Z")
    assert "Oslo" in old
    assert "Bergen" in new


async def test_each_version_says_who_wrote_it_when_and_from_which_entries(lived):
    held = {entry.key: entry for entry in await ledger_archive.with_archived(lived.store, "kim")}
    found = await memory.versions(lived.store, "kim")
    assert [one.by for one in found] == ["consolidation"] * len(SAID)
    for one, (days, _) in zip(reversed(found), SAID, strict=True):
        assert moment(one.written_at) == BEGIN + timedelta(days=days)
        assert [held[key].day for key in one.consumed] == [day(days)[7:-3]]
        assert estimate_text(one.text) <= LIMIT
    assert "Oslo" in found[-1].text


async def test_removed_and_run_again_it_is_rebuilt_from_all_that_was_ever_said(lived):
    before, kept = await document(lived), await memory.versions(lived.store, "kim")
    await memory.clear(lived.store, "kim")
    lived.now[0] += timedelta(days=1)
    await consolidate(lived)
    assert sorted((await document(lived)).splitlines()) == sorted(before.splitlines())
    assert await memory.fresh_entries(lived.store, "kim") == []
    assert (await memory.versions(lived.store, "kim"))[-len(kept) :] == kept
    assert "Oslo" in await page(lived, 0)


async def test_an_earlier_version_comes_back_and_takes_up_what_came_since(lived):
    first = (await memory.versions(lived.store, "kim"))[-1]
    await memory.restore(
        lived.store, "kim", first.version, instant=lived.now[0].isoformat(), by="kim"
    )
    assert "Oslo" in await document(lived)
    assert "Bergen" not in await document(lived)
    await consolidate(lived)
    text = await document(lived)
    assert [word for word in NOW_KNOWN if word not in text] == []
    assert "Oslo" not in text
