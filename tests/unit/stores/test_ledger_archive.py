"""Old entries move to the archive, still read and found, and come back where they are missing."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore

from everlong.stores import ledger, ledger_archive, memory, pages, retention
from everlong.stores.documents import Document
from everlong.stores.entries import Entry, Fact, iso, moment

NOW = "2026-06-30T12:00:00Z"


def ago(days: float) -> str:
    return iso(moment(NOW) - timedelta(days=days))


async def add(store: BaseStore, text: str, days: float, *, doubt: str = "") -> Entry:
    return await ledger.append(
        *(store, "u", "flush", [Fact(text, ("m1",), doubt)]),
        instant=ago(days),
        zone="UTC",
        thread_id="t",
        sources=[text],
    )


async def write(
    store: BaseStore, text: str, *consumed: Entry, days: float = 0, base: Document | None = None
) -> Document:
    return await memory.write(
        *(store, "u"),
        text=text,
        base=base,
        consumed=consumed,
        instant=ago(days),
        by="test",
    )


async def step(store: BaseStore, *, days: int = 90, most: int = 200) -> tuple[int, bool]:
    done = await retention.archive_old_entries(store, "u", instant=NOW, days=days, most=most)
    return done.removed, done.is_last


async def texts(store: BaseStore) -> tuple[list[str], list[str]]:
    """Return what the ledger says and what the archive says."""
    entries, archived = await ledger.entries(store, "u"), await ledger_archive.entries(store, "u")
    return [one.facts[0].text for one in entries], [one.facts[0].text for one in archived]


async def fresh(store: BaseStore) -> list[str]:
    return [one.facts[0].text for one in await memory.fresh_entries(store, "u")]


async def test_only_what_is_old_and_in_the_document_moves(store: BaseStore) -> None:
    old, young = await add(store, "old", 91), await add(store, "young", 89)
    await write(store, "# v1", old, young)
    await add(store, "old and fresh", 200)
    assert await step(store) == (1, True)
    assert await texts(store) == (["old and fresh", "young"], ["old"])
    assert await step(store) == (0, True)
    assert await fresh(store) == ["old and fresh"]


async def test_without_a_document_nothing_moves_and_zero_days_switch_it_off(
    store: BaseStore,
) -> None:
    old = await add(store, "old", 400)
    assert await step(store) == (0, True)
    await write(store, "# v1", old)
    assert await step(store, days=0) == (0, True)
    assert await step(store, days=401) == (0, True)
    assert await step(store, days=399) == (1, True)


async def test_an_entry_with_a_fact_to_review_stays(store: BaseStore) -> None:
    doubtful = await ledger.append(
        *(store, "u", "flush", [Fact("sure", ("m",)), Fact("on 2026-02-13", ("m",), "no source")]),
        instant=ago(100),
        zone="UTC",
        thread_id="t",
        sources=["m"],
    )
    await write(store, "- sure", doubtful)
    assert await step(store) == (0, True)
    await ledger.reject(store, "u", doubtful.facts[1].key)
    assert await step(store) == (1, True)
    (archived,) = await ledger_archive.entries(store, "u")
    assert [fact.text for fact in archived.facts] == ["sure"]


async def test_steps_are_bounded_and_the_oldest_go_first(store: BaseStore) -> None:
    entries = [await add(store, str(number), 200 - number) for number in range(5)]
    await write(store, "# v1", *entries)
    assert await step(store, most=2) == (2, False)
    assert await texts(store) == (["2", "3", "4"], ["0", "1"])
    assert await step(store, most=2) == (2, False)
    assert await step(store, most=2) == (1, True)


async def test_an_archived_day_reads_as_before_and_is_found_last(store: BaseStore) -> None:
    old = await add(store, "port Shanghai, port of all ports", 100)
    same_day = await add(store, "the port again", 100 - 1 / 24)
    young = await add(store, "a port", 3)
    document = await write(store, "# v1", old, same_day, young)
    before = await pages.read_all(store, "u")
    assert (await step(store, most=1))[0] == 1
    assert await pages.read_all(store, "u") == before
    await step(store)
    assert await pages.read_all(store, "u") == before
    path = f"memory/{old.day}.md"
    assert await pages.read_page(store, "u", path) == before[path]
    found = await pages.search(store, "u", "port")
    assert [one.path for one in found] == [f"memory/{young.day}.md", path, path]
    assert document.version == (await ledger_archive.entries(store, "u"))[0].consumed_by


async def test_clearing_the_document_makes_the_archive_fresh_again(store: BaseStore) -> None:
    old, young = await add(store, "old", 91), await add(store, "young", 1)
    await write(store, "# v1", old, young)
    await step(store)
    await memory.clear(store, "u")
    assert await fresh(store) == ["old", "young"]
    assert await ledger_archive.entries(store, "u") == []


async def test_restoring_brings_back_what_newer_versions_took_up_and_nothing_else(
    store: BaseStore,
) -> None:
    first = await write(store, "# a", await add(store, "a", 300), days=300)
    second = await write(store, "# ab", await add(store, "b", 200), base=first, days=200)
    third = await write(store, "# abc", await add(store, "c", 100), base=second, days=2)
    fourth = await write(store, "# abcd", await add(store, "d", 95), base=third, days=1)
    await step(store)
    assert await texts(store) == ([], ["a", "b", "c", "d"])
    await memory.restore(store, "u", second.version, instant=NOW, by="test")
    assert await fresh(store) == ["c", "d"]
    assert await texts(store) == (["c", "d"], ["a", "b"])
    await memory.restore(store, "u", fourth.version, instant=NOW, by="test")
    assert await fresh(store) == []
    back = await memory.restore(store, "u", second.version, instant=NOW, by="test")
    await write(store, "# abcd again", *await memory.fresh_entries(store, "u"), base=back)
    assert await fresh(store) == []
    await step(store)
    assert await texts(store) == ([], ["a", "b", "c", "d"])


async def test_a_version_written_after_the_move_still_has_what_was_moved_before(
    store: BaseStore,
) -> None:
    first = await write(store, "# a", await add(store, "a", 300), days=50)
    await step(store)
    second = await write(store, "# ab", await add(store, "b", 40), base=first, days=40)
    await write(store, "# abc", await add(store, "c", 30), base=second, days=30)
    await memory.restore(store, "u", second.version, instant=NOW, by="test")
    assert await fresh(store) == ["c"]


class Interfering(InMemoryStore):
    """Does `then` once, as another run may, at a moment of a move."""

    then: Callable[[], Awaitable[object]] | None = None
    moment: str = "archived"

    async def abatch(self, ops):
        ops = list(ops)
        puts = [op for op in ops if isinstance(op, PutOp)]
        removes = any("entries" in put.namespace and not put.value for put in puts)
        if removes and self.moment == "removing":
            await self._interfere()
        found = await super().abatch(ops)
        archived = any("ledger_archive" in put.namespace and put.value for put in puts)
        if (archived and self.moment == "archived") or (removes and self.moment == "removed"):
            await self._interfere()
        return found

    async def _interfere(self):
        then, self.then = self.then, None
        if then:
            await then()


MOMENTS = pytest.mark.parametrize("when", ["archived", "removing", "removed"])


@MOMENTS
async def test_what_was_moved_while_the_document_was_removed_is_fresh(when: str) -> None:
    store = Interfering()
    await write(store, "# a", await add(store, "a", 300))
    store.then, store.moment = (lambda: memory.clear(store, "u")), when
    await step(store)
    assert await texts(store) == (["a"], [])
    assert await fresh(store) == ["a"]


@MOMENTS
async def test_what_was_moved_while_a_version_was_restored_is_fresh_where_that_lacks_it(
    when: str,
) -> None:
    store = Interfering()
    first = await write(store, "# a", await add(store, "a", 300), days=300)
    await write(store, "# ab", await add(store, "b", 200), base=first, days=1)
    store.moment = when
    store.then = lambda: memory.restore(store, "u", first.version, instant=NOW, by="test")
    await step(store)
    assert await fresh(store) == ["b"]
    assert len(await ledger_archive.with_archived(store, "u")) == 2


async def test_what_was_moved_while_the_document_was_rewritten_is_not_taken_up_again() -> None:
    store = Interfering()
    first = await write(store, "# a", await add(store, "a", 300))
    young = await add(store, "b", 1)
    store.then = lambda: write(store, "# ab", young, base=first)
    await step(store)
    assert await texts(store) == (["b"], ["a"])
    assert await fresh(store) == []


@pytest.mark.parametrize("puts", range(4))
async def test_a_crash_between_two_writes_loses_no_entry_and_takes_none_up_twice(
    puts: int,
) -> None:
    store = Crashing()
    await write(store, "# ab", await add(store, "a", 300), await add(store, "b", 299))
    store.puts_left = puts
    with pytest.raises(ConnectionError):
        await step(store)
    store.puts_left = None
    assert [one.facts[0].text for one in await ledger_archive.with_archived(store, "u")] == [
        "a",
        "b",
    ]
    assert await fresh(store) == []
    await step(store)
    assert await texts(store) == ([], ["a", "b"])


class Crashing(InMemoryStore):
    """Writes one item at a time, and crashes after so many when told so."""

    puts_left: int | None = None

    async def abatch(self, ops):
        found = []
        for op in ops:
            if isinstance(op, PutOp) and self.puts_left is not None:
                if self.puts_left == 0:
                    msg = "killed"
                    raise ConnectionError(msg)
                self.puts_left -= 1
            found += await super().abatch([op])
        return found


async def test_of_too_many_entries_the_oldest_move_however_young(
    store: BaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "KEPT_ENTRIES", 2)
    first, doubted, *others = [
        await add(store, "first", 4),
        await add(store, "doubted", 3, doubt="nobody said so"),
        *[await add(store, text, 2) for text in ("third", "fourth")],
    ]
    await write(store, "# Known", first, doubted, *others)
    assert await step(store, days=0) == (0, True)
    assert await step(store) == (1, True)
    assert await texts(store) == (["doubted", "third", "fourth"], ["first"])
