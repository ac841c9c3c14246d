"""A sweep of everything: by a worker, a little at a time, and never what somebody still needs."""

import asyncio
import logging
from contextlib import asynccontextmanager

import psycopg
from langchain_core.messages import AIMessage
from langgraph.types import Command, interrupt

from everlong.graph import sweeping, upkeep
from everlong.graph.runtime import open_agent
from everlong.graph.sweeping import Swept, sweep_checkpoints, sweep_user
from everlong.graph.upkeep import Upkeep
from everlong.graph.worker import hands_on, work_on
from everlong.nodes.context import Context
from everlong.stores import compactions, files, transcripts
from everlong.stores.states import states_of
from fix_sweeping import broom
from scripted_model import ScriptedModel, asks_for_summary, calling

THREAD = {"configurable": {"thread_id": "t1"}}
SMALL = {"trigger_messages": 6, "keep_messages": 2, "flush_before": False}


def script(messages):
    if asks_for_summary(messages):
        return "## SUMMARY\nThey spoke of animals."
    last = messages[-1]
    if last.type == "human" and last.text.startswith("look"):
        return calling(("look", {"where": last.text}), prefix=str(len(messages)))
    return "Confirmed."


def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing in {where}: " + "grass " * 2_000


@asynccontextmanager
async def talking(dsn, calendar, *tools, user="kim", **settings):
    """Open an agent and yield what says something in a thread of its own."""
    given = {"user_id": user, "model": ScriptedModel(script=script), "memory": {"enabled": False}}
    context = Context.model_validate(
        given | {"compaction": SMALL, "eviction": {"over_chars": 1_000}} | settings
    )
    async with open_agent(tools=tools or [look], mcp={}, dsn=dsn, clock=calendar) as agent:

        async def say(*texts, thread="t1"):
            config = {"configurable": {"thread_id": thread}}
            for text in texts:
                said = {"messages": [{"role": "user", "content": text}]}
                await agent.ainvoke(said, config, context=context)

        yield say, agent


async def swept(stores, calendar, user="kim"):
    done = Swept()
    await sweep_user(broom(stores, calendar), user, done)
    return done


async def test_what_is_old_goes_and_what_the_last_compaction_took_out_stays(dsn, stores, calendar):
    window = {"strategy": "window"}  # a summary would go on naming the text
    async with talking(dsn, calendar, compaction=SMALL | window) as (say, _):
        await say("look here", *(f"word {number}" for number in range(12)))
        paths = [one.path for one in await files.list_paths(stores.store, "kim")]
        before = await compactions.read(stores.store, "kim", "t1")
        assert len(before) > 3
        assert len(paths) == 1
        assert (await swept(stores, calendar)) == Swept(users=1)
        calendar.days = 400
        done = await swept(stores, calendar)
        assert done.messages > 0
        assert done.receipts == len(before) - 1
        assert done.files == 1
        (last,) = await compactions.read(stores.store, "kim", "t1")
        originals = await compactions.originals(stores.store, "kim", "t1", last)
        wanted = [one for one in last["message_ids"] if not one.startswith("__")]
        assert {one.message_id for one in originals} == set(wanted)
        await say("and on")


async def test_a_transcript_keeps_its_newest_messages_however_young_the_others(
    dsn, stores, calendar
):
    async with talking(dsn, calendar) as (say, _):
        await say(*(f"word {number}" for number in range(20)))
    done = Swept()
    await sweep_user(broom(stores, calendar, transcript_messages=10), "kim", done)
    left = [one.number for one in await transcripts.read(stores.store, "kim", "t1")]
    assert left == sorted({*range(30, 40), *left})
    assert done.messages == 40 - len(left) > 20


async def test_an_old_text_that_the_history_still_names_stays(dsn, stores, calendar):
    async with talking(dsn, calendar, transcript=False, compaction={}) as (say, _):
        await say("look here")
        (path,) = [one.path for one in await files.list_paths(stores.store, "kim")]
        calendar.days = 400
        assert (await swept(stores, calendar)).files == 0
        assert await files.read_text(stores.store, "kim", path)


async def test_results_that_a_person_is_awaited_beside_stay_until_the_answer(
    dsn, stores, calendar, monkeypatch
):
    monkeypatch.setattr("everlong.stores.record_retention.SETTLED_SECONDS", -60.0)

    def ask(what: str) -> str:
        """Ask a person."""
        return f"they said {interrupt(what)}"

    asking = calling(("look", {"where": "here"}), ("ask", {"what": "Sure?"}))
    model = ScriptedModel(script=[asking, "Done.", "Hello."])
    context = Context(user_id="kim", model=model, memory={"enabled": False})
    async with open_agent(tools=[look, ask], mcp={}, dsn=dsn, clock=calendar) as agent:
        given = {"messages": [{"role": "user", "content": "go"}]}
        await agent.ainvoke(given, THREAD, context=context)
        assert (await swept(stores, calendar)).results == 0
        await agent.ainvoke(Command(resume="yes"), THREAD, context=context)
        assert (await swept(stores, calendar)).results == 1


async def test_a_thread_at_work_is_left_to_its_own_calls(dsn, stores, calendar, monkeypatch):
    monkeypatch.setattr(sweeping, "BUSY_SECONDS", 0.2)
    async with talking(dsn, calendar) as (say, agent):
        await say(*(f"word {number}" for number in range(8)))
        calendar.days = 400
        async with agent.alone(THREAD):
            assert (await swept(stores, calendar)).messages == 0
        assert (await swept(stores, calendar)).messages > 0


