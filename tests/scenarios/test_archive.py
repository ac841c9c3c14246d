"""The archive answers: the exact words of whatever left the prompt, with where they are."""

import re
import time
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from everlong.nodes.tokens import tail_size
from everlong.stores import transcript_search, transcripts
from scripted_model import ScriptedModel, asks_for_summary, calling

MEMORY = {"enabled": True, "flush": "never", "consolidate": "on_request"}
SMALL = {"trigger_messages": 6, "keep_messages": 2}
LONG = "".join(f"Clause {at}: the carrier pays for a delay of {at} days.\n" for at in range(5_000))
ROWS = "".join(
    f"row {at}: container MSKU{700_000 + at} weighs {at * 3} kg\n" for at in range(4_000)
)
SAID = {
    "zh": "合同号是 HT-2026-0917，甲方要求“不见提单不付款”，最迟装船日是十月二十八日。",
    "en": 'The invoice is INV_2026/118; she said "never again by sea, whatever it costs".',
    "phone": "Call me on 555-0142-77 when the Müller parcel is at the depot.",
    "long": f"{LONG}The arbitration is in Zürich.",
}
NOTE = "第一行：备注\nsecond line: keep the blue copy\n"
ASKED = re.compile(r"^(search|history|read) (\{.*\})$", re.DOTALL)


@tool
def manifest() -> str:
    """Return the manifest."""
    return ROWS


@tool
def write_note(text: str) -> str:
    """Write a note."""
    return f"noted {len(text)} characters"


def script(messages):
    """Do what the user's message says; sum up without any of the words."""
    last = messages[-1]
    if asks_for_summary(messages):
        return "They spoke of business."
    if last.type == "tool":
        return f"I got: {last.text}" if last.name in READERS else "done"
    for word, name, args in CALLS:
        if last.text == word:
            return calling((name, args), prefix=last.id)
    return "ok"


READERS = ("session_search", "session_history", "read_file")
CALLS: list[tuple[str, str, dict[str, Any]]] = []


@pytest.fixture
def asking():
    """Let the model call a tool of ours when the user says so; return the answer."""
    CALLS.clear()

    async def ask(talk, name, **args):
        word = f"please look {len(CALLS)}"
        CALLS.append((word, name, args))
        return (await talk.say(word)).removeprefix("I got: ")

    return ask


@pytest.fixture
async def archived(converse, asking):
    """Return a conversation whose words are all compacted away."""
    CALLS.extend([("manifest", "manifest", {}), ("note", "write_note", {"text": NOTE})])
    talk = converse(
        model=ScriptedModel(script=script),
        tools=[manifest, write_note],
        memory=MEMORY,
        compaction=SMALL | {"window_tokens": 40_000},
    )
    await talk.say(SAID["zh"], "manifest", "note", SAID["en"], SAID["phone"], SAID["long"])
    await talk.say(*(f"small talk {at}" for at in range(4)))
    prompt = "\n".join(message.text for message in talk.last_request)
    assert not any(text in prompt for text in (*SAID.values(), ROWS, "blue copy"))
    return talk


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("HT-2026-0917", SAID["zh"]),
        ("ht20260917", SAID["zh"]),
        ("HT 2026 0917", SAID["zh"]),
        ("不见提单不付款", SAID["zh"]),
        ("“不见提单不付款”", SAID["zh"]),
        ("最迟装船日是哪天", SAID["zh"]),
        ("INV2026118", SAID["en"]),
        ("inv-2026-118", SAID["en"]),
        ('"never again by sea"', SAID["en"]),
        ("5550142 77", SAID["phone"]),
        ("555014277", SAID["phone"]),
        ("MÜLLER", SAID["phone"]),
        ("blue copy", "second line: keep the blue copy"),
        ("second", "second line: keep the blue copy"),
        ("备注", "第一行：备注"),
        ("arbitration Zürich", "The arbitration is in Zürich."),
        ("Clause 4877", "Clause 4877: the carrier pays for a delay of 4877 days."),
    ],
)
async def test_the_exact_words_of_what_was_compacted_are_found(archived, asking, query, words):
    answer = await asking(archived, "session_search", query=query)
    assert words in answer.split("\n\nSource: ")[0]
    assert re.match(r"Source: sessions/thread-1#\d+ \[(human|ai), ", answer)


@pytest.mark.parametrize("query", ["MSKU703123", "msku 703123", "container MSKU-703123"])
async def test_words_in_a_result_that_was_moved_are_found_with_their_line(archived, asking, query):
    answer = await asking(archived, "session_search", query=query)
    assert "row 3123: container MSKU703123 weighs 9369 kg" in answer
    source = re.search(r"Source: (large_tool_results/\w+\.txt#3124)", answer)[1]
    page = await asking(archived, "read_file", path=source)
    assert page.startswith("row 3123: container MSKU703123 weighs 9369 kg\n")


