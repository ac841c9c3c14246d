import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.store.base import BaseStore

from everlong.stores import files, transcript_search, transcripts
from everlong.stores.namespaces import space

NOON = "2026-03-08T12:00:00Z"
CONVERSATION: list[BaseMessage] = [
    SystemMessage("Be brief.", id="s1"),
    HumanMessage("Track 订单 ORD-7781, please 👨‍👩‍👧", id="h1", name="kim"),
    AIMessage(
        "",
        id="a1",
        tool_calls=[
            {"name": "track", "args": {"z": 1, "a": {"order": "ORD-7781"}}, "id": "c1"},
            {"name": "track", "args": {}, "id": "c2"},
        ],
        invalid_tool_calls=[
            {"name": "track", "args": "{", "id": "c3", "error": "bad", "type": "invalid_tool_call"}
        ],
    ),
    ToolMessage(
        [{"type": "text", "text": "at sea"}, {"type": "image", "base64": "QUJD"}],
        id="t1",
        tool_call_id="c1",
        name="track",
        artifact={"rows": [3, 2.5, None]},
        status="error",
    ),
    ToolMessage("", id="t2", tool_call_id="c2", artifact=[]),
    AIMessage(
        [
            {"type": "thinking", "thinking": "hm", "signature": "x=="},
            {"type": "text", "text": "Sea."},
        ],
        id="a2",
        additional_kwargs={"pin": True},
    ),
    AIMessageChunk(content="part", id="a3"),
]


async def append(
    store: BaseStore,
    messages: Sequence[BaseMessage],
    *,
    user: str = "u",
    thread: str = "t",
    first: int = 0,
    instant: str = NOON,
) -> int:
    return await transcripts.append(store, user, thread, messages, first=first, instant=instant)


def said(*texts: str, first: int = 0) -> list[BaseMessage]:
    return [HumanMessage(text, id=f"m{number}") for number, text in enumerate(texts, first)]


async def found(store: BaseStore, query: str, **more: Any) -> list[str]:
    return [hit.entry.text for hit in await transcript_search.search(store, "u", query, **more)]


async def test_messages_come_back_equal_and_in_order(store: BaseStore) -> None:
    assert await append(store, CONVERSATION) == 7
    entries = await transcripts.read(store, "u", "t")
    assert transcripts.messages_of(entries) == CONVERSATION
    assert [entry.number for entry in entries] == list(range(7))
    assert [entry.message_id for entry in entries] == [message.id for message in CONVERSATION]
    assert {entry.at for entry in entries} == {NOON}


async def test_the_order_of_arguments_and_large_numbers_survive(store: BaseStore) -> None:
    args = {"z": 2**70, "a": 1.0, "m": [True, None]}
    asking = AIMessage("", id="a", tool_calls=[{"name": "f", "args": args, "id": "c"}])
    await append(store, [asking])
    (message,) = transcripts.messages_of(await transcripts.read(store, "u", "t"))
    assert isinstance(message, AIMessage)
    assert json.dumps(message.tool_calls[0]["args"]) == json.dumps(args)


async def test_what_a_provider_says_about_its_answer_is_not_kept(store: BaseStore) -> None:
    answer = AIMessage(
        "hi",
        id="a",
        response_metadata={"model": "m"},
        usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    )
    await append(store, [answer])
    read = await transcripts.read(store, "u", "t")
    assert transcripts.messages_of(read) == [AIMessage("hi", id="a")]


async def test_appending_twice_is_harmless_and_keeps_the_first(store: BaseStore) -> None:
    assert await append(store, said("whole", "two")) == 2
    assert await append(store, said("preview", "two", "three"), instant="2026-03-09T00:00:00Z") == 1
    entries = await transcripts.read(store, "u", "t")
    assert [(entry.text, entry.at[:10]) for entry in entries] == [
        ("whole", "2026-03-08"),
        ("two", "2026-03-08"),
        ("three", "2026-03-09"),
    ]


async def test_two_branches_of_a_thread_are_both_kept(store: BaseStore) -> None:
    await append(store, [HumanMessage("Oslo", id="h1")], first=4)
    await append(store, [HumanMessage("Turku", id="h2")], first=4)
    entries = await transcripts.read(store, "u", "t")
    assert [(entry.number, entry.text) for entry in entries] == [(4, "Oslo"), (4, "Turku")]
    for text in ("without", "an id"):
        assert await append(store, [HumanMessage(text)], first=5) == 1


