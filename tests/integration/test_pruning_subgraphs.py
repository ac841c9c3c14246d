"""A prune leaves what graphs inside a graph, and a step that is half done, go on from."""

import operator
from typing import Annotated

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from everlong.stores.checkpoints import PooledSaver
from everlong.stores.postgres import open_pool

CONFIG = {"configurable": {"thread_id": "t1"}}


class Noted(TypedDict):
    notes: Annotated[list[str], operator.add]


@pytest.fixture
async def saver(dsn):
    async with open_pool(dsn, size=4) as pool:
        yield PooledSaver(pool)


class Nested:
    """A graph in a graph in a graph, whose innermost works, asks a person, and works on."""

    def __init__(self, saver, *, lasting):
        self.worked = 0

        def work(state):
            self.worked += 1
            return {"notes": [f"work {self.worked}"]}

        def ask(state):
            return {"notes": [f"they said {interrupt('Sure?')}"]}

        inner = StateGraph(Noted).add_node("work", work).add_node("ask", ask)
        inner = inner.add_edge(START, "work").add_edge("work", "ask")
        middle = StateGraph(Noted).add_node("inner", inner.compile(checkpointer=lasting))
        middle = middle.add_edge(START, "inner")
        outer = StateGraph(Noted).add_node("middle", middle.compile(checkpointer=lasting))
        self.graph = outer.add_edge(START, "middle").compile(checkpointer=saver)

    async def begins(self, config=CONFIG):
        await self.graph.ainvoke({"notes": ["begin"]}, config)

    async def hears(self, answer, config=CONFIG):
        done = await self.graph.ainvoke(Command(resume=answer), config)
        return done["notes"][-1]


@pytest.mark.parametrize("lasting", [None, True])
async def test_a_person_is_heard_two_graphs_down_after_a_prune(saver, lasting):
    nested = Nested(saver, lasting=lasting)
    await nested.begins()
    await nested.hears("yes")
    await nested.begins()
    assert (await saver.keep_newest("t1", kept=1) or 0) > 0
    assert await nested.hears("no") == "they said no"
    assert nested.worked == 2


async def test_a_branch_that_waits_two_graphs_down_stays_while_the_thread_goes_on(saver):
    nested = Nested(saver, lasting=None)
    await nested.begins()
    await nested.hears("yes")
    settled = (await nested.graph.aget_state(CONFIG)).config
    await nested.begins()
    branch = (await nested.graph.aget_state(CONFIG)).config
    await nested.begins(settled)
    await nested.hears("yes")
    for number in range(5):
        await nested.graph.aupdate_state(CONFIG, {"notes": [f"n{number}"]}, "middle")
    assert (await saver.keep_newest("t1", kept=1) or 0) > 0
    assert await nested.hears("late", branch) == "they said late"
    assert nested.worked == 3


async def test_a_step_that_is_half_done_is_finished_after_a_prune_and_nothing_runs_twice(saver):
    ran, fails = [], [True]

    def pay(state):
        ran.append("pay")
        return {"notes": ["paid"]}

    def send(state):
        ran.append("send")
        if fails.pop():
            msg = "no network"
            raise OSError(msg)
        return {"notes": ["sent"]}

    builder = StateGraph(Noted).add_node("pay", pay).add_node("send", send)
    graph = builder.add_edge(START, "pay").add_edge(START, "send").compile(checkpointer=saver)
    with pytest.raises(OSError, match="no network"):
        await graph.ainvoke({"notes": []}, CONFIG)
    assert (await saver.keep_newest("t1", kept=1) or 0) > 0
    fails.append(False)
    done = await graph.ainvoke(None, CONFIG)
    assert done["notes"] == ["paid", "sent"]
    assert ran.count("pay") == 1
