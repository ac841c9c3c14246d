"""Searches by meaning: a store with an index, in memory and on Postgres with pgvector."""

import logging

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.store.base import ensure_embeddings
from langgraph.store.base.batch import AsyncBatchedBaseStore
from langgraph.store.memory import InMemoryStore

from concepts import DIMS, Concepts
from everlong.stores import (
    embedding,
    ledger,
    ledger_archive,
    memory,
    pages,
    sweeping,
    transcript_search,
    transcripts,
)
from everlong.stores.entries import Fact
from everlong.stores.namespaces import space
from everlong.stores.postgres import open_stores
from everlong.stores.semantic import may_embed, nearest
from everlong.stores.tombstones import Tombstones
from failing_store import FailingStore

NOON = "2026-03-08T12:00:00Z"


class Wrapped(AsyncBatchedBaseStore):
    """A store that does not say whether it embeds, as a server's own."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def batch(self, ops):
        return self.inner.batch(ops)

    async def abatch(self, ops):
        return await self.inner.abatch(ops)


@pytest.fixture
def embedder():
    return Concepts()


@pytest.fixture(params=["memory", "wrapped", "postgres"])
async def store(request, embedder):
    index = embedding.index_of(embedder, DIMS)
    if request.param == "postgres":
        async with open_stores(request.getfixturevalue("fresh_dsn"), index=index) as stores:
            yield stores.store
        return
    inner = InMemoryStore(index=index)
    yield inner if request.param == "memory" else Wrapped(inner)


async def note(store, *texts, instant=NOON, sources=()):
    return await ledger.append(
        *(store, "kim", "flush", [Fact(text) for text in texts]),
        instant=instant,
        zone="UTC",
        thread_id="t",
        sources=[*texts, *sources],
    )


async def say(store, *messages, thread="t", first=0):
    await transcripts.append(store, "kim", thread, messages, first=first, instant=NOON)


def human(text, name):
    return HumanMessage(text, id=name)


async def test_a_fact_is_found_by_what_it_means(store):
    await note(store, "Goods leave from the quay at Shanghai")
    await note(store, "Has an automobile", "Likes tulips", instant="2026-03-09T12:00:00Z")
    first, *_ = await pages.search(store, "kim", "which harbour")
    assert (first.text, first.source) == (
        "- Goods leave from the quay at Shanghai",
        "memory/2026-03-08.md#3",
    )
    first, *_ = await pages.search(store, "kim", "汽车")
    assert first.source == "memory/2026-03-09.md#3-4"
    assert first.text == "- Has an automobile\n- Likes tulips"


async def test_of_an_entry_the_line_with_the_words_is_shown(store):
    await note(store, "Likes tulips", "Has a car, an automobile")
    first, *more = await pages.search(store, "kim", "car")
    assert (first.text, first.source) == ("- Has a car, an automobile", "memory/2026-03-08.md#4")
    assert more == []


async def test_words_and_meaning_together_come_before_either(store):
    for hour in range(15):
        await note(store, f"car {hour} was red", instant=f"2026-03-05T{hour:02d}:00:00Z")
    await note(store, "lamp lamp", instant="2026-03-07T12:00:00Z")
    both = "lorry lamp"
    await note(store, both, instant="2026-03-06T12:00:00Z")
    first, second, *_ = await pages.search(store, "kim", "automobile lamp")
    assert first.text == f"- {both}"
    assert second.text == "- lamp lamp"


async def test_what_was_said_is_found_by_what_it_means_and_in_its_thread(store):
    await say(store, human("The ships lie at the quay.", "m0"), AIMessage("Fine.", id="m1"))
    await say(store, human("My physician called.", "m0"), thread="other")
    (hit, *_) = await transcript_search.search(store, "kim", "harbour", thread_id="t")
    assert hit.entry.text == "The ships lie at the quay."
    hits = await transcript_search.search(store, "kim", "the doctor")
    assert (hits[0].entry.thread_id, hits[0].entry.text) == ("other", "My physician called.")
    hits = await transcript_search.search(store, "kim", "the doctor", thread_id="t")
    assert "My physician called." not in [hit.entry.text for hit in hits]


async def test_exact_words_stay_first(store):
    await say(store, *(human(f"the car, automobile, lorry {n}", f"m{n}") for n in range(9)))
    await say(store, human("invoice 4711 for the ferry", "x"), first=9)
    hits = await transcript_search.search(store, "kim", '"invoice 4711"')
    assert hits[0].entry.text == "invoice 4711 for the ferry"


async def test_embedded_is_what_was_said_and_noted_and_nothing_else(store, embedder):
    call = {"name": "look", "args": {"x": "quay"}, "id": "c"}
    await say(
        store,
        human("hello", "m0"),
        AIMessage("", id="m1", tool_calls=[call]),
        ToolMessage("quay " * 50, id="m2", tool_call_id="c"),
        AIMessage("There is one.", id="m3"),
        human("long " * 1_000, "m4"),
    )
    await note(store, "a fact", "another")
    assert embedder.asked == ["hello", "There is one.", "- a fact\n- another"]
    await memory.write(
        *(store, "kim"), text="# All", base=None, consumed=[], instant=NOON, by="test"
    )
    assert len(embedder.asked) == 3


async def test_an_embedder_that_fails_costs_no_search_and_no_record(store, embedder, caplog):
    await note(store, "the quay")
    await say(store, human("at the quay", "m0"))
    embedder.fail = RuntimeError("no embedder")
    with caplog.at_level(logging.WARNING):
        assert [one.text for one in await pages.search(store, "kim", "quay")] == ["- the quay"]
        assert len(await transcript_search.search(store, "kim", "quay")) == 1
        await note(store, "a car", instant="2026-03-09T12:00:00Z")
        await say(store, human("my car", "m1"), first=1)
    assert "The search by meaning failed" in caplog.text
    assert "The embedder failed" in caplog.text
    embedder.fail = None
    assert [one.text for one in await pages.search(store, "kim", "car")][:1] == ["- a car"]
    assert len(await transcripts.read(store, "kim", "t")) == 2


async def test_a_store_that_fails_is_not_taken_for_its_embedder(store):
    failing = FailingStore(store)
    failing.fail_writes = OSError("gone")
    with pytest.raises(OSError, match="gone"):
        await note(failing, "the quay")


async def test_the_archive_is_searched_by_meaning_after_all_else(store):
    old = await note(store, "The quay of old", instant="2026-01-01T12:00:00Z")
    await note(store, "Likes tulips")
    since = await ledger_archive.returns(store, "kim")
    await ledger_archive.move(store, "kim", [old], under=NOON, since=since)
    found = [one.text for one in await pages.search(store, "kim", "harbour")]
    assert found == ["- Likes tulips", "- The quay of old"]


async def test_a_judged_fact_is_not_found_by_its_meaning_and_a_corrected_one_says_so(store):
    facts = [Fact("The quay", ("m",), "never said"), Fact("Likes tulips")]
    entry = await ledger.append(
        *(store, "kim", "flush", facts), instant=NOON, zone="UTC", thread_id="t", sources=["m"]
    )
    await ledger.reject(store, "kim", entry.facts[0].key)
    (found,) = await pages.search(store, "kim", "harbour")
    assert (found.text, found.source) == ("- Likes tulips", "memory/2026-03-08.md#3")
    puts = ledger.mark_corrected("kim", [(entry, entry.facts[1].key)], on="2026-03-09")
    await store.abatch(puts)
    (found,) = await pages.search(store, "kim", "harbour")
    assert found.text == "- Likes tulips [corrected 2026-03-09]"


async def test_a_store_without_an_index_is_not_asked(backend):
    await note(backend.store, "The quay")
    assert not may_embed(backend.store)
    place = space("kim", "ledger", "entries")
    assert await nearest(backend.store, place, "harbour", limit=5) == []
    assert await nearest(Wrapped(InMemoryStore()), place, "harbour", limit=5) == []
    assert await pages.search(backend.store, "kim", "harbour") == []


async def test_what_is_struck_out_is_struck_out_of_its_vector(fresh_dsn, embedder):
    index = embedding.index_of(embedder, DIMS)
    async with open_stores(fresh_dsn, index=index) as stores:
        await say(stores.store, human("at the quay", "m0"))
        entry = await note(stores.store, "The quay")
        embedder.fail = RuntimeError("no embedder")
        await sweeping.sweep(stores.store, "kim", Tombstones(salt="x"), [entry.facts[0].key])
        await stores.store.aput(
            space("kim", "transcripts", "t"), "00000000-m0", {"text": "[forgotten]"}, index=False
        )
    with psycopg.connect(fresh_dsn) as connection:
        assert connection.execute("SELECT * FROM store_vectors").fetchall() == []


async def test_all_of_a_users_vectors_are_looked_at_among_those_of_others(fresh_dsn, embedder):
    index = embedding.index_of(embedder, DIMS)
    async with open_stores(fresh_dsn, index=index) as stores:
        await note(stores.store, "The quay")
        with psycopg.connect(fresh_dsn, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO store (prefix, key, value) SELECT 'users.' || CASE WHEN n % 10 = 0"
                " THEN 'kim' ELSE 'u' || n % 50 END || '.ledger.entries', n::text, '{}'"
                " FROM generate_series(1, 20000) n"
            )
            connection.execute(
                "INSERT INTO store_vectors (prefix, key, field_name, embedding)"
                " SELECT prefix, key, 'text', (SELECT array_agg(random() + n - n) FROM"
                " generate_series(1, 64) n)::vector FROM store WHERE value = '{}'"
            )
            connection.execute("ANALYZE")
        found = await nearest(stores.store, space("kim", "ledger"), "harbour", limit=20)
        assert len(found) == 20
        assert found[0].value["text"] == "- The quay"


def test_an_embedder_is_found_by_its_name(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def embed(texts):\n    return [[1.0, 2.0] for _ in texts]\n")
    made = embedding.index_of(f"{file}:embed", 2)
    assert ensure_embeddings(made["embed"]).embed_query("x") == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"expected an embedder such as .*nothing"):
        embedding.index_of(f"{file}:nothing", 2)
    with pytest.raises(ValueError, match="nowhere"):
        embedding.index_of(f"{tmp_path}/nowhere.py:embed", 2)
