"""What `memory_search` and `session_search` find by words: alike on a plain store and Postgres."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everlong.stores import files, ledger, ledger_archive, pages, transcript_search, transcripts
from everlong.stores.entries import Fact
from everlong.stores.namespaces import space
from scripted_model import ScriptedModel, calling

NOON = "2026-03-08T12:00:00Z"
FILLER = [f"An ordinary remark, the number {number} of them." for number in range(200)]
FOUND = [
    ("上海港", "我们的出口只走上海港，不走宁波。"),
    ("港", "我们的出口只走上海港，不走宁波。"),
    ("出口走哪个港口", "我们的出口只走上海港，不走宁波。"),
    ("ports", "The nearest port is far away."),
    ("port", "All ports are closed on Sunday."),
    ("CTX-009", "The task is CTX-009, said she."),
    ("ctx009", "The task is CTX-009, said she."),
    ("blue whale deployment", "Deploy plan: blue whale, 9580."),
    ("9580 deploy", "Deploy plan: blue whale, 9580."),
    ("５５５０１４２", "Her phone is 555-0142."),
    ("packing_list_v3.xlsx", "See /srv/in/packing_list_v3.xlsx, please."),
    ("ｍüller", "Ask Herr MÜLLER about it."),
]
ABSENT = ["giraffe", "宁夏", "?!", "", "the of and", "portuguese"]


async def say(store, *texts, thread="t", first=0, user="kim"):
    said = [HumanMessage(text, id=f"{thread}{n}") for n, text in enumerate(texts, first)]
    await transcripts.append(store, user, thread, said, first=first, instant=NOON)


async def note(store, *texts, instant=NOON, user="kim", thread="t"):
    return await ledger.append(
        *(store, user, "flush", [Fact(text) for text in texts]),
        instant=instant,
        zone="UTC",
        thread_id=thread,
        sources=[f"{instant}{texts}"],
    )


async def remembered(store, query, **more):
    return [one.text for one in await pages.search(store, "kim", query, **more)]


async def said(store, query, **more):
    return [hit.entry.text for hit in await transcript_search.search(store, "kim", query, **more)]


async def fill(store, texts):
    await say(store, *FILLER[:100], *texts, *FILLER[100:])
    for number, text in enumerate([*FILLER[:10], *texts, *FILLER[10:20]]):
        await note(store, text, instant=f"2026-03-{number % 20 + 1:02d}T{number % 24:02d}:00:00Z")


@pytest.mark.parametrize("kind", ["memory", "session"])
@pytest.mark.parametrize(("query", "text"), FOUND)
async def test_it_is_found_first(backend, kind, query, text):
    await fill(backend.store, [text])
    found = await (remembered if kind == "memory" else said)(backend.store, query)
    assert found
    assert found[0].removeprefix("- ") == text


@pytest.mark.parametrize("query", ABSENT)
async def test_what_is_not_there_is_not_found(backend, query):
    await fill(backend.store, [text for _, text in FOUND])
    assert await remembered(backend.store, query) == []
    assert await said(backend.store, query) == []
    _, lines = await transcript_search.search_all(backend.store, "kim", query)
    assert lines == []


async def test_an_identifier_is_one_term(backend):
    await fill(backend.store, ["CTX-010 and task 009 of CTX.", "The task is CTX-009."])
    assert (await remembered(backend.store, "CTX-009"))[0] == "- The task is CTX-009."
    assert (await said(backend.store, "CTX-009"))[0] == "The task is CTX-009."


async def test_what_says_more_of_several_words_comes_first(backend):
    await fill(backend.store, ["a whale", "a port", "the port of the whale", "whale, whale"])
    assert (await remembered(backend.store, "whale port"))[0] == "- the port of the whale"
    assert (await said(backend.store, "whale port"))[0] == "the port of the whale"


@pytest.mark.parametrize("first", [0, 9, 18, 19])
async def test_a_short_message_is_found_by_its_neighbours_words(backend, first):
    between = ["Which port do the pilots use?", "Rotterdam, always."]
    await say(backend.store, *FILLER[:first], *between, *FILLER[first:40])
    found = await said(backend.store, "which port is it for pilots from abroad?")
    assert found[:2] == between


async def test_a_source_is_the_line_of_the_page_that_is_read(backend):
    store = backend.store
    for minute in range(30):
        facts = [f"fact {minute} alpha", f"fact {minute} beta"]
        await note(store, *facts, instant=f"2026-03-08T{minute % 24:02d}:{minute:02d}:00Z")
    hits = await pages.search(store, "kim", "17 beta alpha", limit=10)
    assert len(hits) == 10
    for hit in hits:
        page = await pages.read_page(store, "kim", hit.path)
        assert page.splitlines()[hit.first - 1 : hit.last] == hit.text.splitlines()
        assert hit.source == f"memory/2026-03-08.md#{hit.first}"


async def test_a_day_of_the_users_clock_has_the_right_lines(backend):
    store = backend.store
    for hour in (14, 15, 16, 17):  # midnight in Shanghai is 16:00 in UTC
        await ledger.append(
            *(store, "kim", "save", [Fact(f"whale at {hour}")]),
            instant=f"2026-03-08T{hour}:00:00Z",
            zone="Asia/Shanghai",
            thread_id="",
            sources=[],
        )
    hits = await pages.search(store, "kim", "whale")
    assert {hit.path for hit in hits} >= {"memory/2026-03-08.md", "memory/2026-03-09.md"}
    for hit in hits:
        page = await pages.read_page(store, "kim", hit.path)
        assert page.splitlines()[hit.first - 1].strip() == hit.text


async def test_judged_facts_are_gone_and_doubtful_ones_say_so(backend):
    store = backend.store
    facts = [Fact("whale one", ("m",), "never said"), Fact("whale two"), Fact("x", (), "why")]
    entry = await ledger.append(
        *(store, "kim", "flush", facts), instant=NOON, zone="UTC", thread_id="t", sources=["m"]
    )
    assert await remembered(store, "whale one") == [
        "- whale one [unverified: never said]",
        "- whale two",
    ]
    await ledger.reject(store, "kim", entry.facts[0].key)
    (hit,) = await pages.search(store, "kim", "whale")
    assert (hit.text, hit.source) == ("- whale two", "memory/2026-03-08.md#3")
    await ledger.reject(store, "kim", entry.facts[2].key)
    assert await remembered(store, "unverified") == []


async def test_a_corrected_fact_says_so(backend):
    entry = await note(backend.store, "whale one", "whale two")
    puts = ledger.mark_corrected("kim", [(entry, entry.facts[0].key)], on="2026-03-09")
    await backend.store.abatch(puts)
    assert await remembered(backend.store, "one") == ["- whale one [corrected 2026-03-09]"]


async def test_the_archive_is_found_after_all_else(backend):
    store = backend.store
    old = [await note(store, f"whale whale {n}", instant=f"2026-01-0{n}T08:00:00Z") for n in (1, 2)]
    await note(store, "a whale and much else that is said in the same line of the ledger")
    since = await ledger_archive.returns(store, "kim")
    assert await remembered(store, "whale", limit=1) == ["- whale whale 2"]
    await ledger_archive.move(store, "kim", old, under=NOON, since=since)
    found = await pages.search(store, "kim", "whale")
    assert [hit.path for hit in found] == [
        "memory/2026-03-08.md",
        "memory/2026-01-02.md",
        "memory/2026-01-01.md",
    ]
    await ledger_archive.bring_back(store, "kim")
    assert (await remembered(store, "whale", limit=1)) == ["- whale whale 2"]


async def test_moved_texts_are_found_by_the_thread_that_names_them(backend):
    store = backend.store
    for thread in ("t1", "t2"):
        rows = "\n".join(f"row {n} of {thread}: MSKU{n:06d}" for n in range(3_000))
        file = await files.keep(store, "kim", rows, origin={"thread": thread})
        kwargs = {"everlong_evicted": {"path": file.path, "chars": file.chars}}
        moved = ToolMessage("rows ...", id="r", tool_call_id="c", additional_kwargs=kwargs)
        messages = [HumanMessage("rows?", id="q"), moved, AIMessage("There.", id="a")]
        await transcripts.append(store, "kim", thread, messages, first=0, instant=NOON)
    for thread, expected in (("t1", {"t1"}), (None, {"t1", "t2"}), ("t3", set())):
        _, lines = await transcript_search.search_all(store, "kim", "MSKU002345", thread_id=thread)
        assert {line.text.split(":")[0] for line in lines} == {
            f"row 2345 of {one}" for one in expected
        }
        assert all(line.line == 2_346 for line in lines)


async def test_a_text_that_this_very_call_moved_is_found(converse):
    def rows() -> str:
        """Return the rows."""
        return "".join(f"row {n}: MSKU{n:06d}\n" for n in range(6_000))

    def script(messages):
        results = [one for one in messages if one.type == "tool"]
        if not results:
            return calling(("rows", {}))
        if len(results) == 1:
            return calling(("session_search", {"query": "MSKU002345"}))
        return results[-1].text

    talk = converse(
        model=ScriptedModel(script=script),
        tools=[rows],
        memory={"enabled": True, "flush": "never"},
    )
    assert "row 2345: MSKU002345" in await talk.say("look")


async def test_nothing_of_another_user_is_found(backend):
    for user in ("ki", "kimo", "k_m", "Kim", "eve"):
        await note(backend.store, "secret whale", user=user)
        await say(backend.store, "secret whale", user=user)
    assert await remembered(backend.store, "secret whale") == []
    assert await said(backend.store, "secret whale") == []


async def test_the_tools_find_it_too(converse):
    model = ScriptedModel(
        script=lambda messages: (
            calling(("memory_search", {"query": "上海港"}), ("session_search", {"query": "ports"}))
            if messages[-1].type == "human"
            else "\n---\n".join(one.text for one in messages if one.type == "tool")
        )
    )
    talk = converse(model=model, memory={"enabled": True, "flush": "never"})
    await note(talk.store, "出口只走上海港")
    await say(talk.store, "The nearest port is far away.", thread="thread-1")
    memory, session = (await talk.say("look")).split("\n---\n")
    assert memory == "Source: memory/2026-03-08.md#3\n- 出口只走上海港"
    assert session.startswith("Source: sessions/thread-1#0 [human, ")
    assert session.endswith("The nearest port is far away.")


async def test_entries_from_before_facts_were_kept_one_by_one_are_found(backend):
    entry = await note(backend.store, "the whale", "the port", instant="2026-03-08T08:00:00Z")
    place = space("kim", "ledger", "entries")
    value = (await backend.store.aget(place, entry.key)).value
    old = {name: value[name] for name in value if name != "facts"}
    await backend.store.aput(place, entry.key, old, index=False)
    await note(backend.store, "a port of call")
    hits = await pages.search(backend.store, "kim", "port")
    assert {hit.source for hit in hits} == {"memory/2026-03-08.md#4", "memory/2026-03-08.md#8"}
