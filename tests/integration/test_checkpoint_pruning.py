"""A thread keeps its newest checkpoints, what waits for a person, and all that these need."""

import asyncio
from typing import Annotated

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from psycopg.rows import dict_row
from typing_extensions import TypedDict

from everlong.stores import checkpoint_pruning
from everlong.stores.checkpoints import PooledSaver
from everlong.stores.postgres import open_pool

CONFIG = {"configurable": {"thread_id": "t1"}}
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_messages")


@pytest.fixture
async def pool(dsn):
    async with open_pool(dsn, size=6) as opened:
        yield opened


def echo(saver, answer=None):
    def say(state):
        return {"messages": [AIMessage(f"heard {state['messages'][-1].text}")]}

    builder = StateGraph(MessagesState).add_node("answer", answer or say)
    return builder.add_edge(START, "answer").compile(checkpointer=saver)


async def say(graph, *texts, config=CONFIG, **options):
    for text in texts:
        await graph.ainvoke({"messages": [("user", text)]}, config, **options)


async def said(graph, config=CONFIG):
    return [m.text for m in (await graph.aget_state(config)).values.get("messages", [])]


async def history(graph):
    return [one async for one in graph.aget_state_history(CONFIG)]


async def rows(dsn, table="checkpoints"):
    async with await psycopg.AsyncConnection.connect(dsn, row_factory=dict_row) as connection:
        cursor = await connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - a table's name
        return await cursor.fetchall()


async def counts(dsn):
    return [len(await rows(dsn, table)) for table in TABLES]


async def test_a_thread_prunes_itself_and_what_stays_reads_forks_and_goes_on(pool, dsn):
    graph = echo(PooledSaver(pool, kept=10))
    await say(graph, *(f"m{number}" for number in range(20)))
    snapshots = await history(graph)
    assert 10 <= len(snapshots) < 10 + checkpoint_pruning.LEAST_STEPS
    assert await said(graph) == [f"{who}m{n}" for n in range(20) for who in ("", "heard ")]
    for snapshot in snapshots:
        assert await said(graph, snapshot.config) == [m.text for m in snapshot.values["messages"]]
    fork = next(one for one in snapshots[5:] if one.next == ())
    await say(graph, "other", config=fork.config)
    assert (await said(graph))[-2:] == ["other", "heard other"]
    ident = (await graph.aget_state(CONFIG)).values["messages"][0].id
    await graph.aupdate_state(CONFIG, {"messages": [RemoveMessage(ident)]})
    await say(echo(PooledSaver(pool, kept=10)), "last")
    assert (await said(graph))[0] == "heard m0"


async def test_rows_of_what_went_go_with_it_and_no_others(pool, dsn):
    saver = PooledSaver(pool)
    graph = echo(saver)
    await say(graph, *(f"m{number}" for number in range(6)))
    await say(graph, "elsewhere", config={"configurable": {"thread_id": "t2"}})
    before = await counts(dsn)
    for message in (await graph.aget_state(CONFIG)).values["messages"][:-2]:
        await graph.aupdate_state(CONFIG, {"messages": [RemoveMessage(message.id)]})
    assert (await saver.keep_newest("t1", kept=1) or 0) > 15
    other = [len([one for one in await rows(dsn, t) if one["thread_id"] == "t2"]) for t in TABLES]
    ours = [a - b for a, b in zip(await counts(dsn), other, strict=True)]
    assert (ours[0], ours[2], ours[3]) == (1, 0, 2)
    assert ours[1] <= 3 < before[1]
    (left,) = [one for one in await rows(dsn) if one["thread_id"] == "t1"]
    assert left["parent_checkpoint_id"] is None
    assert await said(graph) == ["m5", "heard m5"]
    others = await said(graph, {"configurable": {"thread_id": "t2"}})
    assert others == ["elsewhere", "heard elsewhere"]
    assert await saver.keep_newest("t1", kept=1) == 0


class Asking:
    """A graph whose node asks a person, after something that is not to be done twice."""

    def __init__(self, saver):
        self.paid = 0

        def pay(state):
            self.paid += 1
            return {"messages": [AIMessage("paid")]}

        def ask(state):
            return {"messages": [AIMessage(f"they said {interrupt('Sure?')}")]}

        builder = StateGraph(MessagesState).add_node("pay", pay).add_node("ask", ask)
        builder = builder.add_edge(START, "pay").add_edge(START, "ask")
        self.graph = builder.compile(checkpointer=saver)


