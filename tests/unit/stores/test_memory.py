from collections.abc import Iterable, Sequence

import pytest
from langgraph.store.base import BaseStore, Op, PutOp, Result, SearchOp
from langgraph.store.memory import InMemoryStore

from everlong.stores import documents, ledger, memory
from everlong.stores.documents import BEGINNING, Document
from everlong.stores.entries import Entry, Fact, Kind
from everlong.stores.memory import DocumentChangedError

NOON = "2026-03-08T12:00:00Z"
LATER = "2026-03-08T13:00:00Z"


class CrashingStore(InMemoryStore):
    """Writes one item at a time, and crashes after so many when told so."""

    def __init__(self) -> None:
        super().__init__()
        self.puts_left: int | None = None

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        for op in ops:
            if isinstance(op, PutOp) and self.puts_left is not None:
                if self.puts_left == 0:
                    msg = "killed"
                    raise ConnectionError(msg)
                self.puts_left -= 1
                await super().abatch([op])
        return await super().abatch(ops) if self.puts_left is None else await self._read(ops)

    async def _read(self, ops: Iterable[Op]) -> list[Result]:
        return await super().abatch([op for op in ops if not isinstance(op, PutOp)])


class CountingStore(InMemoryStore):
    """Notes where it is searched."""

    def __init__(self) -> None:
        super().__init__()
        self.searched: list[tuple[str, ...]] = []

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        self.searched += [op.namespace_prefix for op in ops if isinstance(op, SearchOp)]
        return await super().abatch(ops)


async def add(
    store: BaseStore, text: str, *, kind: Kind = "flush", instant: str = NOON, user: str = "u"
) -> Entry:
    return await ledger.append(
        store,
        user,
        kind,
        [Fact(text, (text,))],
        instant=instant,
        zone="UTC",
        thread_id="t",
        sources=[text],
    )


async def write(
    store: BaseStore,
    text: str,
    consumed: Sequence[Entry] = (),
    *,
    base: Document | None = None,
    instant: str = NOON,
) -> Document:
    return await memory.write(
        store, "u", text=text, base=base, consumed=consumed, instant=instant, by="consolidation"
    )


async def fresh(store: BaseStore, user: str = "u") -> list[str]:
    return [entry.facts[0].text for entry in await memory.fresh_entries(store, user)]


async def test_without_a_document_every_entry_is_fresh(store: BaseStore) -> None:
    await add(store, "a")
    assert await memory.read(store, "u") is None
    assert await fresh(store) == ["a"]


async def test_the_document_holds_text_watermark_version_and_what_it_consumed(
    store: BaseStore,
) -> None:
    old = await add(store, "old", instant="2026-03-01T00:00:00Z")
    new = await add(store, "new", instant="2026-03-01T00:00:00.75Z")
    written = await write(store, "# Facts\x00", [new, old])
    assert await memory.read(store, "u") == written
    assert written.text == "# Facts\ufffd"
    assert written.watermark == "2026-03-01T00:00:00.750Z"
    assert set(written.consumed) == {old.key, new.key}
    assert (written.consolidated_at, written.written_at) == (NOON, NOON)
    assert await fresh(store) == []


async def test_the_watermark_never_goes_back(store: BaseStore) -> None:
    first = await write(store, "v1", [await add(store, "new", instant=LATER)])
    second = await write(store, "v2", [await add(store, "old")], base=first)
    assert second.watermark == LATER


async def test_an_entry_older_than_the_watermark_is_still_fresh(store: BaseStore) -> None:
    await write(store, "v1", [await add(store, "new", instant=LATER)])
    await add(store, "late, by a slow clock", instant="2026-03-01T00:00:00Z")
    assert await fresh(store) == ["late, by a slow clock"]


