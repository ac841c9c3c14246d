"""The word index on a real Postgres: what it finds, and that it never lags behind the store."""

import asyncio

import psycopg
import pytest

from cli_process import everlong
from everlong.stores.lexical import Common, ranking, telling
from everlong.stores.lexicon import units_of
from everlong.stores.postgres import migrate, open_stores
from everlong.stores.word_table import Block

PLACE = ("users", "kim", "transcripts", "a")


@pytest.fixture
async def store(dsn):
    async with open_stores(dsn) as stores:
        yield stores.store


def message(number, text):
    stored = f'{{"type": "human", "data": {{"content": "{number}"}}}}'
    fields = {"number": f"{number:08d}", "message_id": "", "role": "human", "at": ""}
    return {**fields, "stored": stored, "path": "", "text": text}


async def put(store, texts, place=PLACE, first=0):
    for number, text in enumerate(texts, first):
        await store.aput(place, f"{number:08d}-x", message(number, text), index=False)


async def found(store, query, place=PLACE, limit=5):
    best = await store.words.best(place, query, limit=limit)
    return [item.value["text"] for item in await store.words.items(best.blocks)]


def rows(dsn, table):
    with psycopg.connect(dsn) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("ports", "our port is far"),
        ("上海港", "出口只走上海港。"),
        ("港", "出口只走上海港。"),
        ("CTX-009", "the task is CTX-009"),
        ("it's", None),
        ("'; DROP TABLE store; --", None),
        ("\\' & | ! :* <->", None),
    ],
)
async def test_a_block_is_found_by_its_words(store, query, text):
    await put(store, ["nothing here", *([text] if text else [])])
    assert (text in await found(store, query)) is (text is not None)


async def test_a_search_stays_below_its_namespace(store):
    for user in ("kim", "kimo", "kim_", "k%m"):
        await put(store, [f"whale of {user}"], ("users", user, "transcripts", "t"))
    assert await found(store, "whale", ("users", "kim", "transcripts")) == ["whale of kim"]
    assert await found(store, "whale", ("users", "kim", "transcripts", "t")) == ["whale of kim"]
    assert await found(store, "whale", ("users", "ki", "transcripts")) == []
    assert await found(store, "whale", ("users", "kim", "ledger")) == []


async def test_what_was_written_since_the_last_search_is_found(store):
    assert await found(store, "whale") == []
    await put(store, ["whale one"])
    assert await found(store, "whale") == ["whale one"]
    await put(store, [f"filler {n}" for n in range(30)], first=1)
    await put(store, ["whale two"], first=31)
    assert {"whale one", "whale two"} <= set(await found(store, "whale"))


async def test_one_that_takes_the_place_of_another_is_found(store):
    await put(store, ["whale", "ship"])
    assert await found(store, "whale")
    await store.adelete(PLACE, "00000000-x")
    await store.aput(PLACE, "00000000-branch", message(0, "orca"), index=False)
    assert "orca" in await found(store, "orca")
    assert await found(store, "whale") == []


async def test_what_was_changed_in_place_is_found_as_it_is_now(store, dsn):
    await put(store, ["whale"])
    assert await found(store, "whale")
    await store.aput(PLACE, "00000000-x", message(0, "orca"), index=False)
    assert await found(store, "orca") == ["orca"]
    assert await found(store, "whale") == []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DELETE FROM store")
    assert await found(store, "orca") == []
    assert rows(dsn, "store_words") == []
    assert rows(dsn, "store_words_due") == []


async def test_a_change_while_its_block_is_indexed_is_not_lost(store, monkeypatch):
    await put(store, ["whale"])
    at_work, go_on = asyncio.Event(), asyncio.Event()
    texts_of = store.words._texts_of

    async def slowly(namespace, values):
        texts = await texts_of(namespace, values)
        at_work.set()
        await go_on.wait()
        return texts

    monkeypatch.setattr(store.words, "_texts_of", slowly)
    searching = asyncio.create_task(found(store, "orca"))
    await at_work.wait()
    await store.aput(PLACE, "00000000-x", message(0, "orca"), index=False)
    go_on.set()
    await searching
    assert await found(store, "orca") == ["orca"]


async def test_an_older_look_at_a_block_never_takes_the_place_of_a_newer_one(store, dsn):
    async with open_stores(dsn) as others:
        await put(store, ["whale"])
        at_work, go_on = asyncio.Event(), asyncio.Event()
        texts_of = others.store.words._texts_of

        async def slowly(namespace, values):
            texts = await texts_of(namespace, values)
            at_work.set()
            await go_on.wait()
            return texts

        others.store.words._texts_of = slowly
        searching = asyncio.create_task(found(others.store, "whale"))
        await at_work.wait()
        await store.aput(PLACE, "00000000-x", message(0, "orca"), index=False)
        assert await found(store, "orca") == ["orca"]
        go_on.set()
        assert await searching == []
        assert await found(store, "orca") == ["orca"]
        assert "orca" in str(rows(dsn, "store_words"))