async def test_what_waits_for_a_person_is_answered_after_a_prune_and_nothing_runs_twice(pool):
    saver = PooledSaver(pool)
    asking = Asking(saver)
    await say(asking.graph, "one")
    await asking.graph.ainvoke(Command(resume="yes"), CONFIG)
    await say(asking.graph, "two")
    await saver.keep_newest("t1", kept=1)
    (waiting,) = (await asking.graph.aget_state(CONFIG)).interrupts
    await asking.graph.ainvoke(Command(resume={waiting.id: "no"}), CONFIG)
    assert (await said(asking.graph))[-2:] == ["they said no", "paid"]
    assert asking.paid == 2


async def test_a_branch_that_waits_for_a_person_stays_until_somebody_goes_on_from_it(pool):
    saver = PooledSaver(pool)
    asking = Asking(saver)
    await say(asking.graph, "one")
    await asking.graph.ainvoke(Command(resume="yes"), CONFIG)
    settled = (await asking.graph.aget_state(CONFIG)).config
    await say(asking.graph, "two")
    branch = (await asking.graph.aget_state(CONFIG)).config
    await say(asking.graph, "three", config=settled)
    await asking.graph.ainvoke(Command(resume="yes"), CONFIG)
    for number in range(12):
        await asking.graph.aupdate_state(CONFIG, {"messages": [HumanMessage(f"n{number}")]}, "pay")
    await saver.keep_newest("t1", kept=2)
    assert len(await history(asking.graph)) == 3
    await asking.graph.ainvoke(Command(resume="late"), branch)
    assert (await said(asking.graph))[-2:] == ["they said late", "paid"]
    await saver.keep_newest("t1", kept=1)
    assert len(await history(asking.graph)) == 1


class Shared(TypedDict):
    seen: Annotated[list[int], lambda a, b: a + b]


async def test_a_subgraphs_call_goes_with_its_caller_and_its_memory_stays(pool, dsn):
    def count(state):
        return {"seen": [len(state["seen"])]}

    def child(*, checkpointer):
        builder = StateGraph(Shared).add_node("count", count).add_edge(START, "count")
        return builder.compile(checkpointer=checkpointer)

    builder = StateGraph(Shared).add_node("anew", child(checkpointer=None))
    builder = builder.add_node("lasting", child(checkpointer=True))
    builder = builder.add_edge(START, "anew").add_edge("anew", "lasting")
    saver = PooledSaver(pool)
    graph = builder.compile(checkpointer=saver)
    for _ in range(4):
        await graph.ainvoke({"seen": [0]}, CONFIG)
    before = {row["checkpoint_ns"] for row in await rows(dsn)}
    assert len([ns for ns in before if ns.startswith("anew:")]) == 4
    await saver.keep_newest("t1", kept=1)
    assert {row["checkpoint_ns"] for row in await rows(dsn)} == {"", "lasting"}
    assert {row["checkpoint_ns"] for row in await rows(dsn, "checkpoint_blobs")} <= {"", "lasting"}
    kept = await graph.aget_state({"configurable": {"thread_id": "t1", "checkpoint_ns": "lasting"}})
    assert len(kept.values["seen"]) > 4
    await graph.ainvoke({"seen": [0]}, CONFIG)


class Noted(MessagesState):
    """Messages, and a channel that most steps leave alone."""

    notes: list[str]


class Slow:
    """A graph whose run waits in its node when it is told to."""

    def __init__(self, saver, *, says=()):
        self.at_work, self.go = asyncio.Event(), asyncio.Event()

        async def answer(state):
            text = state["messages"][-1].text
            if text == "slow":
                self.at_work.set()
                await self.go.wait()
                return {"messages": [*says, AIMessage("heard slow")]}
            return {"messages": [AIMessage(f"heard {text}")], "notes": [f"of {text}"]}

        builder = StateGraph(Noted).add_node("answer", answer).add_edge(START, "answer")
        self.graph = builder.compile(checkpointer=saver)

    async def begin(self):
        run = asyncio.create_task(say(self.graph, "slow", durability="sync"))
        await self.at_work.wait()
        return run


