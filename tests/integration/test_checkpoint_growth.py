"""However long a thread gets, its checkpoints take no more room."""

import asyncio
import threading

import psycopg
import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from everlong.graph.runtime import open_agent
from everlong.nodes.context import Context
from everlong.stores.checkpoints import PooledSaver
from everlong.stores.postgres import open_pool
from everlong.stores.pruned_saver import CheckpointGoneError
from scripted_model import ScriptedModel, asks_for_summary, calling

THREAD = {"configurable": {"thread_id": "t1"}}
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_messages")
ROUNDS, EVERY, MOST_BYTES = 150, 10, 300_000


def answer(messages):
    """Summarise, call a tool in every fifth round, else answer at some length."""
    if asks_for_summary(messages):
        return "## SUMMARY\nMany orders."
    last = messages[-1]
    if last.type == "human" and last.text.endswith("look"):
        return calling(("look", {"order": last.id}), prefix=last.id)
    return "It leaves on Friday with the next feeder. " * 12


def look(order: str) -> str:
    """Look an order up."""
    return f"order {order}: " + "in the yard, row 7; " * 40


async def live_bytes(dsn):
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        sizes = [f"(SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM {t} t)" for t in TABLES]  # noqa: S608 - tables' names
        row = await (await connection.execute("SELECT " + " + ".join(sizes))).fetchone()
        return int(row[0])


async def test_live_checkpoint_bytes_stay_under_a_fixed_number(dsn):
    context = Context(
        user_id="kim",
        model=ScriptedModel(script=answer),
        memory={"enabled": False},
        compaction={"trigger_messages": 30, "keep_messages": 10, "flush_before": False},
    )
    sizes = []
    async with open_agent(tools=[look], mcp={}, dsn=dsn) as agent:
        for number in range(ROUNDS):
            text = f"What of order {number}? " * 5 + ("look" if number % 5 == 0 else "")
            said = {"messages": [{"role": "user", "content": text, "id": f"q{number}"}]}
            await agent.ainvoke(said, THREAD, context=context)
            if number % EVERY == EVERY - 1:
                sizes.append(await live_bytes(dsn))
        history = [one async for one in agent.aget_state_history(THREAD)]
    assert max(sizes) < MOST_BYTES
    early, late = sizes[2 : len(sizes) // 2], sizes[len(sizes) // 2 :]
    assert max(late) < 1.2 * max(early)
    assert 20 <= len(history) <= 45
    assert all("messages" in one.values for one in history)


def echo(saver):
    def say(state):
        return {"messages": [AIMessage(f"heard {state['messages'][-1].text}")]}

    builder = StateGraph(MessagesState).add_node("say", say).add_edge(START, "say")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_every_durability_keeps_what_it_wrote(dsn, durability):
    async with open_pool(dsn, size=3) as pool:
        graph = echo(PooledSaver(pool, kept=3))
        for number in range(30):
            said = {"messages": [("user", f"m{number}")]}
            await graph.ainvoke(said, THREAD, durability=durability)
        again = echo(PooledSaver(pool))
        messages = (await again.aget_state(THREAD)).values["messages"]
    wanted = [f"{who}m{n}" for n in range(30) for who in ("", "heard ")]
    assert [one.text for one in messages] == wanted


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_nobody_goes_on_from_a_checkpoint_that_is_gone(dsn, durability):
    async with open_pool(dsn, size=3) as pool:
        saver = PooledSaver(pool)
        graph = echo(saver)
        for text in ("one", "two"):
            await graph.ainvoke({"messages": [("user", text)]}, THREAD)
        gone = [one async for one in graph.aget_state_history(THREAD)][-2].config
        await saver.keep_newest("t1", kept=1)
        other = {"messages": [("user", "other")]}
        with pytest.raises(CheckpointGoneError, match=r"not any more.*EVERLONG_CHECKPOINTS_KEPT"):
            await graph.ainvoke(other, gone, durability=durability)
        with pytest.raises(CheckpointGoneError):
            await graph.aupdate_state(gone, other)
        messages = (await graph.aget_state(THREAD)).values["messages"]
        assert [one.text for one in messages] == ["one", "heard one", "two", "heard two"]
        assert (await graph.aget_state(gone)).values == {}


async def test_a_checkpoint_that_is_being_written_keeps_prunes_out(dsn, monkeypatch):
    async with open_pool(dsn, size=4) as pool:
        saver, other = PooledSaver(pool), PooledSaver(pool)
        for text in ("one", "two"):
            await echo(saver).ainvoke({"messages": [("user", text)]}, THREAD)
        at_work, go = threading.Event(), threading.Event()
        dump = saver._dump_blobs

        def slowly(*given):
            at_work.set()
            go.wait(30)
            return dump(*given)

        monkeypatch.setattr(saver, "_dump_blobs", slowly)
        writing = asyncio.create_task(echo(saver).ainvoke({"messages": [("user", "x")]}, THREAD))
        await asyncio.to_thread(at_work.wait, 30)
        assert await other.keep_newest("t1", kept=1) is None
        go.set()
        await writing
        assert await other.keep_newest("t1", kept=1) == 8
