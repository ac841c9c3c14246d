"""Workers (R50): in the agent's process, as a command, as the graph `memory`; killed ones, too."""

import asyncio
import re
import signal
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dying_worker import FACT, LEASE_SECONDS
from langchain_core.runnables import RunnableConfig
from langgraph_sdk import get_client

from background import facts_of
from everlong.graph.runtime import open_agent
from everlong.graph.worker import hands_on
from everlong.nodes.context import Context
from everlong.nodes.working import work_through
from everlong.stores import memory, work_queue
from everlong.stores.postgres import open_stores
from scripted_model import ScriptedModel, kind_of

HERE = Path(__file__).parent
THREAD: RunnableConfig = {"configurable": {"thread_id": "t1"}}
LATER = datetime(2026, 3, 9, 13, tzinfo=UTC)
SAID = "Our exports go through Shanghai port only."


def user(text=SAID):
    return {"messages": [{"role": "user", "content": text}]}


def context(script, **more):
    given = {"user_id": "kim", "model": ScriptedModel(script=script)}
    return Context.model_validate(
        given | {"memory": {"flush_mode": "background", "consolidate": "on_request"}} | more
    )


def flushing(*, answer="- Exports: Shanghai only.", seconds=0.0):
    waits = [seconds] if seconds else []

    def script(messages):
        if kind_of(messages) != "flush":
            return "Confirmed."
        return waits.pop() if waits else answer

    return script


async def test_the_agent_answers_first_and_its_own_worker_does_the_rest(dsn):
    async with open_agent(dsn=dsn) as agent:
        began = time.monotonic()
        given = context(flushing(seconds=1.0))
        await agent.ainvoke(user(), THREAD, context=given)
        assert time.monotonic() - began < 1.0
        assert await facts_of(agent.store) == []
        await agent.await_quiescence(20)
        assert await facts_of(agent.store) == ["Exports: Shanghai only."]
        await agent.await_quiescence(0.5, user_id="kim")


async def test_waiting_in_vain_says_what_is_left_and_why(dsn, monkeypatch):
    async with open_agent(dsn=dsn) as agent:
        failing = context(
            lambda m: "ok" if kind_of(m) == "answer" else ValueError("503 overloaded")
        )
        await agent.ainvoke(user(), THREAD, context=failing)
        message = r"1 record is left after 1.5 s: kim / t1 \(ValueError: 503 overloaded\)"
        with pytest.raises(TimeoutError, match=message):
            await agent.await_quiescence(1.5)
        await agent.await_quiescence(1, user_id="eve")
        monkeypatch.setattr("everlong.graph.worker.CLOSE_SECONDS", 0.1)


async def test_closing_waits_for_what_the_agent_has_left(dsn):
    async with open_agent(dsn=dsn) as agent:
        await agent.ainvoke(user(), THREAD, context=context(flushing(seconds=0.5)))
    async with open_stores(dsn, pool_size=2) as stores:
        assert await facts_of(stores.store) == ["Exports: Shanghai only."]
        assert await work_queue.open_records(stores.store) == []


async def test_closing_waits_no_longer_than_it_says_and_gives_the_record_back(dsn, monkeypatch):
    monkeypatch.setattr("everlong.graph.worker.CLOSE_SECONDS", 0.3)
    began = time.monotonic()
    async with open_agent(dsn=dsn) as agent:
        await agent.ainvoke(user(), THREAD, context=context(flushing(seconds=30.0)))
        await asyncio.sleep(0.2)
    assert time.monotonic() - began < 5
    async with open_stores(dsn, pool_size=2) as stores:
        (left,) = await work_queue.open_records(stores.store)
        assert (left.by, left.tries, left.status) == ("", 0, "due")


async def test_the_inline_mode_starts_no_worker(dsn):
    async with open_agent(dsn=dsn) as agent:
        inline = {"memory": {"consolidate": "on_request"}}
        await agent.ainvoke(user(), THREAD, context=context(flushing(), **inline))
        assert agent._worker._task is None
        assert await facts_of(agent.store) == ["Exports: Shanghai only."]


