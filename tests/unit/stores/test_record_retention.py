"""What leaves a user's records with age and number, and what stays."""

from datetime import timedelta

import pytest
from langchain_core.messages import ToolMessage
from langgraph.store.base import BaseStore

from everlong.stores import (
    compactions,
    finished_calls,
    ledger,
    ledger_archive,
    memory,
    record_retention,
)
from everlong.stores.entries import Fact, iso, moment
from everlong.stores.records import all_items

NOW = "2026-06-30T12:00:00Z"
PLACE = ("u", "t")


def ago(days: float) -> str:
    return iso(moment(NOW) - timedelta(days=days))


async def attempted(store: BaseStore, ident: str, *, days: float, count: int = 3):
    ids = [f"{ident}-{number}" for number in range(count)]
    receipt = {"id": ident, "at": ago(days), "outcome": "done", "message_ids": ids}
    await compactions.record(store, *PLACE, receipt)


async def left(store: BaseStore) -> list[str]:
    return [one["id"] for one in await compactions.read(store, *PLACE)]


async def sweep(store: BaseStore, *needed: str, days: int = 180) -> int:
    return await record_retention.remove_receipts(
        store, *PLACE, needed=needed, instant=NOW, days=days
    )


async def test_old_receipts_go_with_their_parts_and_what_can_be_undone_stays(store: BaseStore):
    for ident, days in (("a", 300), ("b", 200), ("c", 181), ("d", 179)):
        await attempted(store, ident, days=days)
    assert await sweep(store, "b") == 2
    assert await left(store) == ["b", "d"]
    assert len(await all_items(store, ("users", "u", "compactions"))) == 4
    kept = await compactions.find(store, *PLACE, "b")
    assert kept
    assert kept["message_ids"] == ["b-0", "b-1", "b-2"]
    assert await sweep(store, "b") == 0


async def test_of_too_many_the_oldest_go_and_none_for_its_age_where_days_are_zero(
    store: BaseStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(record_retention, "KEPT_RECEIPTS", 2)
    for number in range(5):
        await attempted(store, f"r{number}", days=400 - number)
    assert await sweep(store, "r0", days=0) == 2
    assert await left(store) == ["r0", "r3", "r4"]


async def test_results_go_when_no_call_waits_for_them_and_the_thread_is_stored(
    store: BaseStore, monkeypatch: pytest.MonkeyPatch
):
    for ident in ("ai-1", "ai-2"):
        result = ToolMessage("paid", tool_call_id="c1", id=f"r-{ident}")
        await finished_calls.keep(store, *PLACE, ident, [result])
    waiting = ["ai-2", ""]
    remove = record_retention.remove_finished_calls
    assert await remove(store, *PLACE, waiting=waiting) == 0
    monkeypatch.setattr(record_retention, "SETTLED_SECONDS", -60.0)
    assert await remove(store, *PLACE, waiting=waiting, days=1) == 0
    assert await remove(store, *PLACE, waiting=waiting) == 1
    assert await finished_calls.find(store, *PLACE, "ai-1") == {}
    assert set(await finished_calls.find(store, *PLACE, "ai-2")) == {"c1"}


async def test_the_newest_versions_stay_and_the_document_is_as_it_was(
    store: BaseStore, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(record_retention, "KEPT_VERSIONS", 3)
    base = None
    for number in range(6):
        base = await memory.write(
            *(store, "u"),
            text=f"# {number}",
            base=base,
            consumed=(),
            instant=ago(10 - number),
            by="test",
        )
    assert await record_retention.remove_versions(store, "u") == 3
    assert [one.text for one in await memory.versions(store, "u")] == ["# 5", "# 4", "# 3"]
    assert (await memory.read(store, "u")) == base
    assert await record_retention.remove_versions(store, "u") == 0


async def test_archived_entries_go_only_where_the_document_stands_on_them(store: BaseStore):
    for days, text in ((500, "Likes herons"), (300, "Likes otters")):
        said = {"instant": ago(days), "zone": "UTC", "thread_id": "t", "sources": []}
        await ledger.append(store, "u", "save", [Fact(text)], **said)
    entries = await ledger.entries(store, "u")
    document = await memory.write(
        store, "u", text="# Likes", base=None, consumed=entries, instant=ago(200), by="test"
    )
    known = [one for one in await ledger.entries(store, "u") if one.consumed_by]
    assert await ledger_archive.move(store, "u", known, under=document.written_at, since=0)
    remove = record_retention.remove_archived
    assert await remove(store, "u", instant=NOW, days=0) == 0
    assert await remove(store, "u", instant=NOW, days=0, kept=2) == 0
    assert await remove(store, "u", instant=NOW, days=365) == 1
    (kept,) = await ledger_archive.entries(store, "u")
    assert [fact.text for fact in kept.facts] == ["Likes otters"]
    await store.adelete(("users", "u", "memory"), memory.KEY)
    assert await remove(store, "u", instant=NOW, days=1) == 0
    other = {"base": None, "consumed": (), "instant": ago(1), "by": "test"}
    await memory.write(store, "u", text="# Of something else", **other)
    assert await remove(store, "u", instant=NOW, days=1) == 0


async def test_of_too_many_archived_entries_the_oldest_go(store: BaseStore):
    for number in range(4):
        said = {"instant": ago(9 - number), "zone": "UTC", "thread_id": "t", "sources": []}
        await ledger.append(store, "u", "save", [Fact(f"Likes heron {number}")], **said)
    entries = await ledger.entries(store, "u")
    document = await memory.write(
        store, "u", text="# Likes", base=None, consumed=entries, instant=ago(1), by="test"
    )
    known = await ledger.entries(store, "u")
    assert await ledger_archive.move(store, "u", known, under=document.written_at, since=0)
    assert await record_retention.remove_archived(store, "u", instant=NOW, days=0, kept=3) == 1
    left = [one.facts[0].text for one in await ledger_archive.entries(store, "u")]
    assert left == [f"Likes heron {number}" for number in (1, 2, 3)]