async def test_a_part_is_read_by_number_over_gaps_too(store: BaseStore) -> None:
    await append(store, said(*"abcdefghijkl"))
    await append(store, said("x", "y", "z", first=50), first=50)

    async def part(**where: int) -> str:
        return "".join(e.text for e in await transcripts.read(store, "u", "t", **where))

    assert await part() == "abcdefghijklxyz"
    assert await part(first=9) == "jklxyz"
    assert await part(first=1, limit=2) == "bc"
    assert await part(first=10, limit=4) == "klxy"
    assert await part(first=52, limit=4) == "z"
    assert await part(first=99, limit=4) == ""
    assert await part(limit=0) == ""


async def test_more_messages_than_one_search_returns_are_all_read(store: BaseStore) -> None:
    await append(store, said(*(str(number) for number in range(1_100))))
    entries = await transcripts.read(store, "u", "t")
    assert [entry.text for entry in entries] == [str(number) for number in range(1_100)]


async def test_a_message_over_a_megabyte_is_kept_whole_in_small_values(store: BaseStore) -> None:
    long = "部署\n" * 400_000
    block = {"type": "image", "base64": "A" * 1_500_000}
    messages = [HumanMessage(long, id="h1"), HumanMessage(["see", block], id="h2")]
    await append(store, messages)
    entries = await transcripts.read(store, "u", "t")
    assert transcripts.messages_of(entries) == messages
    assert entries[0].text == long[:200_000]
    assert await transcripts.full_text(store, "u", entries[0]) == long
    for item in await store.asearch(space("u", "transcripts")[:2], limit=100):
        assert len(json.dumps(item.value, ensure_ascii=False).encode()) < 1_000_000


async def test_a_long_message_whose_file_is_gone_is_named(store: BaseStore) -> None:
    await append(store, [HumanMessage("x" * 300_000, id="h1")])
    (file,) = await files.list_paths(store, "u")
    await files.remove(store, "u", file.path)
    with pytest.raises(LookupError, match=file.path):
        await transcripts.read(store, "u", "t")
    (hit,) = await transcript_search.search(store, "u", "x" * 100)
    assert hit.entry.message_id == "h1"


async def test_an_evicted_message_leads_to_its_whole_text(store: BaseStore) -> None:
    whole = "row\n" * 30_000
    path = files.evicted_path(whole)
    await files.write(store, "u", path, whole)
    reference = {"everlong_evicted": {"path": path, "chars": len(whole)}}
    preview = ToolMessage("row ...", id="t1", tool_call_id="c", additional_kwargs=reference)
    await append(store, [preview])
    (entry,) = await transcripts.read(store, "u", "t")
    assert transcripts.messages_of([entry]) == [preview]
    assert await transcripts.full_text(store, "u", entry) == whole


@pytest.mark.parametrize(
    "reference", ["x", {}, {"path": 3}, {"path": "../ada/secret"}, {"path": "nowhere.txt"}]
)
async def test_a_made_up_reference_leads_nowhere(store: BaseStore, reference: Any) -> None:
    forged = HumanMessage("hi", id="h", additional_kwargs={"everlong_evicted": reference})
    await append(store, [forged])
    (entry,) = await transcripts.read(store, "u", "t")
    assert await transcripts.full_text(store, "u", entry) == "hi"


async def test_what_is_not_json_never_stops_the_transcript(store: BaseStore) -> None:
    odd: list[BaseMessage] = [
        ToolMessage("rows", id="t", tool_call_id="c", artifact={"frame": object()}),
        HumanMessage([{"type": "image", "data": b"abc"}], id="h"),
        AIMessage("x", id="a", additional_kwargs={"n": float("nan"), "o": {1, 2}, 3: "\x00"}),
        HumanMessage("no id \ud83d\x00"),
    ]
    assert await append(store, odd) == 4
    assert await append(store, odd) == 0
    tool, human, answer, nameless = transcripts.messages_of(await transcripts.read(store, "u", "t"))
    assert isinstance(tool, ToolMessage)
    assert tool.artifact is None
    assert human.content == [{"type": "image", "data": "YWJj"}]
    assert answer.additional_kwargs == {"n": None, "o": "{1, 2}", "3": "\ufffd"}
    assert nameless.content == "no id \ufffd\ufffd"


async def test_odd_and_long_message_ids_are_kept(store: BaseStore) -> None:
    messages = [HumanMessage("x", id=one) for one in ("../a", "x" * 5_000, "用户.1")]
    await append(store, messages)
    assert transcripts.messages_of(await transcripts.read(store, "u", "t")) == messages


