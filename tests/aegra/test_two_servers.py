"""everlong on two aegra servers: what one begins, the other shows, streams and goes on with."""

from dataclasses import replace
from uuid import uuid4

import pytest

from background import facts_of
from everlong.stores.postgres import open_stores
from http_thread import HttpThread, said

ASK = 'call ask_person {"question": "Go?"}'
CODE = "My code is A-1."
CODE_AGAIN = "What is my code?"
CODE_ANSWER = "You said: my code is A-1."
SLOW = 'call slow_tool {"seconds": 20}'
QUICK = 'call slow_tool {"seconds": 1}'
NO_MEMORY = {"memory": {"enabled": False}}


@pytest.fixture
def user_id() -> str:
    return f"kim-{uuid4().hex[:6]}"


@pytest.fixture
async def threads(connect, user_id) -> tuple[HttpThread, HttpThread]:
    """Return one thread, as each of the servers has it."""
    first = await HttpThread.new(connect(user_id), NO_MEMORY, "slow")
    return first, replace(first, client=connect(user_id, server=1))


async def test_a_conversation_goes_on_at_the_other_server(threads):
    here, there = threads
    await here.say(CODE)
    assert await there.say(CODE_AGAIN) == CODE_ANSWER
    assert (
        await here.texts() == await there.texts() == [CODE, "Confirmed.", CODE_AGAIN, CODE_ANSWER]
    )


async def test_each_server_shows_the_threads_the_runs_and_the_history_of_the_other(threads):
    here, there = threads
    run = await here.client.runs.create(here.thread_id, "slow", input=said(CODE), context=NO_MEMORY)
    output = await there.client.runs.join(here.thread_id, run["run_id"])
    assert output["messages"][-1]["content"] == "Confirmed."
    assert [one["thread_id"] for one in await there.client.threads.search()] == [here.thread_id]
    assert [one["status"] for one in await there.client.runs.list(here.thread_id)] == ["success"]
    history = await there.client.threads.get_history(here.thread_id)
    assert [past["next"] for past in history][:2] == [[], ["flush_memory"]]


async def test_a_stream_brings_words_steps_and_events(threads):
    thread = threads[1]
    thread.context = {}
    assert await thread.say(CODE) == "Confirmed."
    steps = [name for step in thread.streamed("updates") for name in step]
    assert steps == ["open_call", "reason", "flush_memory", "consolidate"]
    told = [event["type"] for event in thread.streamed("custom")]
    assert told == ["memory.flushed", "memory.consolidated"]


async def test_an_approval_that_waits_is_answered_at_the_other_server(threads):
    here, there = threads
    await here.say(ASK)
    assert (await there.state())["next"] == ["tools"]
    await there.run(command={"resume": "yes"})
    assert (await here.texts())[-1] == "ask_person returned: the person said yes"


async def test_a_stream_is_joined_at_the_other_server_and_gone_on_with_after_a_break(threads):
    here, there = threads
    client, thread_id = here.client, here.thread_id
    modes = ["updates", "messages-tuple"]
    run = await client.runs.create(
        thread_id, "slow", input=said(QUICK), context=NO_MEMORY, stream_mode=modes
    )
    before_break = []
    async for part in there.client.runs.join_stream(thread_id, run["run_id"]):
        before_break.append(part)
        if "reason" in (part.data or ()):
            break
    last = before_break[-1].id
    rest = [
        part async for part in client.runs.join_stream(thread_id, run["run_id"], last_event_id=last)
    ]
    assert rest[-1].event == "end"
    parts = before_break + rest
    steps = [name for part in parts if part.event == "updates" for name in part.data]
    assert steps == ["open_call", "reason", "_run_call", "tools", "reason", "flush_memory"]
    ids = [part.id for part in parts if part.id]
    assert len(ids) == len(set(ids))


async def test_a_run_is_cancelled_from_the_other_server_and_its_thread_goes_on(threads):
    here, there = threads
    await here.say(CODE)
    run_id = await here.begin(SLOW)
    await there.client.runs.cancel(here.thread_id, run_id, wait=True, action="interrupt")
    assert (await here.client.runs.get(here.thread_id, run_id))["status"] == "interrupted"
    assert await there.say(CODE_AGAIN) == CODE_ANSWER


async def test_a_person_compacts_a_thread_at_the_other_server(threads):
    here, there = threads
    there.context = NO_MEMORY | {"compaction": {"keep_messages": 2}}
    for text in (CODE, "My port is Shanghai.", "My size is 44.", "My bay is B7."):
        await here.say(text)
    await there.run({"request": {"compact": True}})
    told = [event["type"] for event in there.streamed("custom")]
    assert told == ["compaction.started", "compaction.finished"]
    assert len(await here.texts()) < 8
    assert "A-1" in await here.say(CODE_AGAIN)


async def test_memory_work_that_one_server_left_is_done_by_the_other(threads, user_id, pair):
    here, there = threads
    here.context = {"memory": {"flush_mode": "background"}}
    await here.say(CODE)
    assert [event["type"] for event in here.streamed("custom")] == ["memory.queued"]
    came = await there.client.runs.wait(None, "memory", input={})
    assert (came["done"], came["facts"], came["consolidated"]) == (1, 1, True)
    async with open_stores(pair.dsn, pool_size=2) as stores:
        assert await facts_of(stores.store, user_id) == ["My code is A-1"]
