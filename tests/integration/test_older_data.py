"""What the version before 0.1.0 has stored is read, gone on with, pruned and swept, nothing lost.

`samples/kept-before-0.1.0.sql.xz` is a database as it left it: thread `t1` with compactions,
a stored text and MEMORY.md; `t2` waits for a person, beside a result that was fetched already; `t3`
has left a record of background work. The table `told` has what it read of it itself.
"""

import lzma
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from langgraph.types import Command, interrupt

from everlong.graph.agent import build
from everlong.graph.runtime import open_agent
from everlong.graph.sweeping import Broom, Swept, sweep_checkpoints, sweep_user
from everlong.graph.worker import hands_on
from everlong.nodes.context import Context
from everlong.nodes.working import work_through
from everlong.stores import compactions, files, ledger, memory, transcripts, work_queue
from everlong.stores.postgres import open_stores
from scripted_model import ScriptedModel

KEPT = Path(__file__).parents[1] / "samples" / "kept-before-0.1.0.sql.xz"
SMALL = {"trigger_messages": 6, "keep_messages": 2}
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_messages")
LATER = datetime.now(UTC) + timedelta(days=400)  # noqa: TID251 - checkpoints tell the true time


@pytest.fixture
async def old(fresh_dsn):
    """Yield the DSN of the older database, and what was read of it then."""
    async with await psycopg.AsyncConnection.connect(fresh_dsn, autocommit=True) as connection:
        await connection.execute(lzma.decompress(KEPT.read_bytes()))
        row = await (await connection.execute("SELECT value FROM told")).fetchone()
    assert row
    return fresh_dsn, row[0]


def thread(name):
    return {"configurable": {"thread_id": name}}


def context(model="offline", **memory):
    given = {"user_id": "kim", "model": model, "compaction": SMALL}
    return Context.model_validate(given | {"memory": {"consolidate": "on_request"} | memory})


async def history_of(graph, name):
    messages = (await graph.aget_state(thread(name))).values["messages"]
    return [[one.id, one.type, one.text] for one in messages]


async def transcript_of(store, name="t1"):
    entries = await transcripts.read(store, "kim", name)
    return [[one.number, one.message_id, one.text] for one in entries]


def look(where: str) -> str:
    """Look somewhere."""
    msg = f"expected the result that was kept of {where}"
    raise AssertionError(msg)


def ask(what: str) -> str:
    """Ask a person."""
    return f"they said {interrupt(what)}"


async def test_all_of_it_is_read_as_it_was(old):
    dsn, told = old
    async with open_stores(dsn, pool_size=4) as stores:
        graph = build().compile(checkpointer=stores.saver, store=stores.store)
        assert await history_of(graph, "t1") == told["messages"]
        assert len([one async for one in graph.aget_state_history(thread("t1"))]) > 20
        assert await transcript_of(stores.store) == told["transcript"]
        receipts = await compactions.read(stores.store, "kim", "t1")
        assert [one["id"] for one in receipts] == told["receipts"]
        entries = await ledger.entries(stores.store, "kim")
        assert [[fact.text for fact in one.facts] for one in entries] == told["facts"]
        document = await memory.read(stores.store, "kim")
        assert document
        assert document.text == told["memory"]
        assert [one.path for one in await files.list_paths(stores.store, "kim")] == told["files"]
        work = await work_queue.open_records(stores.store, None)
        assert [one.key for one in work] == told["work"]


async def test_its_thread_goes_on_and_prunes_itself_with_the_order_kept(old):
    dsn, told = old
    async with open_agent(dsn=dsn, mcp={}) as agent:
        for number in range(12):
            said = {"messages": [("user", f"And of order PX-{number}?")]}
            await agent.ainvoke(said, thread("t1"), context=context())
        said = {"messages": [("user", "Which port do our exports use?")]}
        done = await agent.ainvoke(said, thread("t1"), context=context())
        assert "Shanghai port" in done["messages"][-1].text
        assert len([one async for one in agent.aget_state_history(thread("t1"))]) <= 20 + 25
        kept = await transcript_of(agent.store)
        assert kept[: len(told["transcript"])] == told["transcript"]
        assert [number for number, *_ in kept] == list(range(len(kept)))


async def test_a_person_answers_what_waited_and_the_result_beside_it_is_the_kept_one(old):
    dsn, _ = old
    async with open_stores(dsn, pool_size=4) as stores:
        await stores.saver.keep_newest("t2", kept=1)
    async with open_agent(dsn=dsn, tools=[look, ask], mcp={}) as agent:
        model = ScriptedModel(script=["Sent."])
        done = await agent.ainvoke(Command(resume="yes"), thread("t2"), context=context(model))
    texts = [one.text for one in done["messages"]]
    assert texts[-1] == "Sent."
    assert "they said yes" in texts
    assert any("nothing in here" in text for text in texts)


async def test_a_worker_does_the_record_that_was_left(old):
    dsn, _ = old
    async with open_stores(dsn, pool_size=4) as stores:
        hands = hands_on(stores.store, lambda: LATER)
        finished = []
        await work_through(hands, None, tell=finished.append)
        assert [one.outcome for one in finished] == ["done"]
        facts = [fact.text for e in await ledger.entries(stores.store, "kim") for fact in e.facts]
        assert any("COSCO" in text for text in facts)


async def test_a_sweep_leaves_what_resuming_undoing_and_a_flush_need(old):
    dsn, told = old
    async with open_stores(dsn, pool_size=4) as stores:
        broom, done = Broom(stores=stores, context=context(), clock=lambda: LATER), Swept()
        await sweep_user(broom, "kim", done)
        await sweep_checkpoints(broom, done)
        assert done.checkpoints > 30
        assert done.receipts == len(told["receipts"]) - 1
        graph = build().compile(checkpointer=stores.saver, store=stores.store)
        assert await history_of(graph, "t1") == told["messages"]
        left = await transcript_of(stores.store)
        assert left == [one for one in told["transcript"] if one in left]
        (last,) = await compactions.read(stores.store, "kim", "t1")
        originals = await compactions.originals(stores.store, "kim", "t1", last)
        wanted = {one for one in last["message_ids"] if not one.startswith("__")}
        assert {one.message_id for one in originals} == wanted
        work = await work_queue.open_records(stores.store, None)
        assert [one.key for one in work] == told["work"]
        waiting = (await graph.aget_state(thread("t2"))).interrupts
        assert [one.value for one in waiting] == ["Sure?"]
