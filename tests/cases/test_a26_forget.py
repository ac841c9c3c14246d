"""A26, expectation 4: what a user had forgotten is gone at once, and stays gone."""

import pytest
from langchain_core.messages import HumanMessage

from everlong.nodes.consolidation import consolidation
from everlong.nodes.run import Run
from everlong.stores import (
    compactions,
    files,
    ledger,
    ledger_archive,
    memory,
    pages,
    transcript_search,
    transcripts,
)
from everlong.stores.entries import Fact
from given import case
from scripted_model import ScriptedModel, asks_for_summary, calling

NUMBER = "555-0142"
FACT = f"- phone is {NUMBER}"
ON = {"enabled": True, "consolidate": "on_request"}
ASKED = "Could you please forget my phone number?"


def script(messages):
    """Obey in everything, and say the number wherever somebody could get hold of it."""
    last = messages[-1].text
    if "NO_REPLY" in last:
        return FACT
    if "<ledger>" in last:
        return f"# Kim\n- Lives in Bergen since April 2026\n{FACT}"
    if asks_for_summary(messages):
        return f"The user's number is {NUMBER}. They live in Bergen."
    if messages[-1].type == "tool":
        return "Done." if "Forgotten" in last else "I cannot."
    if last == ASKED:
        return calling(("memory_forget", {"query": "phone number"}))
    return "I do not know." if last.startswith("What") else f"Noted: {NUMBER}. Anything else?"


def run_of(talk):
    return Run(
        context=talk.context,
        user_id="kim",
        thread_id="",
        store=talk.store,
        instant=talk.clock().isoformat(),
        tell=lambda _: None,
    )


async def everything(talk):
    """Return every text that is kept of the user, wherever it is."""
    found = {}
    for name, entries in (
        ("ledger", await ledger.entries(talk.store, "kim")),
        ("archive of the ledger", await ledger_archive.entries(talk.store, "kim")),
    ):
        found[name] = "\n".join(entry.text for entry in entries)
    document = await memory.read(talk.store, "kim")
    found["MEMORY.md"] = document.text if document else ""
    found["versions"] = "\n".join(one.text for one in await memory.versions(talk.store, "kim"))
    found["read"] = await pages.document_text(talk.store, "kim")
    for thread in await transcripts.threads(talk.store, "kim"):
        entries = await transcripts.read(talk.store, "kim", thread)
        found[f"transcript {thread}"] = "\n".join(one.text + one.stored for one in entries)
        found[f"compactions {thread}"] = str(await compactions.read(talk.store, "kim", thread))
    for file in await files.list_paths(talk.store, "kim"):
        found[file.path] = await files.read_text(talk.store, "kim", file.path)
    hits = await transcript_search.search(talk.store, "kim", NUMBER)
    found["search"] = "\n".join(hit.entry.text for hit in hits)
    lines = await pages.search(talk.store, "kim", NUMBER)
    found["memory search"] = "\n".join(line.text for line in lines)
    found["state"] = str(await talk.values())
    return found


async def holders(talk):
    return [name for name, text in (await everything(talk)).items() if NUMBER in text]


async def remembering(talk):
    """Put the case's ledger in, and have it in MEMORY.md."""
    for line in case("A26")["ledger_lines"]:
        day, _, fact = line.partition(" ")
        await ledger.append(
            talk.store,
            "kim",
            "flush",
            [Fact(fact, ("m1",))],
            instant=f"{day}T10:00:00Z",
            zone="UTC",
            thread_id="earlier",
            sources=[f"m-{day}"],
        )
    await consolidation(run_of(talk))


@pytest.fixture
async def talk(converse):
    """A thread that was compacted with the number in it, and a memory that knows it."""
    talk = converse(
        model=ScriptedModel(script=script),
        memory=ON,
        compaction={"trigger_messages": 6, "keep_messages": 2},
    )
    await remembering(talk)
    await talk.say(f"My phone is {NUMBER}. I also want a trip to Bergen.", "and now?", "thanks")
    return talk


async def test_everything_holds_the_number_before(talk):
    assert len(await holders(talk)) >= 8


async def test_it_is_not_injected_in_that_very_turn(talk):
    await talk.say(ASKED)
    last = talk.watcher.requests[-1]
    assert [message.type for message in last][-1] == "tool"
    assert not any(NUMBER in str(message) for message in last)
    assert any("Bergen" in message.text for message in last[:2])


async def test_afterwards_it_is_nowhere_and_the_rest_is_still_there(talk):
    await talk.say(ASKED)
    assert await holders(talk) == []
    kept = await everything(talk)
    assert "Bergen" in kept["MEMORY.md"]
    assert "blue whale" in kept["ledger"]
    assert "trip to Bergen" in kept["transcript thread-1"]
    assert "[forgotten]" in kept["transcript thread-1"]


async def test_no_later_flush_consolidation_or_summary_brings_it_back(talk):
    await talk.say(ASKED, "What is my phone number?", "What else?", "What now?", "What then?")
    await consolidation(run_of(talk))
    await talk.compact()
    assert await holders(talk) == []
    assert talk.event_types().count("memory.flushed") >= 6


async def test_it_is_gone_from_another_thread_when_that_is_opened_next(converse, talk):
    other = converse(model=talk.context.model, memory=ON, thread_id="thread-2")
    await other.say(f"Call me at {NUMBER}!")
    await talk.say(ASKED)
    await other.say("What is my phone number?")
    assert not any(NUMBER in str(message) for message in other.last_request)
    values = await other.values()
    assert values["call"]["first"] == values["messages"][-2].id
    assert await holders(other) == []


async def test_a_summary_of_another_thread_loses_it_too(converse, talk):
    other = converse(
        model=talk.context.model,
        memory=ON,
        thread_id="thread-2",
        compaction={"trigger_messages": 4, "keep_messages": 1},
    )
    await other.say(f"Call me at {NUMBER}!", "one", "two")
    assert NUMBER in (await other.messages())[0].text
    await talk.say(ASKED)
    await other.say("What is my phone number?")
    assert NUMBER not in str(await other.values())
    assert "They live in Bergen." in (await other.messages())[0].text


async def test_nothing_is_asked_of_a_thread_twice(talk):
    await talk.say(ASKED)
    before = await talk.values()
    await talk.send({"messages": [HumanMessage("What now?")]})
    after = await talk.values()
    assert after["forgotten"] == before["forgotten"] != ""
