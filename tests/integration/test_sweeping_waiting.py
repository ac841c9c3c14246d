"""A sweep keeps what a call needs that waits: in a branch, or in another checkpointer."""

import hashlib

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from everlong.graph.agent import build
from everlong.graph.runtime import open_agent
from everlong.graph.sweeping import Swept, sweep_checkpoints, sweep_user
from everlong.nodes.context import Context
from everlong.stores import compactions, files, transcripts
from fix_sweeping import broom
from scripted_model import ScriptedModel, asks_for_summary, calling

THREAD = {"configurable": {"thread_id": "t1"}}
EARLY = {"trigger_messages": 6, "keep_messages": 2, "flush_before": False}


def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing in {where}: " + "grass " * 2_000


def ask(what: str) -> str:
    """Ask a person."""
    return f"they said {interrupt(what)}"


def pay(to: str) -> str:
    """Pay somebody."""
    return f"paid {to}"


CALLS = {
    "look": [("look", {"where": "the garden"})],
    "ask": [("ask", {"what": "Sure?"})],
    "pay": [("pay", {"to": "Kim"}), ("ask", {"what": "Sure?"})],
}


def script(messages):
    if asks_for_summary(messages):
        digest = hashlib.sha256(str(messages).encode()).hexdigest()
        return f"## SUMMARY\nThey spoke: {digest}."  # each one its own
    last = messages[-1]
    calls = CALLS.get(last.text) if last.type == "human" else None
    return calling(*calls, prefix=str(len(messages))) if calls else "Confirmed."


def context(**settings):
    given = {"user_id": "kim", "model": ScriptedModel(script=script), "memory": {"enabled": False}}
    return Context.model_validate(given | {"eviction": {"over_chars": 1_000}} | settings)


async def say(agent, *texts, config=THREAD, **settings):
    values = {}
    for text in texts:
        said = {"messages": [{"role": "user", "content": text}]}
        values = await agent.ainvoke(said, config, context=context(**settings))
    return values


async def swept(stores, calendar, **settings):
    done, by = Swept(), broom(stores, calendar, **settings)
    await sweep_user(by, "kim", done)
    await sweep_checkpoints(by, done)
    return done


async def begin_branch(agent, *texts, then=(), **settings):
    """Say something and go on elsewhere; return where the branch waits."""
    await say(agent, "hello", **settings)
    base = (await agent.aget_state(THREAD)).config
    await say(agent, *texts, **settings)
    waiting = (await agent.aget_state(THREAD)).config
    await say(agent, "elsewhere", config=base, **settings)
    await say(agent, *then, **settings)
    return waiting


async def agent_on(dsn, calendar):
    return open_agent(tools=[look, ask, pay], mcp={}, dsn=dsn, clock=calendar)


@pytest.mark.parametrize("transcript", [True, False])
async def test_a_branch_that_waits_keeps_its_messages_and_stored_texts(
    dsn, stores, calendar, transcript
):
    async with await agent_on(dsn, calendar) as agent:
        waiting = await begin_branch(agent, "look", "ask", transcript=transcript)
        (path,) = [one.path for one in await files.list_paths(stores.store, "kim")]
        before = await transcripts.read(stores.store, "kim", "t1")
        calendar.days = 400
        done = await swept(stores, calendar)
        assert (done.messages, done.files) == (0, 0)
        assert done.checkpoints > 0
        assert await files.read_text(stores.store, "kim", path)
        assert await transcripts.read(stores.store, "kim", "t1") == before
        values = await agent.ainvoke(Command(resume="yes"), waiting, context=context())
        assert [one.text for one in values["messages"]][-2:] == ["they said yes", "Confirmed."]


async def test_what_the_compaction_of_a_branch_that_waits_took_out_stays(
    dsn, stores, calendar, monkeypatch
):
    monkeypatch.setattr("everlong.nodes.retention.NEWEST", 2)
    async with await agent_on(dsn, calendar) as agent:
        told = ("one", "two", "three", "ask")
        then = [f"word {number}" for number in range(9)]
        waiting = await begin_branch(agent, *told, then=then, compaction=EARLY)
        receipts = await compactions.read(stores.store, "kim", "t1")
        state = await agent.aget_state(waiting)
        summary_id = state.values["messages"][0].id
        (mine,) = [one for one in receipts if one.get("summary_id") == summary_id]
        calendar.days = 400
        await swept(stores, calendar)
        assert mine in await compactions.read(stores.store, "kim", "t1")
        originals = await compactions.originals(stores.store, "kim", "t1", mine)
        wanted = {one for one in mine["message_ids"] if not one.startswith("__")}
        assert {one.message_id for one in originals} == wanted


async def test_a_call_that_waits_in_a_branch_keeps_what_was_done_beside_it(
    dsn, stores, calendar, monkeypatch
):
    monkeypatch.setattr("everlong.stores.record_retention.SETTLED_SECONDS", -60.0)
    async with await agent_on(dsn, calendar) as agent:
        waiting = await begin_branch(agent, "pay")
        assert (await swept(stores, calendar)).results == 0
        await agent.ainvoke(Command(resume="yes"), waiting, context=context())
        assert (await swept(stores, calendar)).results == 1


@pytest.mark.parametrize(("transcript", "days"), [(True, 180), (True, 0), (False, 180), (False, 0)])
async def test_what_was_done_beside_a_call_that_waits_in_another_checkpointer_is_not_lost(
    stores, calendar, monkeypatch, transcript, days
):
    monkeypatch.setattr("everlong.stores.record_retention.SETTLED_SECONDS", -60.0)
    graph = build(tools=[pay, ask], clock=calendar).compile(
        checkpointer=InMemorySaver(), store=stores.store
    )
    await say(graph, "pay", transcript=transcript)
    assert (await swept(stores, calendar, transcript_days=days)).results == 0
    values = await say(graph, "never mind", transcript=transcript)
    results = [one.text for one in values["messages"] if isinstance(one, ToolMessage)]
    assert results[0] == "paid Kim"


async def test_a_text_stays_where_only_another_checkpointer_tells_whether_it_is_named(
    stores, calendar
):
    graph = build(tools=[look], clock=calendar).compile(
        checkpointer=InMemorySaver(), store=stores.store
    )
    await say(graph, "look", transcript=False)
    calendar.days = 390
    await say(graph, "and on", transcript=False)
    calendar.days = 400
    assert (await swept(stores, calendar)).files == 0
    assert len(await files.list_paths(stores.store, "kim")) == 1


async def test_a_text_of_another_checkpointers_thread_goes_with_the_transcript(stores, calendar):
    graph = build(tools=[look], clock=calendar).compile(
        checkpointer=InMemorySaver(), store=stores.store
    )
    await say(graph, "look")
    calendar.days = 390
    await say(graph, "and on")
    calendar.days = 400
    assert (await swept(stores, calendar)).files == 0
    calendar.days = 800
    done = await swept(stores, calendar)
    assert (done.messages, done.files) == (6, 1)
