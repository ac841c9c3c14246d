"""Forgetting a fact (R49): what is meant, where it goes from, and that nothing brings it back."""

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everlong.stores import (
    files,
    forgetting,
    ledger,
    ledger_archive,
    memory,
    tombstones,
    transcripts,
)
from to_forget import AT, facts_of, forget, remembered, written

# What is meant


@pytest.mark.parametrize(
    "what",
    [
        "phone number",
        "my phone",
        "555-0142",
        "5550142",
        "the phone (555) 0142",
        "Source: memory/2026-03-01.md#3",
        "memory/2026-03-01.md#3",
        "MEMORY.md#2",
    ],
)
async def test_a_thing_is_named_by_words_by_its_code_or_by_its_source(backend, what):
    await remembered(backend.store, "phone is 555-0142", "badge number is 5512", "lives in Bergen")
    await written(backend.store, "# Kim\n- Phone: 555-0142\n- Lives in Bergen")
    done = await forget(backend.store, what)
    assert done.is_done
    assert await facts_of(backend.store) == ["badge number is 5512", "lives in Bergen"]
    assert (await memory.read(backend.store, "kim")).text == "# Kim\n- Lives in Bergen"


@pytest.mark.parametrize(
    ("what", "meant"),
    [
        ("Bergen", ["works in Bergen", "likes Bergen"]),
        ("card number", ["badge number is 5512"]),
        ("the number", ["badge number is 5512", "shoe number is 44"]),
        ("umbrella", []),
        ("", []),
        ("memory/2020-01-01.md#3", []),
    ],
)
async def test_where_it_is_not_certain_what_is_meant_nothing_is_erased(backend, what, meant):
    known = ["works in Bergen", "likes Bergen", "badge number is 5512", "shoe number is 44"]
    await remembered(backend.store, *known)
    done = await forget(backend.store, what)
    assert not done.is_done
    assert set(meant) <= {one.text for one in done.matters}
    assert bool(meant) == bool(done.matters)
    assert await facts_of(backend.store) == known
    assert not await tombstones.load(backend.store, "kim")


async def test_what_says_the_same_is_one_thing(backend):
    await remembered(backend.store, "lives in Oslo", "lives in Oslo, near the harbour", "likes tea")
    assert (await forget(backend.store, "lives in Oslo")).is_done
    assert await facts_of(backend.store) == ["likes tea"]


async def test_chinese_is_forgotten_like_english(backend):
    await remembered(backend.store, "用户的电话是13912345678", "我们的出口只走上海港")
    assert (await forget(backend.store, "电话号码")).is_done
    assert await facts_of(backend.store) == ["我们的出口只走上海港"]
    assert (await tombstones.load(backend.store, "kim")).matches("打给我：139 1234 5678")
    assert not (await tombstones.load(backend.store, "kim")).matches("出口走上海港")


async def test_a_code_that_another_fact_has_too_stays_with_that_and_is_told(backend):
    known = ["PX-4471 is the pilot order", "PX-4471 ships through Shanghai"]
    await remembered(backend.store, *known)
    done = await forget(backend.store, "pilot order")
    assert await facts_of(backend.store) == known[1:]
    assert [one.text for one in done.also] == known[1:]
    await forget(backend.store, "ships through Shanghai")
    assert (await tombstones.load(backend.store, "kim")).matches("about PX-4471")


async def test_words_that_were_only_said_are_forgotten_too(backend):
    said = [HumanMessage("My locker is 8A-31. Book a table.", id="h1"), AIMessage("Yes.", id="a")]
    await transcripts.append(backend.store, "kim", "t", said, first=0, instant=AT)
    assert (await forget(backend.store, "locker")).is_done
    (first, _) = await transcripts.read(backend.store, "kim", "t")
    assert first.text == "[forgotten] Book a table."


# Where it goes from


async def test_versions_the_archive_and_doubtful_facts_lose_it(backend):
    store = backend.store
    await remembered(store, "phone is 555-0142", "likes tea")
    first = await written(store, "- phone is 555-0142\n- likes tea")
    await written(store, "- likes tea\n- reach at 555-0142")
    entries = await ledger.entries(store, "kim")
    since = await ledger_archive.returns(store, "kim")
    await ledger_archive.move(store, "kim", entries, under=AT, since=since)
    await remembered(store, "phone may be 555-0142", doubt="nobody said so", day="2026-03-02")
    done = await forget(store, "555-0142")
    assert (done.swept.facts, done.swept.lines) == (2, 3)
    assert [one.text for one in await ledger_archive.entries(store, "kim")] == ["- likes tea"]
    assert await ledger.entries(store, "kim") == []
    assert [one.text for one in await memory.versions(store, "kim")] == ["- likes tea"] * 2
    restored = await memory.restore(store, "kim", first.version, instant=AT, by="test")
    assert "555" not in restored.text


