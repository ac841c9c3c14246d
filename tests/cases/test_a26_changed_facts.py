"""A26, 1 and 2: changed facts and duplicates in MEMORY.md, and its limit."""

import pytest

from everlong.nodes.consolidation import consolidation
from everlong.nodes.run import Run
from everlong.nodes.tokens import estimate_text
from everlong.stores import ledger, memory, pages
from everlong.stores.entries import facts_in
from given import case
from scripted_model import ScriptedModel

LINES = [line.partition(" ") for line in case("A26")["ledger_lines"]]
LIMIT = 500


async def remember(store, day, text, number=0):
    return await ledger.append(
        store,
        "kim",
        "flush",
        facts_in(text),
        instant=f"{day}T10:{number // 60:02d}:{number % 60:02d}Z",
        zone="UTC",
        thread_id="t",
        sources=[f"{day}-{number}"],
    )


@pytest.fixture
def consolidate(converse):
    async def done(model="offline", **settings):
        talk = converse(model=model, memory={"enabled": True, **settings})
        run = Run(
            context=talk.context,
            user_id="kim",
            thread_id="",
            store=talk.store,
            instant="2026-05-02T12:00:00Z",
            tell=lambda _: None,
        )
        await consolidation(run)
        return await memory.read(talk.store, "kim")

    return done


@pytest.fixture
async def lived(backend):
    for day, _, text in LINES:
        await remember(backend.store, day, text)
    return backend.store


async def test_the_newest_home_once_the_phone_once_and_a_second_run_changes_nothing(
    lived, consolidate, caplog
):
    caplog.set_level("INFO", logger="everlong.memory")
    first = await consolidate()
    assert first.text.count("Bergen") == 1
    assert "Oslo" not in first.text
    assert first.text.count("555-0142") == 1
    assert "部署 decision: plan blue whale, port 9580" in first.text
    assert await consolidate() == first
    assert "No fresh daily entries since" in caplog.text
    assert len(await memory.versions(lived, "kim")) == 1


async def test_every_line_knows_its_facts(lived, consolidate):
    document = await consolidate()
    keys = {fact.key: fact.text for e in await ledger.entries(lived, "kim") for fact in e.facts}
    told = [(line, of) for line, of in document.lines if line.startswith("- ")]
    assert told
    for line, of in told:
        assert any(keys[key] in line for key in of), (line, of)


async def test_the_history_keeps_what_the_document_replaced(lived, consolidate):
    await consolidate()
    assert any("Oslo" in entry.text for entry in await ledger.entries(lived, "kim"))


@pytest.mark.parametrize("model", ["offline", "verbose"])
async def test_the_limit_holds_after_200_more_lines_and_the_newest_win(lived, consolidate, model):
    await consolidate(document_tokens=LIMIT)
    extra = [f"likes book {n} of shelf {n % 7}" for n in range(200)]
    for number, text in enumerate(extra):
        await remember(lived, "2026-05-02", text, number)
    await ledger.append(
        lived,
        "kim",
        "save",
        facts_in("Never mail the client"),
        instant="2026-04-30T10:00:00Z",
        zone="UTC",
        thread_id="t",
        sources=[],
    )

    def verbose(messages):
        old = messages[-1].text.partition("<document>\n")[2].partition("\n</document>")[0]
        return "\n".join([old, *(f"- {text}" for text in extra)])

    used = "offline" if model == "offline" else ScriptedModel(script=verbose)
    document = await consolidate(used, document_tokens=LIMIT)
    assert estimate_text(document.text) <= LIMIT
    assert "book 199" in document.text
    assert "book 0 " not in document.text
    assert "Never mail the client" in document.text


@pytest.mark.parametrize("answer", ["", "I'm sorry, I can't do that.", "# Facts", "- badge 99999"])
async def test_a_failed_or_empty_consolidation_leaves_the_old_document(lived, consolidate, answer):
    old = await consolidate()
    await remember(lived, "2026-05-02", "likes tea")
    assert await consolidate(ScriptedModel(script=[answer])) == old
    assert len(await memory.fresh_entries(lived, "kim")) == 1


async def test_an_exception_leaves_the_old_document(lived, consolidate):
    old = await consolidate()
    await remember(lived, "2026-05-02", "likes tea")
    with pytest.raises(RuntimeError, match="503"):
        await consolidate(ScriptedModel(script=[RuntimeError("503 overloaded")] * 3))
    assert await memory.read(lived, "kim") == old


SEARCHES = next(one["search"] for one in case("A26")["steps"] if "search" in one)
FOUND = {"Bergen": "moved to Bergen", "5550142": "555-0142", "where do I live": "lives in Oslo"}


@pytest.mark.parametrize("query", SEARCHES)
async def test_each_of_the_given_searches_finds_its_line(lived, query):
    hits = await pages.search(lived, "kim", query)
    assert any(FOUND.get(query, "plan blue whale") in one.text for one in hits), hits
    assert hits[0].source.startswith("memory/2026-")


async def test_an_unrelated_word_finds_nothing(lived):
    assert await pages.search(lived, "kim", "penguin 企鹅") == []
