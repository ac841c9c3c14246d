"""Where the lines of MEMORY.md come from, and what is doubted."""

from langgraph.store.base import BaseStore

from everlong.stores import documents, ledger, memory
from everlong.stores.documents import Document
from everlong.stores.entries import Entry, Fact, Kind

NOON = "2026-03-08T12:00:00Z"
LATER = "2026-03-08T13:00:00Z"


async def add(store: BaseStore, text: str, *, kind: Kind = "flush", instant: str = NOON) -> Entry:
    return await ledger.append(
        store,
        "u",
        kind,
        [Fact(text, (text,))],
        instant=instant,
        zone="UTC",
        thread_id="t",
        sources=[text],
    )


async def write(store: BaseStore, text: str, *, base: Document | None = None) -> Document:
    return await memory.write(
        store, "u", text=text, base=base, consumed=(), instant=NOON, by="consolidation"
    )


async def test_lines_keep_the_facts_that_they_come_from(store: BaseStore) -> None:
    one, two = await add(store, "a"), await add(store, "b")
    origins = {"- a": [f"{one.key}#0"], "- b": [f"{two.key}#0"]}
    first = await memory.write(
        store,
        "u",
        text="# Facts\n\n- a\n- b",
        base=None,
        consumed=[one, two],
        instant=NOON,
        by="consolidation",
        origins=origins,
    )
    assert first.origins == ((), (), (f"{one.key}#0",), (f"{two.key}#0",))
    edited = await write(store, "- b\n- by hand", base=first)
    assert edited.lines == [("- b", (f"{two.key}#0",)), ("- by hand", ())]
    assert await memory.read(store, "u") == edited
    back = await memory.restore(store, "u", first.version, instant=LATER, by="kim")
    assert back.origins == first.origins


async def test_what_a_reader_sees_names_the_facts_of_saved_lines_too(store: BaseStore) -> None:
    document = await write(store, "\n# Facts\n- a\n\n")
    saved = await add(store, "BETA", kind="save", instant=LATER)
    assert documents.visible_lines(document, [saved]) == [
        ("# Facts", ()),
        ("- a", ()),
        ("", ()),
        ("- BETA", (f"{saved.key}#0",)),
    ]


async def test_a_doubtful_fact_is_listed_for_review_and_shown_nowhere(store: BaseStore) -> None:
    facts = [Fact("likes tea", ("h",)), Fact("port 9580", ("h",), "9580 was never said")]
    entry = await ledger.append(
        store, "u", "save", facts, instant=NOON, zone="UTC", thread_id="t", sources=["h"]
    )
    assert [(one.key, fact.text) for one, fact in await memory.review(store, "u")] == [
        (entry.key, "port 9580")
    ]
    document, saved = await memory.recollect(store, "u")
    assert documents.visible_text(document, saved) == "- likes tea"
    await ledger.confirm(store, "u", f"{entry.key}#1", instant=LATER, zone="UTC")
    assert await memory.review(store, "u") == []
    assert "port 9580" in documents.visible_text(*await memory.recollect(store, "u"))
