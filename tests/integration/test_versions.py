"""Threads on which programs and servers take turns: all that is said stays."""

import re
from itertools import permutations
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from everlong.stores.checkpoint_versions import next_version
from everlong.stores.checkpoints import PooledSaver
from everlong.stores.postgres import open_pool

ASK = "ask me"
STORED = """
SELECT version FROM checkpoint_blobs UNION ALL
SELECT v.value FROM checkpoints, jsonb_each_text(checkpoint->'channel_versions') v UNION ALL
SELECT v.value FROM checkpoints, jsonb_each(checkpoint->'versions_seen') seen,
    jsonb_each_text(seen.value) v"""


class ServersSaver(PooledSaver):
    """As a server uses ours: it goes on in LangGraph's own versions, whatever ours would be."""

    get_next_version = AsyncPostgresSaver.get_next_version


KINDS = {"program": PooledSaver, "server": ServersSaver}


def echo(saver: Any) -> Any:
    def answer(state: MessagesState) -> Any:
        text = state["messages"][-1].text
        heard = interrupt("What?") if text == ASK else text
        return {"messages": [AIMessage(f"heard {heard}")]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


@pytest.fixture
async def graphs(dsn):
    """The same graph as each of them has it."""
    async with open_pool(dsn, size=4) as pool:
        yield {name: echo(kind(pool)) for name, kind in KINDS.items()}


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


async def say(graph: Any, text: str, config: Any) -> list[str]:
    """Say it, and return all that the thread holds then."""
    await graph.ainvoke({"messages": [("user", text)]}, config)
    return await said(graph, thread(config["configurable"]["thread_id"]))


async def said(graph: Any, config: Any) -> list[str]:
    return [m.text for m in (await graph.aget_state(config)).values.get("messages", [])]


def heard(*texts: str) -> list[str]:
    return [one for text in texts for one in (text, f"heard {text}")]


@pytest.mark.parametrize("begun", KINDS)
async def test_who_goes_on_loses_nothing_that_was_said(graphs, begun):
    for turns in sorted(set(permutations([*KINDS, *KINDS], 4))):
        config, texts = thread(" ".join(turns)), list[str]()
        for number, name in enumerate((begun, *turns)):
            texts.append(f"{name} {number}")
            assert await say(graphs[name], texts[-1], config) == heard(*texts)


@pytest.mark.parametrize("begun", KINDS)
async def test_a_fork_goes_on_from_where_it_begins_and_the_other_branch_stays(graphs, begun):
    for name, other in permutations(KINDS):
        config = thread(name)
        for text in ("one", "two"):
            await say(graphs[begun], text, config)
        history = [one async for one in graphs[begun].aget_state_history(config)]
        early = next(one.config for one in history if len(one.values["messages"]) == 2)
        assert await say(graphs[name], "fork", early) == heard("one", "fork")
        assert await say(graphs[other], "on", config) == heard("one", "fork", "on")
        assert await say(graphs[other], "fork again", early) == heard("one", "fork again")
        assert await said(graphs[name], history[0].config) == heard("one", "two")


@pytest.mark.parametrize("begun", KINDS)
async def test_what_waits_for_a_person_is_answered_by_another(graphs, begun):
    for name, other in permutations(KINDS):
        config = thread(name)
        await say(graphs[begun], "one", config)
        assert await say(graphs[begun], ASK, config) == [*heard("one"), ASK]
        assert (await graphs[name].aget_state(config)).next == ("answer",)
        await graphs[name].ainvoke(Command(resume="you"), config)
        assert await said(graphs[other], config) == [*heard("one"), ASK, "heard you"]
        assert (await say(graphs[other], "two", config))[-2:] == heard("two")


async def test_an_edit_and_a_copy_keep_what_there_was(graphs):
    config, copy = thread("t1"), thread("t2")
    await say(graphs["program"], "one", config)
    await graphs["server"].aupdate_state(config, {"messages": [AIMessage("by hand")]})
    assert await said(graphs["program"], config) == [*heard("one"), "by hand"]
    saver = graphs["server"].checkpointer
    found = [one async for one in saver.alist(config)]
    for one in reversed(found):  # as a server copies a thread: each with all of its versions
        origin = one.parent_config["configurable"] if one.parent_config else {}
        place: Any = {"configurable": origin | {"thread_id": "t2", "checkpoint_ns": ""}}
        versions = one.checkpoint["channel_versions"]
        await saver.aput(place, one.checkpoint, one.metadata, versions)
    assert await said(graphs["program"], copy) == [*heard("one"), "by hand"]


async def test_versions_are_stored_short_as_the_release_before_has_stored_them(graphs, dsn):
    await say(graphs["program"], "one", thread("t1"))
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        rows = await connection.execute(STORED)
        found = [row[0] for row in await rows.fetchall()]
    assert len(found) > 8
    assert [one for one in found if not re.fullmatch(r"[0-9]{8}\.[\w-]{8}", one)] == []


def test_versions_sort_as_they_come_and_forks_are_apart():
    versions: list[Any] = []
    for _ in range(12):
        versions.append(next_version(versions[-1] if versions else None))
    assert versions == sorted(versions)
    assert versions[-1] < f"{13:032}.0.5" < next_version(f"{13:032}.0.5")
    assert next_version(versions[0]) != next_version(versions[0])