async def test_a_transcript_exports_as_json_lines(store: BaseStore) -> None:
    await append(store, said("部署\u2028", "b"))
    lines = transcripts.to_jsonl(await transcripts.read(store, "u", "t")).split("\n")
    assert lines.pop() == ""
    first = json.loads(lines[0])
    assert (first["thread_id"], first["number"], first["at"]) == ("t", 0, NOON)
    assert first["message"]["data"]["content"] == "部署\u2028"
    assert len(lines) == 2
    assert transcripts.to_jsonl([]) == ""


async def test_the_threads_of_a_user_are_listed(store: BaseStore) -> None:
    for thread in ("a.b/c", "用户", "t1"):
        await append(store, said("x"), thread=thread)
    assert await transcripts.threads(store, "u") == ["a.b/c", "t1", "用户"]
    assert await transcripts.threads(store, "nobody") == []


async def test_no_user_and_no_thread_sees_anothers_messages(store: BaseStore) -> None:
    long = "secret " * 50_000
    await append(store, [HumanMessage(long, id="h1")], user="ada")
    (entry,) = await transcripts.read(store, "ada", "t")
    for other in ("ad", "adaa", "Ada", "../ada", "*"):
        assert await transcripts.read(store, other, "t") == []
        assert await transcripts.threads(store, other) == []
        assert await transcript_search.search(store, other, "secret") == []
        with pytest.raises(LookupError):
            await transcripts.full_text(store, other, entry)
    assert await transcripts.read(store, "ada", "t2") == []


async def test_search_finds_words_han_and_identifiers_in_any_order(store: BaseStore) -> None:
    whale = "部署 decision: plan blue whale, port 9580"
    await append(store, said("my phone is 555-0142", "lunch at noon", whale, "see PL_v3.xlsx"))
    for query in ("deploy whale", "whale port", "WHALE", "部署 whale", "部", "9580"):
        assert (await found(store, query))[0] == whale
    for query in ("5550142", "555-0142", "５５５０１４２"):
        assert await found(store, query) == ["my phone is 555-0142"]
    assert await found(store, "pl_v3.xlsx") == ["see PL_v3.xlsx"]
    for query in ("giraffe", "署决", "", "?!", "hale"):
        assert await found(store, query) == []


async def test_search_reads_the_arguments_of_calls(store: BaseStore) -> None:
    await append(store, CONVERSATION)
    hits = await transcript_search.search(store, "u", "ORD-7781")
    assert {hit.entry.message_id for hit in hits} == {"h1", "a1"}


async def test_search_puts_rare_terms_first(store: BaseStore) -> None:
    await append(store, said("a whale", "the the the end", "the dog", "the cat", "the cow"))
    assert (await found(store, "the whale"))[0] == "a whale"


async def test_a_neighbour_that_says_what_is_asked_adds_weight(store: BaseStore) -> None:
    await append(store, said("a boat", "its sails", "x", "x", "x", "a boat", "x"))
    hits = await transcript_search.search(store, "u", "boat sails")
    assert [hit.entry.number for hit in hits][:3] == [1, 0, 5]


async def test_a_short_message_is_found_by_its_neighbours_words(store: BaseStore) -> None:
    await append(store, said("Which port do you use?", "Shanghai, always.", "x", "y", "z"))
    assert (await found(store, "which port is it, Rotterdam?"))[:2] == [
        "Which port do you use?",
        "Shanghai, always.",
    ]


async def test_a_hit_shows_its_neighbours_of_the_same_thread(store: BaseStore) -> None:
    await append(store, said("a", "b", "Which car?", "The blue one.", "d", "e"), thread="t1")
    await append(store, said("which car again"), thread="t2")
    (hit,) = await transcript_search.search(store, "u", "car", thread_id="t1")
    assert [entry.text for entry in hit.before] == ["a", "b"]
    assert [entry.text for entry in hit.after] == ["The blue one.", "d"]
    both = await transcript_search.search(store, "u", "car")
    assert {hit.entry.thread_id for hit in both} == {"t1", "t2"}
    assert next(hit for hit in both if hit.entry.thread_id == "t2").before == ()


async def test_search_returns_no_more_than_asked(store: BaseStore) -> None:
    await append(store, said(*(f"whale {number}" for number in range(30))))
    assert len(await found(store, "whale", limit=7)) == 7
    assert await found(store, "whale", limit=0) == []