async def test_a_transcript_whose_state_is_kept_elsewhere_stays_while_it_is_young(
    dsn, stores, calendar
):
    async with talking(dsn, calendar) as (say, _):
        await say(*(f"word {number}" for number in range(8)))
        calendar.days = 400
        await say("young")
    await stores.saver.adelete_thread("t1")
    assert (await swept(stores, calendar)).messages == 0
    calendar.days = 800
    assert (await swept(stores, calendar)).messages > 0
    left = await transcripts.read(stores.store, "kim", "t1")
    assert len(left) < 18


async def test_a_graph_inside_another_is_found_by_the_id_of_its_records(stores):
    saver = stores.saver
    checkpoint = {
        "v": 4,
        "id": "1f1ecfb7-1362-6b62-8001-c477df5abdb0",
        "ts": "",
        "versions_seen": {},
    }
    values = {
        "channel_values": {"messages": [AIMessage("hi")]},
        "channel_versions": {"messages": "1"},
    }
    config = {"configurable": {"thread_id": "t1", "checkpoint_ns": "sales|east"}}
    await saver.aput(config, checkpoint | values, {"step": 1}, {"messages": "1"})
    (found,) = [one async for one in states_of(saver, "t1|sales|east")]
    assert [one.text for one in found.checkpoint["channel_values"]["messages"]] == ["hi"]
    for other in ("t1", "t1|west"):
        assert [one async for one in states_of(saver, other)] == []


async def test_threads_at_rest_keep_what_resuming_needs_page_by_page(
    dsn, stores, calendar, monkeypatch
):
    monkeypatch.setattr(sweeping, "THREADS_AT_ONCE", 2)
    threads = ["a", "b", "c"]
    async with talking(dsn, calendar, compaction={}) as (say, agent):
        for thread in threads:
            await say("one", "two", thread=thread)
        sweep, done = broom(stores, calendar), Swept()
        calendar.days = 6
        assert await sweep_checkpoints(sweep, done) == "b"
        assert (await sweep_checkpoints(sweep, done, after="b"), done.checkpoints) == ("", 0)
        calendar.days = 8
        after = await sweep_checkpoints(sweep, done)
        assert after == "b"
        assert await sweep_checkpoints(sweep, done, after=after) == ""
        assert done.checkpoints == 3 * 9
        for thread in threads:
            await say("three", thread=thread)
            state = await agent.aget_state({"configurable": {"thread_id": thread}})
            assert len(state.values["messages"]) == 6


async def test_workers_share_one_sweep_a_day_a_few_users_at_a_time(
    dsn, stores, calendar, monkeypatch, caplog
):
    monkeypatch.setattr(upkeep, "USERS_AT_ONCE", 2)
    monkeypatch.setattr(upkeep, "LOOK_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "everlong.worker")
    users = ["kim", "kim-x", "lee", "mo"]
    for user in users:
        async with talking(dsn, calendar, user=user) as (say, _):
            await say("hello", thread=f"of-{user}")
    first, second = (Upkeep(broom(stores, calendar)) for _ in range(2))
    assert [await one.step() for one in (first, second, first, second)] == [True, True, True, False]
    assert "Swept: Swept(users=2" in caplog.text
    assert [await one.step() for one in (first, second)] == [False, False]
    calendar.days = 1.01
    assert await second.step()


async def test_threads_of_which_nothing_can_go_do_not_hold_the_sweep_up(
    dsn, stores, calendar, monkeypatch
):
    monkeypatch.setattr(sweeping, "THREADS_AT_ONCE", 1)
    async with talking(dsn, calendar) as (say, _):
        for thread in ("a", "b"):
            await say("hello", thread=thread)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        key = "{counters_since_delta_snapshot}"
        await connection.execute(
            "UPDATE checkpoints SET metadata = jsonb_set(metadata, %s, '1')", (key,)
        )
    calendar.days = 8
    sweep = Upkeep(broom(stores, calendar))
    steps = 0
    while await sweep.step():
        steps += 1
        assert steps < 10


async def test_a_user_whose_sweep_fails_keeps_nobody_from_theirs(
    dsn, stores, calendar, monkeypatch, caplog
):
    for user in ("kim", "lee"):
        async with talking(dsn, calendar, user=user) as (say, _):
            await say("hello", thread=f"of-{user}")
    asked = []

    async def failing(_, user_id, done):
        asked.append(user_id)
        if user_id == "kim":
            msg = "disk full"
            raise OSError(msg)

    monkeypatch.setattr(upkeep, "sweep_user", failing)
    sweep = Upkeep(broom(stores, calendar))
    while await sweep.step():
        pass
    assert asked == ["kim", "lee"]
    assert "disk full" in caplog.text


async def test_a_worker_sweeps_when_no_record_is_free(dsn, stores, calendar):
    async with talking(dsn, calendar) as (say, _):
        await say(*(f"word {number}" for number in range(8)))
    calendar.days = 400
    before = len(await transcripts.read(stores.store, "kim", "t1"))
    sweep = Upkeep(broom(stores, calendar))
    hands = hands_on(stores.store, calendar)
    working = asyncio.create_task(work_on(hands, tell=lambda _: None, upkeep=sweep))
    try:
        async with asyncio.timeout(30):
            while len(await transcripts.read(stores.store, "kim", "t1")) == before:  # noqa: ASYNC110 - of the database
                await asyncio.sleep(0.1)
    finally:
        working.cancel()
        await asyncio.wait([working])