async def test_a_quoted_phrase_goes_before_its_words(archived, asking):
    await archived.say("by sea, by sea, never again, never", "again by never sea")
    answer = await asking(archived, "session_search", query='"never again by sea"', limit=2)
    assert SAID["en"] in answer.split("\n\nSource: ")[0]


@pytest.mark.parametrize("query", ["giraffe", "HT-2026-0918", "提款机", "?!"])
async def test_what_was_never_said_is_not_found(archived, asking, query):
    answer = await asking(archived, "session_search", query=query)
    assert not any(text in answer for text in ("giraffe.", "0918.", "提款机。"))
    if query in ("giraffe", "?!"):
        assert "Nothing was said" in answer


async def test_what_a_source_names_is_read_back_word_for_word(archived, asking):
    for name, text in SAID.items():
        found = await asking(archived, "session_search", query=text[-25:])
        source = re.search(r"Source: (sessions/thread-1#\d+) ", found)[1]
        for spelled in (source, f"Source: {source}", f"`{source}`", found.splitlines()[0]):
            page = await asking(archived, "read_file", path=spelled)
            assert page.startswith(text[:200]), (name, spelled)
        end = await asking(archived, "read_file", path=source, offset=len(text) - 20)
        assert end.startswith(text[-20:])
        assert end.endswith("this is the end.]")


async def test_a_message_over_the_window_is_paged_to_its_end_by_lines(archived, asking):
    found = await asking(archived, "session_search", query="arbitration Zürich")
    source = re.search(r"Source: (sessions/thread-1#\d+) ", found)[1]
    read, more = "", 1
    while more:
        page = await asking(archived, "read_file", path=source, line=more)
        assert tail_size(HumanMessage(page)) < 20_000
        text, _, footer = page.rpartition("\n\n[")
        read += text
        more = int(found[1]) if (found := re.search(r"go on with line=(\d+)", footer)) else 0
    assert read == SAID["long"]


async def test_history_shows_every_message_in_order_within_bounds(archived, asking):
    entries = await transcripts.read(archived.store, "kim", "thread-1")
    shown, first = "", 0
    while first is not None:
        page = await asking(archived, "session_history", first=first, count=5)
        assert tail_size(HumanMessage(page)) < 20_000
        shown += f"{page}\n\n"
        numbers = [
            int(n) for n in re.findall(r"^Source: sessions/thread-1#(\d+)", page, re.MULTILINE)
        ]
        last = numbers[-1]
        first = last + 1 if last < len(entries) - 1 else None
    for entry in entries:
        assert f"Source: sessions/thread-1#{entry.number} [{entry.role}, " in shown
        assert entry.text[:1_500] in shown


async def test_another_thread_is_searched_only_when_asked_for(archived, converse, asking):
    other = converse(
        model=ScriptedModel(script=script), memory=MEMORY, thread_id="other", tools=[manifest]
    )
    for query, words in (("HT-2026-0917", SAID["zh"]), ("MSKU703123", "weighs 9369 kg")):
        assert words not in await asking(other, "session_search", query=query)
        assert words in await asking(other, "session_search", query=query, everywhere=True)


async def test_another_user_finds_and_reads_nothing(archived, converse, asking):
    eve = converse(model=ScriptedModel(script=script), memory=MEMORY, thread_id="e", user_id="eve")
    found = await asking(eve, "session_search", query="MSKU703123 HT-2026-0917", everywhere=True)
    assert "weighs" not in found
    assert "提单" not in found
    page = await asking(eve, "read_file", path="sessions/thread-1#0")
    assert "no stored text" in page


async def test_a_thread_of_5000_messages_is_searched_in_well_under_a_second(backend):
    text = "the container leaves Ningbo on friday, 客户确认了订单和明天的到货时间, paid in full "
    messages = [HumanMessage(f"{text * 4} SO-2026-{at}", id=f"m{at}") for at in range(5_000)]
    await transcripts.append(
        backend.store, "kim", "t", messages, first=0, instant="2026-03-08T12:00:00Z"
    )
    took: list[float] = []
    for query in ("SO-2026-4321", "so20264321", '"SO-2026-4321"'):
        began = time.process_time()
        hits = await transcript_search.search(backend.store, "kim", query, thread_id="t", limit=5)
        took.append(time.process_time() - began)
        assert hits[0].entry.number == 4321
    assert min(took) < 1, took