async def test_a_verdict_does_not_hide_a_fact_from_being_erased(backend):
    await remembered(backend.store, "phone is 555-0142", doubt="nobody said so")
    (entry,) = await ledger.entries(backend.store, "kim")
    await ledger.reject(backend.store, "kim", entry.facts[0].key)
    await remembered(backend.store, "phone is 555-0142", day="2026-03-02")
    assert (await forget(backend.store, "phone")).swept.facts == 2
    place = ("users", "kim", "ledger")
    left = await backend.store.asearch(place)
    assert [one.namespace[-1] for one in left] == ["newest"]  # a time and a hash


async def test_what_else_a_line_was_made_of_is_fresh_again(backend):
    store = backend.store
    await remembered(store, "moved to Bergen in April", "phone is 555-0142", "likes tea")
    bergen, phone, tea = (one.facts[0].key for one in await ledger.entries(store, "kim"))
    line = "- In Bergen since April, phone 555-0142"
    await written(
        store, f"{line}\n- likes tea", origins={line: [bergen, phone], "- likes tea": [tea]}
    )
    await forget(store, "phone")
    assert (await memory.read(store, "kim")).text == "- likes tea"
    fresh = await memory.fresh_entries(store, "kim")
    assert [one.text for one in fresh] == ["- moved to Bergen in April"]


async def test_a_line_in_other_words_goes_with_the_facts_that_it_is_made_of(backend):
    store = backend.store
    await remembered(store, "lives in Oslo", "likes tea")
    home, tea = (one.facts[0].key for one in await ledger.entries(store, "kim"))
    text = "- Home town: the capital of Norway\n- likes tea"
    await written(store, text, origins=dict(zip(text.split("\n"), ([home], [tea]), strict=True)))
    await forget(store, "lives in Oslo")
    assert (await memory.read(store, "kim")).text == "- likes tea"
    assert (await tombstones.load(store, "kim")).matches("Home town is the capital of Norway")


async def test_it_is_struck_where_it_was_said_and_where_that_was_answered(backend):
    store = backend.store
    said = [
        HumanMessage("The password is hunter. Also, what is the weather?", id="h1"),
        AIMessage("Noted: hunter. It rains.", id="a1"),
        HumanMessage("And a hunter walks in the wood.", id="h2"),
    ]
    await transcripts.append(store, "kim", "t", said, first=0, instant=AT)
    await remembered(store, ("password is hunter", ("h1",)))
    await forget(store, "password")
    texts = [one.text for one in await transcripts.read(store, "kim", "t")]
    assert texts == [
        "[forgotten] Also, what is the weather?",
        "Noted: [forgotten] It rains.",
        "And a hunter walks in the wood.",
    ]


async def test_every_part_of_a_sentence_that_has_something_of_it_goes(backend):
    text = "Our exports go through Shanghai port only, customer code ALPHA, and I like tea."
    said = [HumanMessage(text, id="h1"), AIMessage("Noted.", id="a")]
    await transcripts.append(backend.store, "kim", "t", said, first=0, instant=AT)
    fact = "Exports go through Shanghai port only, customer code ALPHA"
    await remembered(backend.store, (fact, ("h1",)))
    assert (await forget(backend.store, "customer code ALPHA")).is_done
    (first, _) = await transcripts.read(backend.store, "kim", "t")
    assert first.text == "[forgotten], [forgotten], and I like tea."


async def test_words_that_only_may_say_it_are_offered_and_named_by_their_source(backend):
    said = [HumanMessage("I am allergic to nuts. Book a table.", id="h1"), AIMessage("Yes.")]
    await transcripts.append(backend.store, "kim", "t", said, first=0, instant=AT)
    offered = await forget(backend.store, "nuts")
    assert not offered.is_done
    (one,) = offered.matters
    assert (one.source, one.text) == ("sessions/t#0", "I am allergic to nuts.")
    assert (await forget(backend.store, one.source)).is_done
    (first, _) = await transcripts.read(backend.store, "kim", "t")
    assert "nuts" not in first.text


