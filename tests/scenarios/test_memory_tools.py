"""E2 of docs/behaviour.md, and the tools over memory and archive."""

from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.messages import ToolMessage

from everlong.nodes.consolidation import consolidation
from everlong.nodes.run import Run
from everlong.stores import ledger, memory, pages
from everlong.stores.entries import facts_in, render_day
from scripted_model import ScriptedModel, asks_for_summary, calling

FACT = "- Exports go through Shanghai port only; customer code ALPHA."
ON = {"enabled": True, "consolidate": "on_request"}
TOLD = "Don't call any tool, just confirm: our exports go through Shanghai port only, code ALPHA."


def run_of(talk):
    return Run(
        context=talk.context,
        user_id=talk.context.user_id,
        thread_id="",
        store=talk.store,
        instant=talk.clock().isoformat(),
        tell=lambda _: None,
    )


class Asked(ScriptedModel):
    """Confirms, extracts the fact, consolidates it; asked for the port, searches when it must."""

    def __init__(self, **more):
        super().__init__(**more)
        self.script = self.answer

    def answer(self, messages):
        last = messages[-1]
        if "NO_REPLY" in last.text:
            return FACT if "Shanghai" in last.text.split("<conversation>")[1] else "NO_REPLY"
        if "<ledger>" in last.text:
            return "# Trade\n" + FACT
        if last.type == "tool":
            return f"Shanghai, ALPHA. {last.text.splitlines()[0]}"
        if "restore" in last.text:
            return calling(("memory_save", {"content": FACT}), prefix="s")
        if "Which port" in last.text:
            if "Shanghai" in messages[1].text:
                return "Shanghai, ALPHA. Source: MEMORY.md#2"
            return calling(("memory_search", {"query": "port of the exports"}), prefix="m")
        return "Confirmed."


async def test_e2_a_fact_comes_back_from_the_document_then_from_the_ledger(converse):
    model = Asked()
    days = iter(datetime(2026, 3, 9, 12, tzinfo=UTC) + timedelta(minutes=n) for n in range(9))
    now = [next(days)]

    def session(number):
        now[0] = next(days)
        return converse(model=model, memory=ON, thread_id=f"t{number}", clock=lambda: now[0])

    first = session(1)
    assert await first.say(TOLD) == "Confirmed."
    assert not any(isinstance(message, ToolMessage) for message in await first.messages())
    (entry,) = await ledger.entries(first.store, "kim")
    assert await memory.read(first.store, "kim") is None

    await consolidation(run_of(first))
    assert "Shanghai" in (await memory.read(first.store, "kim")).text
    assert await ledger.entries(first.store, "kim", entry.day) != []

    second = session(2)
    assert await second.say("Which port do our exports use?") == (
        "Shanghai, ALPHA. Source: MEMORY.md#2"
    )
    await memory.clear(first.store, "kim")
    third = session(3)
    answer = await third.say("Which port do our exports use?")
    assert f"Source: memory/{entry.day}.md#3" in answer
    await third.say("Please restore the document.")
    assert "Shanghai" in await pages.document_text(third.store, "kim")
    assert sum("<ledger>" in request[-1].text for request in model.requests) == 1


def once(call):
    def script(messages):
        last = messages[-1]
        if "NO_REPLY" in last.text:
            return "NO_REPLY"
        return "done" if last.type == "tool" else call

    return ScriptedModel(script=script)


async def told(talk, text="go"):
    await talk.say(text)
    return next(m.text for m in reversed(await talk.messages()) if isinstance(m, ToolMessage))


async def seeded(store, user_id, *facts, day="2026-03-01"):
    for number, fact in enumerate(facts):
        await ledger.append(
            store,
            user_id,
            "flush",
            facts_in(fact),
            instant=f"{day}T10:00:{number:02d}Z",
            zone="UTC",
            thread_id="t",
            sources=[f"m{number}"],
        )


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Bergen", "moved to Bergen"),
        ("deploy whale", "blue whale"),
        ("whale deploy", "blue whale"),
        ("部署", "blue whale"),
        ("上海港", "出口只走上海港"),
        ("PX-4471", "PX-4471"),
    ],
)
async def test_search_takes_several_words_chinese_and_identifiers(converse, query, found):
    talk = converse(model=once(calling(("memory_search", {"query": query}))), memory=ON)
    await seeded(
        talk.store,
        "kim",
        "- moved to Bergen in April",
        "- 部署 deploy decision: plan blue whale, port 9580",
        "- 我们的出口只走上海港",
        "- order PX-4471 is the pilot",
    )
    source, first = (await told(talk)).splitlines()[:2]
    assert found in first
    assert source.startswith("Source: memory/2026-03-01.md#")


async def test_search_finds_nothing_for_an_unrelated_word_and_nothing_of_strangers(converse):
    talk = converse(model=once(calling(("memory_search", {"query": "Bergen"}))), memory=ON)
    await seeded(talk.store, "eve", "- moved to Bergen")
    assert "Nothing is remembered" in await told(talk)