async def test_nothing_fresh_is_known_without_reading_the_ledger() -> None:
    store = CountingStore()
    assert not await memory.has_fresh(store, "u")
    entry = await add(store, "a")
    assert await memory.has_fresh(store, "u")
    await write(store, "- a", [entry])
    store.searched.clear()
    assert not await memory.has_fresh(store, "u")
    assert store.searched == []


async def test_what_was_added_while_a_document_was_made_is_known_to_be_fresh(
    store: BaseStore,
) -> None:
    first = await add(store, "a")
    await add(store, "b", instant=LATER)
    document = await write(store, "- a", [first])
    assert await memory.has_fresh(store, "u")
    third = await add(store, "c", instant=NOON)
    await write(store, "- a\n- c", [third], base=document)
    assert await fresh(store) == ["b"]
    assert await memory.has_fresh(store, "u")


async def test_an_edit_leaves_watermark_and_consolidation_time(store: BaseStore) -> None:
    edited = await write(store, "by hand")
    assert (edited.watermark, edited.consolidated_at) == (BEGINNING, BEGINNING)
    first = await write(store, "v1", [await add(store, "a")], base=edited)
    again = await write(store, "corrected", base=first, instant=LATER)
    assert (again.watermark, again.consolidated_at, again.written_at) == (NOON, NOON, LATER)
    assert await fresh(store) == []


async def test_writing_the_same_again_changes_nothing(store: BaseStore) -> None:
    entry = await add(store, "a")
    first = await write(store, "v1", [entry])
    assert await write(store, "v1", [entry], instant=LATER) == first
    assert await memory.read(store, "u") == first
    assert await memory.versions(store, "u") == [first]


@pytest.mark.parametrize("puts", [1, 2, 3])
async def test_after_a_crash_what_is_in_the_document_is_never_taken_up_twice(puts: int) -> None:
    store = CrashingStore()
    entries = [await add(store, text) for text in "abc"]
    store.puts_left = puts
    with pytest.raises(ConnectionError):
        await write(store, "v1", entries)
    store.puts_left = None
    assert await fresh(store) == []
    first = await memory.read(store, "u")
    second = await write(store, "v2", [await add(store, "d")], base=first)
    assert await fresh(store) == []
    await write(store, "v3", [await add(store, "e")], base=second)
    assert await fresh(store) == []


async def test_a_crash_before_the_document_leaves_everything_fresh() -> None:
    store = CrashingStore()
    entry = await add(store, "a")
    store.puts_left = 0
    with pytest.raises(ConnectionError):
        await write(store, "v1", [entry])
    store.puts_left = None
    assert await memory.read(store, "u") is None
    assert await fresh(store) == ["a"]


async def test_a_document_that_changed_meanwhile_is_not_overwritten(store: BaseStore) -> None:
    entry = await add(store, "a")
    first = await write(store, "v1", [entry])
    corrected = await write(store, "corrected by hand", base=first)
    with pytest.raises(DocumentChangedError, match="Read it and try again"):
        await write(store, "v2", [await add(store, "b")], base=first)
    with pytest.raises(DocumentChangedError):
        await write(store, "v1 anew", [entry])
    assert await memory.read(store, "u") == corrected
    assert await fresh(store) == ["b"]


async def test_of_two_consolidations_at_once_none_loses_an_entry(store: BaseStore) -> None:
    seen_by_both, seen_by_one = await add(store, "a"), await add(store, "b")
    lost = await write(store, "of one", [seen_by_both, seen_by_one])
    await memory.clear(store, "u")  # the other one had looked before the first wrote
    stands = await write(store, "of the other", [seen_by_both])
    await store.abatch(ledger.mark_consumed("u", [seen_by_both, seen_by_one], lost.version))
    assert await fresh(store) == ["b"]
    final = await write(store, "of both", [seen_by_one], base=stands)
    assert await fresh(store) == []
    await write(store, "edited", base=final)
    assert await fresh(store) == []