async def test_a_message_that_says_it_in_quite_other_words_goes_whole(backend):
    store = backend.store
    said = [HumanMessage("五五五，零一四二", id="h1"), HumanMessage("Thanks.", id="h2")]
    await transcripts.append(store, "kim", "t", said, first=0, instant=AT)
    await remembered(store, ("phone is 555-0142", ("h1",)))
    await forget(store, "phone")
    texts = [one.text for one in await transcripts.read(store, "kim", "t")]
    assert texts == ["[forgotten]", "Thanks."]
    await forget(store, "nothing else")
    assert [one.text for one in await transcripts.read(store, "kim", "t")] == texts


async def test_calls_results_and_stored_texts_lose_it(backend):
    store = backend.store
    call = {"name": "dial", "args": {"number": 5550142, "at": "noon"}, "id": "c1"}
    said = [
        AIMessage("", id="a1", tool_calls=[call]),
        ToolMessage('{"dialled": "555-0142", "took": 4}', id="r1", tool_call_id="c1"),
        HumanMessage("x" * 250_000 + " call 555-0142", id="long"),
    ]
    await transcripts.append(store, "kim", "t", said, first=0, instant=AT)
    await files.keep(store, "kim", "Kim: 555-0142\nEve: 555-0199\n" * 30_000)
    await remembered(store, "phone is 555-0142")
    await forget(store, "phone")
    entries = await transcripts.read(store, "kim", "t")
    assert [one.message_id for one in entries if "0142" in one.stored or "0142" in one.text] == []
    assert '"took": 4' in entries[1].text
    (file,) = await files.list_paths(store, "kim", files.EVICTED)
    text = await files.read_text(store, "kim", file.path) or ""
    assert text.count("Eve: 555-0199") == 30_000
    assert "0142" not in text


async def test_another_user_keeps_the_same_fact(backend):
    for user_id in ("kim", "kimo"):
        await remembered(backend.store, "phone is 555-0142", user_id=user_id)
    await forget(backend.store, "phone")
    assert await facts_of(backend.store, "kimo") == ["phone is 555-0142"]
    await remembered(backend.store, "phone is 555-0142", user_id="kimo", day="2026-03-02")
    assert len(await facts_of(backend.store, "kimo")) == 2


async def test_a_tombstone_holds_no_word_of_what_it_stands_for(backend):
    await remembered(backend.store, "password is hunter, phone 555-0142")
    await forget(backend.store, "password")
    kept = str(await backend.store.asearch(("users", "kim", "tombstones")))
    assert not any(word in kept for word in ("password", "hunter", "555-0142", "5550142", "phone"))


async def test_forgetting_the_same_again_is_harmless(backend):
    await remembered(backend.store, "phone is 555-0142")
    planned = await forgetting.plan(backend.store, "kim", "phone", at=AT)
    for _ in range(2):
        await forgetting.carry_out(backend.store, "kim", planned)
    assert len((await tombstones.load(backend.store, "kim")).stones) == 1


# Nothing brings it back


async def test_a_write_that_was_begun_before_the_forgetting_does_not_bring_it_back(backend):
    """The flush has asked its model already, and the consolidation has read the document."""
    store = backend.store
    await remembered(store, "phone is 555-0142", "likes tea")
    base = await memory.read(store, "kim")
    fresh = await memory.fresh_entries(store, "kim")
    await forget(store, "phone")
    await remembered(store, "phone is 555-0142", "Kim's number: 5550142", day="2026-03-02")
    text = "- likes tea\n- phone is 555-0142"
    await memory.write(store, "kim", text=text, base=base, consumed=fresh, instant=AT, by="test")
    said = [HumanMessage("Again: 555-0142. Bye.", id="late")]
    await transcripts.append(store, "kim", "t", said, first=0, instant=AT)
    assert await facts_of(store) == ["likes tea"]
    assert (await memory.read(store, "kim")).text == "- likes tea"
    assert (await transcripts.read(store, "kim", "t"))[0].text == "Again: [forgotten] Bye."


async def test_twenty_flushes_at_once_and_a_forgetting_leave_nothing(backend):
    store = backend.store
    await remembered(store, "phone is 555-0142")
    days = [f"2026-04-{day:02d}" for day in range(1, 21)]
    work = [remembered(store, "phone is 555-0142", "likes tea", day=day) for day in days]
    await asyncio.gather(*work[:10], forget(store, "phone"), *work[10:])
    assert set(await facts_of(store)) == {"likes tea"}