async def test_two_agents_and_a_third_worker_do_no_record_twice(dsn):
    asked = Counter()

    def script(messages):
        if kind_of(messages) != "flush":
            return "Confirmed."
        (said,) = re.findall(r"fact \d", messages[-1].text.split("<conversation>")[1])
        asked[said] += 1
        return f"- {said}"

    async with open_agent(dsn=dsn) as one, open_agent(dsn=dsn) as other:
        for number in range(10):
            agent = (one, other)[number % 2]
            config = {"configurable": {"thread_id": f"t{number}"}}
            who = {"user_id": f"user{number % 3}"}
            await agent.ainvoke(user(f"fact {number}"), config, context=context(script, **who))
        await asyncio.gather(one.await_quiescence(30), other.await_quiescence(30))
        stored = [fact for n in range(3) for fact in await facts_of(one.store, f"user{n}")]
    assert sorted(stored) == [f"fact {n}" for n in range(10)]
    assert set(asked.values()) == {1}


@pytest.mark.parametrize("when", ["written", "reading", "flushed"])
async def test_what_a_killed_process_left_another_one_finishes(dsn, when, monkeypatch):
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "dying_worker.py"),
        dsn,
        when,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        _, errors = await process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()
    monkeypatch.setattr(work_queue, "OWN_SECONDS", 0.0)
    asked = Counter()

    def script(messages):
        asked[kind_of(messages)] += 1
        return FACT if kind_of(messages) == "flush" else f"# Rooms\n{FACT}"

    async with open_stores(dsn, pool_size=2) as stores:
        (left,) = await work_queue.open_records(stores.store)
        assert bool(left.ids) == (when != "flushed")
        await asyncio.sleep(LEASE_SECONDS)
        model = ScriptedModel(script=script)
        hands = hands_on(stores.store, lambda: LATER, model=model)
        finished = []
        await asyncio.gather(*(work_through(hands, tell=finished.append) for _ in range(3)))
        assert [one.outcome for one in finished] == ["done"]
        assert await facts_of(stores.store) == [FACT[2:]]
        assert "room 12" in (await memory.read(stores.store, "kim")).text
        assert (asked["flush"], asked["consolidation"]) == (int(when != "flushed"), 1)
        assert await work_queue.open_records(stores.store) == []


async def test_a_server_does_a_users_work_by_its_graph_memory(begin, langgraph_server, server_dsn):
    background = {"flush_mode": "background"}
    mine = await begin("everlong", memory=background)
    others = await begin("everlong", memory=background)
    for thread in (mine, others):
        await thread.say(f"Don't call any tool, just confirm: {SAID}")
        events = [event["type"] for event in thread.streamed("custom")]
        assert events == ["memory.queued"]
    async with get_client(url=langgraph_server.url, api_key=None) as client:

        async def run(given, **context):
            return await client.runs.wait(None, "memory", input=given, context=context)

        user_id = mine.context["user_id"]
        came = await run({}, user_id=user_id)
        assert (came["done"], came["facts"], came["waiting"], came["failed"]) == (1, 1, 0, 0)
        assert came["consolidated"] is True
        again = await run({"consolidate": "now"}, user_id=user_id)
        assert (again["done"], again["consolidated"], again["problem"]) == (0, False, "")
        off = await run({}, user_id=others.context["user_id"], memory={"enabled": False})
        assert off["done"] == 0
        with pytest.raises(Exception, match="MissingUserError"):
            await run({})
    async with open_stores(server_dsn, pool_size=2) as stores:
        assert "Shanghai" in (await memory.read(stores.store, user_id)).text
        assert await facts_of(stores.store, others.context["user_id"]) == []
        (left,) = await work_queue.open_records(stores.store, others.context["user_id"])
        assert left.status == "due"