async def test_clearing_makes_the_whole_ledger_fresh_and_a_part_stays_so(
    store: BaseStore,
) -> None:
    entries = [
        await add(store, text, instant=f"2026-03-08T1{n}:00:00Z") for n, text in enumerate("abc")
    ]
    first = await write(store, "v1", entries[:2])
    await write(store, "v2", entries[2:], base=first)
    await memory.clear(store, "u")
    assert await memory.read(store, "u") is None
    assert await fresh(store) == ["a", "b", "c"]
    assert len(await memory.versions(store, "u")) == 2
    rebuilt = await write(store, "v1", entries[:2])
    assert await fresh(store) == ["c"]
    await write(store, "v2", entries[2:], base=rebuilt)
    assert await fresh(store) == []


async def test_versions_say_who_wrote_when_from_which_entries(store: BaseStore) -> None:
    entry = await add(store, "a")
    first = await write(store, "v1", [entry])
    second = await memory.write(
        store, "u", text="v2", base=first, consumed=[], instant=LATER, by="kim"
    )
    assert await memory.versions(store, "u") == [second, first]
    assert [(one.by, one.written_at) for one in (second, first)] == [
        ("kim", LATER),
        ("consolidation", NOON),
    ]
    assert first.consumed == (entry.key,)


async def test_the_same_text_later_is_a_version_of_its_own(store: BaseStore) -> None:
    first = await write(store, "same")
    second = await write(store, "other", base=first)
    third = await write(store, "same", base=second)
    assert len({first.version, second.version, third.version}) == 3


async def test_restoring_brings_the_text_back_and_makes_later_entries_fresh(
    store: BaseStore,
) -> None:
    first = await write(store, "v1", [await add(store, "a")])
    await write(store, "v2, which lost something", [await add(store, "b")], base=first)
    back = await memory.restore(store, "u", first.version, instant=LATER, by="kim")
    assert await memory.read(store, "u") == back
    assert (back.text, back.by, back.consolidated_at) == ("v1", "kim", LATER)
    assert back.version not in (first.version, "")
    assert await fresh(store) == ["b"]
    assert len(await memory.versions(store, "u")) == 3
    await write(store, "v3", [await add(store, "b")], base=back)
    assert await fresh(store) == []


async def test_an_unknown_version_is_refused_with_the_known_ones(store: BaseStore) -> None:
    first = await write(store, "v1")
    with pytest.raises(ValueError, match=first.version):
        await memory.restore(store, "u", "nope", instant=NOON, by="kim")


async def test_a_reader_sees_the_document_and_what_was_saved_since(store: BaseStore) -> None:
    await add(store, "only in the ledger")
    consumed = await add(store, "ALPHA", kind="save")
    written = await write(store, "# Facts\n", [consumed])
    await add(store, "BETA", kind="save", instant=LATER)
    document, saved = await memory.recollect(store, "u")
    assert document == written
    assert documents.visible_text(document, saved) == "# Facts\n\n- BETA"
    assert documents.visible_text(None, saved) == "- BETA"
    assert documents.visible_text(None, []) == ""
    assert documents.visible_text(document, await ledger.entries(store, "u")).count("ledger") == 0


async def test_the_line_of_versions_stays_short_where_nothing_is_marked_with_them(
    store: BaseStore,
) -> None:
    document = await write(store, "v0", [await add(store, "a")])
    for number in range(20):
        document = await write(store, f"edit {number}", base=document)
    assert len(document.line) == 1


async def test_no_user_reads_or_moves_anothers_document(store: BaseStore) -> None:
    entry = await add(store, "a")
    document = await write(store, "of u", [entry])
    for other in ("U", "uu", "../u", "*", "%"):
        assert await memory.read(store, other) is None
        assert await memory.versions(store, other) == []
        assert await fresh(store, other) == []
        await memory.clear(store, other)
        with pytest.raises(ValueError, match="`version`"):
            await memory.restore(store, other, document.version, instant=NOON, by="x")
    assert await memory.read(store, "u") == document
