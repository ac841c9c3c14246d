"""One thread on LangGraph's own Postgres checkpointer, as a server that does not queue has it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.types import Command, interrupt
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from everlong.graph.agent import build
from everlong.nodes.errors import ThreadBusyError
from everlong.stores.locks import ThreadLostError
from everlong.stores.postgres import open_stores
from everlong.stores.settings import settings

CONTEXT: dict[str, Any] = {"user_id": "kim", "memory": {"enabled": False}}
OPEN = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
    AND backend_type = 'client backend'"""
HELD = """
SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE locktype = 'advisory' AND granted AND datname = current_database()"""

LOSE = "SELECT pg_terminate_backend(%s)"
TAKE = """
SELECT pg_advisory_lock((classid::bigint << 32) | objid::bigint)
FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE locktype = 'advisory' AND granted AND datname = current_database()"""


async def wait_a_little(seconds: float) -> str:
    """Wait for so many seconds."""
    await asyncio.sleep(seconds)
    return f"waited {seconds} s"


def ask_person(question: str) -> str:
    """Ask the person, and wait for the answer."""
    return f"the person said {interrupt(question)}"


@asynccontextmanager
async def a_server(dsn: str, *, connections: int = 4) -> AsyncGenerator[Any]:
    """Open the graph as aegra does: on a pool with LangGraph's own checkpointer and store."""
    kwargs: Any = {"autocommit": True, "prepare_threshold": None, "row_factory": dict_row}
    async with AsyncConnectionPool(
        dsn, min_size=connections, max_size=connections, kwargs=kwargs, open=False
    ) as pool:
        await pool.wait()
        graph = build(tools=[wait_a_little, ask_person]).compile(name="everlong")
        saver, store = AsyncPostgresSaver(pool), AsyncPostgresStore(pool)
        yield graph.copy(update={"checkpointer": saver, "store": store})


@pytest.fixture
async def servers(dsn: str) -> AsyncIterator[tuple[Any, Any]]:
    async with a_server(dsn) as first, a_server(dsn) as second:
        yield first, second


def thread(run_id: str = "", **more: Any) -> Any:
    """Return the config of a run, which a server names."""
    named = {"run_id": run_id} if run_id else {}
    return {"configurable": {"thread_id": "t1"} | named | more}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text} | more]}


async def say(graph: Any, text: str, run_id: str = "", **more: Any) -> Any:
    return await graph.ainvoke(said(text, **more), thread(run_id), context=CONTEXT)


async def texts(graph: Any) -> list[str]:
    messages = (await graph.aget_state(thread())).values.get("messages", [])
    return [one.text or one.tool_calls[0]["name"] for one in messages]


async def begin(graph: Any, seconds: float, run_id: str = "", **more: Any) -> asyncio.Task[Any]:
    """Begin a run and return when it is at work in its tool."""
    running = asyncio.create_task(say(graph, waits(seconds), run_id, **more))
    async with asyncio.timeout(30):
        while (await graph.aget_state(thread())).next != ("tools",):  # noqa: ASYNC110 - of a run
            await asyncio.sleep(0.02)
    return running


def waits(seconds: float) -> str:
    return f'call wait_a_little {{"seconds": {seconds}}}'