async def test_get_shows_numbered_lines_and_their_source(converse):
    call = calling(
        ("memory_get", {"path": "memory/2026-03-01.md", "first_line": 3, "last_line": 3})
    )
    talk = converse(model=once(call), memory=ON)
    await seeded(talk.store, "kim", "- likes short answers")
    assert await told(talk) == "Source: memory/2026-03-01.md#3-3\n3|- likes short answers"


@pytest.mark.parametrize("path", ["memory/2020-01-01.md", "../eve/MEMORY.md", "MEMORY.md", "x"])
async def test_get_of_what_is_not_there_says_what_there_is(converse, path):
    talk = converse(model=once(calling(("memory_get", {"path": path}))), memory=ON)
    await seeded(talk.store, "kim", "- likes tea")
    assert "There is: memory/2026-03-01.md" in await told(talk)


async def test_save_is_read_as_part_of_the_document_at_once(converse):
    call = calling(("memory_save", {"content": "likes tea\n* lives in Oslo"}))
    talk = converse(model=once(call), memory=ON)
    assert "Saved 2 facts. Source: memory/2026-03-09.md" in await told(talk)
    assert await pages.document_text(talk.store, "kim") == "- likes tea\n- lives in Oslo"
    (entry,) = await ledger.entries(talk.store, "kim")
    assert entry.kind == "save"
    assert "## Memory Save — 2026-03-09T12:00:00" in render_day([entry])


async def test_saving_nothing_is_told(converse):
    talk = converse(model=once(calling(("memory_save", {"content": " \n- "}))), memory=ON)
    assert "expected at least one fact" in await told(talk)


async def test_session_search_finds_the_exact_words_that_a_summary_replaced(converse):
    first = "Remember the code word “夜莺”, only confirm."

    def script(messages):
        last = messages[-1]
        if "NO_REPLY" in last.text:
            return "NO_REPLY"
        if asks_for_summary(messages):
            return "They agreed on a code word."
        if last.type == "tool":
            return f"Found: {last.text}"
        if "exact" in last.text:
            return calling(("session_search", {"query": "code word 夜莺"}))
        return "ok"

    talk = converse(
        model=ScriptedModel(script=script),
        memory=ON,
        compaction={"trigger_messages": 5, "keep_messages": 2},
    )
    await talk.say(first, "two", "three")
    assert first not in "".join(message.text for message in talk.last_request)
    answer = await talk.say("what were my exact words?")
    assert first in answer
    assert "Source: sessions/thread-1#0 [human" in answer


async def test_session_search_sees_other_threads_only_when_asked_and_never_strangers(converse):
    other = converse(model=once("x"), memory=ON, thread_id="other")
    await other.say("the heron lands at dawn")
    eve = converse(model=once("x"), memory=ON, thread_id="eves", user_id="eve")
    await eve.say("the heron is eve's")
    here = converse(model=once(calling(("session_search", {"query": "heron"}))), memory=ON)
    assert "Nothing was said" in await told(here, "look here")
    call = calling(("session_search", {"query": "heron", "everywhere": True}), prefix="e")
    found = await told(converse(model=once(call), memory=ON, thread_id="t3"), "look everywhere")
    assert "lands at dawn" in found
    assert "eve's" not in found


async def test_session_history_pages_through_the_archive(converse):
    call = calling(("session_history", {"first": 2, "count": 1}))

    def script(messages):
        last = messages[-1]
        if "NO_REPLY" in last.text:
            return "NO_REPLY"
        if last.type == "tool":
            return "done"
        return call if last.text == "go" else "ok"

    talk = converse(model=ScriptedModel(script=script), memory=ON)
    await talk.say("one", "two")
    assert (await told(talk)).endswith("\ntwo")


async def test_another_users_thread_id_reads_nothing(converse):
    await converse(model=once("x"), memory=ON, thread_id="eves", user_id="eve").say("secret heron")
    call = calling(("session_history", {"thread": "eves"}))
    found = await told(converse(model=once(call), memory=ON))
    assert "secret" not in found
    assert "holds no message" in found


@pytest.mark.parametrize(
    ("context", "on", "off"),
    [
        ({"memory": ON}, {"memory_search", "session_search", "read_file"}, set()),
        (
            {"memory": ON | {"tools": False}},
            {"read_file", "list_files"},
            {"memory_search", "session_search"},
        ),
        ({"memory": ON, "transcript": False}, {"memory_search"}, {"session_search"}),
        (
            {
                "memory": {"enabled": False},
                "eviction": {"enabled": False},
                "compaction": {"enabled": False, "overflow_retry": False},
            },
            set(),
            {"memory_search", "read_file"},
        ),
    ],
)
async def test_the_guidance_names_only_tools_that_are_on(converse, context, on, off):
    model = once("hello")
    talk = converse(model=model, **context)
    await talk.say("hi")
    prompt = talk.last_request[0].text
    offered = set(model.tools[0])
    assert on <= offered
    assert not off & offered
    named = {name for name in on | off if name in prompt}
    assert named <= offered