async def test_many_who_write_and_index_at_once_lose_nothing(dsn):
    async with open_stores(dsn) as one, open_stores(dsn) as two, open_stores(dsn) as three:
        stores = [one.store, two.store, three.store]

        async def write(writer):
            for turn in range(30):
                texts = [f"w{writer}t{turn}", f"again{writer} turn{turn}"]
                key = f"{turn % 10:08d}-{writer}"
                await stores[writer].aput(PLACE, key, message(turn, " ".join(texts)), index=False)

        async def search(store):
            for turn in range(20):
                await found(store, f"w0t{turn}")

        await asyncio.gather(*map(write, range(3)), *map(search, stores), *map(search, stores))
        for writer in range(3):
            for turn in range(20, 30):
                texts = await found(stores[writer - 1], f"w{writer}t{turn}")
                assert any(text.startswith(f"w{writer}t{turn} ") for text in texts)
            assert "w0t5 " not in str(await found(one.store, "w0t5"))
    assert rows(dsn, "store_words_due") == []


async def test_what_was_stored_before_there_was_an_index_is_found(store, dsn):
    await put(store, ["whale"])
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (
            "DROP TRIGGER store_words_changed ON store",
            "DROP TRIGGER store_words_removed ON store",
            "DROP TABLE store_words, store_words_due",
        ):
            connection.execute(statement)
    await store.aput(PLACE, "00000001-x", message(1, "orca"), index=False)
    await migrate(dsn)
    assert await found(store, "orca") == ["whale", "orca"]


async def test_an_index_that_is_dropped_is_made_anew(store, dsn):
    await put(store, ["whale"])
    assert await found(store, "whale")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE store_words")
    await migrate(dsn)
    assert await found(store, "whale") == ["whale"]


async def test_a_block_that_is_too_long_to_index_is_always_looked_at(store):
    many = [" ".join(f"{n:07d}" for n in range(at, at + 20_000)) for at in range(0, 80_000, 20_000)]
    await put(store, [*many, "short"])
    await put(store, [f"filler {n}" for n in range(40)], first=10)
    best = await store.words.best(PLACE, "0079999", limit=5)
    assert best.blocks == [Block(PLACE, "0000000")]


async def test_neighbours_of_a_block_come_with_it(store):
    await put(store, [f"word {n}" if n != 19 else "whale" for n in range(40)])
    best = await store.words.best(PLACE, "whale", limit=5)
    items = await store.words.items(best.blocks, margin=2)
    assert [item.key[:8] for item in items] == [f"{n:08d}" for n in range(8, 22)]
    best = await store.words.best(PLACE, "39", limit=5)
    assert len(await store.words.items(best.blocks, margin=2)) == 12


async def test_blocks_are_ranked_by_rare_words(store):
    await put(store, [f"port number {n}" for n in range(60)])
    await put(store, ["the port of the whale"], first=60)
    best = await store.words.best(PLACE, "port whale", limit=3)
    assert best.blocks[0] == Block(PLACE, "0000006")
    (port,), (whale,) = units_of("port"), units_of("whale")
    assert best.rarities[whale] > best.rarities[port]


async def test_searches_at_once_agree(store):
    await put(store, [f"whale {n}" for n in range(100)])
    answers = await asyncio.gather(*(found(store, "whale 42", limit=20) for _ in range(10)))
    assert all(answer == answers[0] for answer in answers)
    assert "whale 42" in answers[0]


def test_common_words_do_not_choose_what_is_ranked():
    (port,), (whale,), *_ = (units_of(word) for word in ("port", "whale"))
    common = Common(rows=1_000_000, shares={"port": 0.4, "\x01users.kim.ledger": 0.1, "x": 1e-6})
    below = ("users", "kim", "ledger")
    expected = {unit: common.expected(unit, below) for unit in (port, whale)}
    assert telling(expected) == [whale]
    assert telling({port: 1e9}) == [port]
    asked = ranking(below, "port whale", limit=5, common=common)
    assert asked.rarities({})[whale] > asked.rarities({})[port]


def test_before_postgres_has_counted_every_word_chooses():
    asked = ranking(PLACE, "port whale", limit=5, common=Common(rows=1_000_000))
    assert len(asked.units) == 2


def test_a_sweep_leaves_nothing_for_the_next_search_to_index(dsn):
    said = "Remember that our exports go through Shanghai port only.\n"
    everlong("chat", "-u", "kim", "-t", "orders", "--dsn", dsn, given=said)
    assert rows(dsn, "store_words_due")
    assert everlong("sweep", "--dsn", dsn).code == 0
    assert rows(dsn, "store_words_due") == []
    assert "shanghai" in str(rows(dsn, "store_words"))