@pytest.fixture
async def watch(dsn: str) -> AsyncIterator[Any]:
    """Watch the database: `watch(OPEN)` returns the processes that it names."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:

        async def pids(query: Any) -> set[int]:
            cursor = await connection.execute(query)
            return {row[0] for row in await cursor.fetchall()}

        yield pids


async def test_runs_that_come_together_on_two_servers_each_keep_their_turn(servers):
    await asyncio.gather(*(say(servers[i % 2], f"{waits(0.05)} as my wish {i}.") for i in range(6)))
    found = await texts(servers[0])
    asked = [one for one in found if "my wish" in one]
    assert sorted(asked) == [f"{waits(0.05)} as my wish {i}." for i in range(6)]
    answer = ["wait_a_little", "waited 0.05 s", "wait_a_little returned: waited 0.05 s"]
    assert found == [text for one in asked for text in (one, *answer)]


async def test_waiting_runs_hold_no_connection_that_the_first_one_needs(dsn):
    async with a_server(dsn, connections=1) as graph, asyncio.timeout(60):
        await asyncio.gather(*(say(graph, f"My code is A-{i}.") for i in range(5)))
        assert len(await texts(graph)) == 10


async def test_a_checkpointer_on_one_connection_keeps_every_turn_too(dsn):
    async with AsyncPostgresSaver.from_conn_string(dsn) as saver:
        graph = build().compile(checkpointer=saver)
        await asyncio.gather(*(say(graph, f"My code is A-{i}.") for i in range(3)))
        assert len(await texts(graph)) == 6


async def test_our_own_checkpointer_leaves_the_line_to_who_runs_the_graph(dsn, watch):
    async with open_stores(dsn, pool_size=2) as stores:
        graph = build(tools=[wait_a_little]).compile(checkpointer=stores.saver, store=stores.store)
        running = await begin(graph, 0.3)
        assert await watch(HELD) == set()
        await running


async def test_nothing_is_held_and_nothing_is_open_when_no_run_is_at_work(servers, watch):
    before = await watch(OPEN)
    running = await begin(servers[0], 30)
    (holder,) = await watch(HELD)
    assert await watch(OPEN) - before == {holder}
    running.cancel()
    await asyncio.wait([running])
    await say(servers[1], "My code is A-1.")
    assert await watch(HELD) == set()
    async with asyncio.timeout(30):
        while await watch(OPEN) - before:  # noqa: ASYNC110 - of a process that is to end
            await asyncio.sleep(0.02)


async def test_a_cancelled_run_frees_its_thread_and_one_that_waits_leaves_the_line(servers):
    running = await begin(servers[0], 30)
    waiting = asyncio.create_task(say(servers[1], "My code is A-1."))
    third = asyncio.create_task(say(servers[1], "What is my code?"))
    await asyncio.sleep(0.3)
    for one in (waiting, running):
        one.cancel()
    async with asyncio.timeout(10):
        await third
    assert [one.cancelled() for one in (running, waiting)] == [True, True]
    assert "My code is A-1." not in await texts(servers[0])


async def test_a_run_that_waits_too_long_says_so_and_changes_nothing(servers, monkeypatch):
    monkeypatch.setenv("EVERLONG_THREAD_WAIT_SECONDS", "0.3")
    settings.cache_clear()
    try:
        running = await begin(servers[0], 1.5)
        with pytest.raises(ThreadBusyError, match=r"'t1' to be free within 0.3 s"):
            await say(servers[1], "My code is A-1.")
    finally:
        monkeypatch.undo()
        settings.cache_clear()
    await running
    assert len(await texts(servers[0])) == 4


async def test_a_run_whose_connection_is_lost_keeps_its_turn_and_the_next_one_waits(
    servers, watch, dsn
):
    before = await watch(OPEN)
    running = await begin(servers[0], 2.5)
    waiting = asyncio.create_task(say(servers[1], "My code is A-1."))
    async with asyncio.timeout(10):
        while len(lost := await watch(OPEN) - before) < 2:  # noqa: ASYNC110 - of a run
            await asyncio.sleep(0.02)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        for pid in lost:
            await connection.execute(LOSE, (pid,))
    await asyncio.gather(running, waiting)
    found = await texts(servers[0])
    assert (len(found), found[-2:]) == (6, ["My code is A-1.", "Confirmed."])


async def test_a_run_whose_thread_another_got_meanwhile_ends_and_says_so(servers, watch, dsn):
    running = await begin(servers[0], 30)
    (holder,) = await watch(HELD)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as other:
        taking = asyncio.create_task(other.execute(TAKE))
        await asyncio.sleep(0.2)
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            await connection.execute(LOSE, (holder,))
        with pytest.raises(ThreadLostError, match="'t1': expected to hold it until the run ends"):
            async with asyncio.timeout(10):
                await running
        await taking
    assert len(await texts(servers[1])) == 2


async def test_an_edit_of_the_state_waits_for_the_run_and_neither_is_lost(servers):
    running = await begin(servers[0], 0.5)
    await servers[1].aupdate_state(thread(), said("Added by hand."), as_node="reason")
    await running
    answer = "wait_a_little returned: waited 0.5 s"
    assert (await texts(servers[0]))[-2:] == [answer, "Added by hand."]


async def test_a_stranger_is_refused_and_frees_the_thread(servers):
    await say(servers[0], "My code is A-1.")
    with pytest.raises(ValueError, match="is not a thread of 'eve'"):
        await servers[1].ainvoke(said("Let me in."), thread(), context=CONTEXT | {"user_id": "eve"})
    await say(servers[0], "What is my code?")
    assert len(await texts(servers[1])) == 4


async def test_a_run_that_is_begun_again_goes_on_where_it_was(servers):
    await dead(servers[0], "r1")
    await say(servers[1], waits(1), "r1")
    assert (await texts(servers[0]))[0] == waits(1)
    assert len(await texts(servers[0])) == 4


@pytest.mark.parametrize("more", [{}, {"id": "q1"}])
async def test_a_run_that_is_begun_again_behind_a_later_one_brings_its_input_once(servers, more):
    await dead(servers[0], "r1", **more)
    await say(servers[1], "My code is A-1.", "r2")
    before = await texts(servers[1])
    came = await say(servers[1], waits(1), "r1", **more)
    assert [one.text for one in came["messages"]][-2:] == ["My code is A-1.", "Confirmed."]
    assert await texts(servers[1]) == before


async def test_a_finished_run_that_is_begun_again_answers_nothing_twice(servers):
    for run_id in ("r1", "r2"):
        await say(servers[0], f"My code is {run_id}.", run_id)
    before = await texts(servers[0])
    for run_id in ("r2", "r1"):
        await say(servers[1], f"My code is {run_id}.", run_id)
    assert await texts(servers[0]) == before


async def test_an_answer_that_is_given_again_answers_no_other_question(servers):
    ask = 'call ask_person {"question": "Go?"}'
    await say(servers[0], ask, "r1")
    again = await say(servers[1], ask, "r1")
    assert again["__interrupt__"][0].value == "Go?"
    resumed = Command(resume="yes")
    await servers[0].ainvoke(resumed, thread("r2"), context=CONTEXT)
    await say(servers[0], ask, "r3")
    again = await servers[1].ainvoke(resumed, thread("r2"), context=CONTEXT)
    assert again["__interrupt__"][0].value == "Go?"
    assert (await servers[0].aget_state(thread())).next == ("tools",)


async def test_a_fork_that_is_begun_again_takes_its_input(servers):
    await say(servers[0], "My code is A-1.", "r1")
    first = [one async for one in servers[0].aget_state_history(thread())][-1].config
    fork = thread("r2", checkpoint_id=first["configurable"]["checkpoint_id"])
    for server in servers:
        await server.ainvoke(said("My code is B-2."), fork, context=CONTEXT)
        assert (await texts(server))[-2:] == ["My code is B-2.", "Confirmed."]


async def dead(graph: Any, run_id: str, **more: Any) -> None:
    """Leave what a process leaves that dies at work in a tool."""
    running = await begin(graph, 1, run_id, **more)
    running.cancel()
    await asyncio.wait([running])