async def test_a_run_whose_origin_was_pruned_by_others_meanwhile_loses_nothing(pool):
    slow = Slow(PooledSaver(pool))
    await say(slow.graph, "first", "second")
    run = await slow.begin()
    other = Slow(PooledSaver(pool)).graph
    ids = [message.id for message in (await other.aget_state(CONFIG)).values["messages"]][:4]
    await other.aupdate_state(CONFIG, {"messages": [RemoveMessage(ident) for ident in ids]})
    await say(other, "other")
    await PooledSaver(pool).keep_newest("t1", kept=1)
    slow.go.set()
    await run
    values = (await Slow(PooledSaver(pool)).graph.aget_state(CONFIG)).values
    wanted = ["first", "heard first", "second", "heard second", "slow", "heard slow"]
    assert [message.text for message in values["messages"]] == wanted
    assert values["notes"] == ["of second"]


async def test_a_message_that_comes_back_after_its_row_was_pruned_is_stored_again(pool):
    back = HumanMessage("one", id="h1")
    slow = Slow(PooledSaver(pool), says=[back])
    await slow.graph.ainvoke({"messages": [back]}, CONFIG)
    before = await slow.graph.aget_state(CONFIG)
    await slow.graph.aupdate_state(CONFIG, {"messages": [RemoveMessage("h1")]})
    run = await slow.begin()
    await slow.graph.aget_state(before.config)
    await PooledSaver(pool).keep_newest("t1", kept=1)
    slow.go.set()
    await run
    again = Slow(PooledSaver(pool)).graph
    assert await said(again) == ["heard one", "slow", "one", "heard slow"]


async def test_who_reads_while_others_prune_gets_what_is_left_and_no_error(pool):
    saver = PooledSaver(pool)
    graph = echo(saver)
    await say(graph, "one", "two")
    newest = await graph.aget_state(CONFIG)
    pruning = [1]
    read = saver._load_checkpoint_tuple

    async def prune_first(value):
        """Let others prune between the reading of a checkpoint and of its messages."""
        if pruning and pruning.pop():
            other = echo(PooledSaver(pool))
            ids = [m.id for m in (await other.aget_state(CONFIG)).values["messages"]]
            await other.aupdate_state(CONFIG, {"messages": [RemoveMessage(i) for i in ids[:3]]})
            await PooledSaver(pool).keep_newest("t1", kept=1)
        return await read(value)

    saver._load_checkpoint_tuple = prune_first
    assert await said(graph) == ["heard two"]
    await say(graph, "three")
    pruning.append(1)
    left = await history(graph)
    assert [len(one.values["messages"]) for one in left] in ([], [3], [3, 2])
    assert await saver.aget_tuple(newest.config) is None


async def test_a_prune_that_fails_changes_nothing_and_costs_no_answer(
    pool, dsn, monkeypatch, caplog
):
    failing = checkpoint_pruning.PRUNE.replace("SELECT count(*)", "SELECT count(*) / 0")
    monkeypatch.setattr(checkpoint_pruning, "PRUNE", failing)
    monkeypatch.setattr(checkpoint_pruning, "LEAST_STEPS", 5)
    graph = echo(PooledSaver(pool, kept=1))
    await say(graph, *(f"m{number}" for number in range(8)))
    assert len(await said(graph)) == 16
    assert len(await rows(dsn)) == 24
    assert "Old checkpoints of thread t1 could not be let go of" in caplog.text
    monkeypatch.undo()
    monkeypatch.setattr(checkpoint_pruning, "LEAST_STEPS", 5)
    await say(graph, "on", "and", "on", "again")
    assert len(await rows(dsn)) <= 6


async def test_while_somebody_writes_to_the_thread_nothing_is_pruned(pool, dsn):
    saver = PooledSaver(pool)
    await say(echo(saver), "one", "two")
    async with await psycopg.AsyncConnection.connect(dsn) as writing:
        await writing.execute(checkpoint_pruning.HOLD, (checkpoint_pruning.LOCK, "t1"))
        assert await saver.keep_newest("t1", kept=1) is None
        assert await saver.keep_newest("t2", kept=1) == 0
    assert await saver.keep_newest("t1", kept=1) == 5


async def test_channels_that_are_rebuilt_from_every_step_are_left_alone(pool, dsn):
    saver = PooledSaver(pool)
    await say(echo(saver), "one", "two")
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        key = "{counters_since_delta_snapshot}"
        await connection.execute(
            "UPDATE checkpoints SET metadata = jsonb_set(metadata, %s, '{}')", (key,)
        )
    before = await counts(dsn)
    assert (await saver.keep_newest("t1", kept=1), await counts(dsn)) == (0, before)
