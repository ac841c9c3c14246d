"""Runs of everlong in the real `langgraph dev`: double texting, cancels, strangers, bad input."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from langgraph_sdk.errors import APIStatusError, ConflictError, NotFoundError
from psycopg import sql

from everlong.stores.postgres import open_stores
from everlong.stores.text import REPLACEMENT
from http_thread import RunFailedError, said

SLOW = 'call slow_tool {"seconds": 20}'
QUICK = 'call slow_tool {"seconds": 1}'
ASK = 'call ask_person {"question": "Go?"}'
CODE = "My code is A-1."
CODE_AGAIN = "What is my code?"
CODE_ANSWER = "You said: my code is A-1."
WRONG_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"compaction": {"trigger_messages": 1}}, "trigger_messages.*at least 2"),
    ({"compaction": {"keep": 1}}, "unknown setting.*keep_messages"),
    ({"time_zone": "Mars/Olympus"}, "IANA time zone"),
    ({"model": "gpt-77"}, "`model`.*offline"),
    ({"summary_model": "gpt-77"}, "`summary_model`.*offline"),
    ({"memory_model": "mistral:"}, "`memory_model`.*offline"),
    ({"compaction": {"summary_prompt": "Sum it up."}}, "summary_prompt.*`{messages}`"),
    ({"user_id": 5}, "user_id"),
]
NO_INPUT: list[tuple[dict[str, Any], str]] = [
    ({"messages": [{"role": "boss", "content": "x"}]}, "boss"),
    ({"messages": [{"role": "user", "content": {"a": 1}}]}, "content"),
    ({"messages": [7]}, "int"),
    ({"request": "compact"}, "expected an object"),
]


async def test_enqueued_runs_keep_both_turns_in_order(begin):
    thread = await begin()
    await thread.begin(QUICK)
    await thread.say(CODE, multitask_strategy="enqueue")
    assert await thread.texts() == [
        QUICK,
        "slow_tool",
        "waited 1.0 s",
        "slow_tool returned: waited 1.0 s",
        CODE,
        "Confirmed.",
    ]


async def test_a_second_run_is_rejected_and_the_first_goes_on(begin, http_client):
    thread = await begin()
    run_id = await thread.begin(QUICK)
    with pytest.raises(ConflictError, match="already running"):
        await thread.say(CODE, multitask_strategy="reject")
    await http_client.runs.join(thread.thread_id, run_id)
    assert (await thread.texts())[-1] == "slow_tool returned: waited 1.0 s"
    assert CODE not in await thread.texts()


async def test_an_interrupting_run_closes_the_call_that_the_first_left_open(begin, http_client):
    thread = await begin()
    run_id = await thread.begin(SLOW)
    await thread.say(CODE, multitask_strategy="interrupt")
    assert (await http_client.runs.get(thread.thread_id, run_id))["status"] == "interrupted"
    messages = (await thread.state())["values"]["messages"]
    assert [one["type"] for one in messages] == ["human", "ai", "tool", "human", "ai"]
    assert messages[2]["tool_call_id"] == messages[1]["tool_calls"][0]["id"]
    assert messages[2]["status"] == "error"


async def test_a_run_that_rolls_back_leaves_nothing_of_the_first(begin, http_client, server_dsn):
    thread = await begin()
    await thread.say(CODE)
    await thread.begin(SLOW)
    assert await thread.say(CODE_AGAIN, multitask_strategy="rollback") == CODE_ANSWER
    assert [text for text in await thread.texts() if "slow_tool" in text] == []
    history = await http_client.threads.get_history(thread.thread_id, limit=50)
    assert "slow_tool" not in str([past["values"] for past in history])
    async with open_stores(server_dsn, pool_size=2) as stores:
        await stores.saver.aprune([thread.thread_id])
    assert await thread.say(CODE_AGAIN) == CODE_ANSWER
    assert _rows_that_say("slow_tool", thread.thread_id, server_dsn) == {
        "checkpoint_blobs": 0,
        "checkpoint_messages": 0,
        "checkpoint_writes": 0,
    }


def _rows_that_say(text: str, thread_id: str, dsn: str) -> dict[str, int]:
    found: dict[str, int] = {}
    with psycopg.connect(dsn) as connection:
        for table in ("checkpoint_blobs", "checkpoint_messages", "checkpoint_writes"):
            query = sql.SQL(
                "SELECT count(*) FROM {} WHERE thread_id = %s AND position(%s IN blob) > 0"
            ).format(sql.Identifier(table))
            row = connection.execute(query, [thread_id, text.encode()]).fetchone()
            found[table] = row[0]
    return found


@pytest.mark.parametrize(("action", "left"), [("interrupt", [SLOW, "slow_tool"]), ("rollback", [])])
async def test_a_cancelled_run_leaves_a_thread_that_goes_on(begin, http_client, action, left):
    thread = await begin()
    await thread.say(CODE)
    run_id = await thread.begin(SLOW)
    await http_client.runs.cancel(thread.thread_id, run_id, wait=True, action=action)
    assert (await thread.texts())[2:] == left
    assert await thread.say(CODE_AGAIN) == CODE_ANSWER


async def test_a_stranger_changes_nothing_and_the_approval_still_waits(begin):
    thread = await begin()
    await thread.say(ASK)
    before = await thread.state()

    async def refused(named: str, **options: Any) -> None:
        with pytest.raises(RunFailedError, match=named):
            await replace(thread).run(**options)

    eve = {"user_id": "eve"}
    await asyncio.gather(
        refused("is not a thread of 'eve'", given=said("let me in"), context=eve),
        refused("is not a thread of 'eve'", command={"resume": "yes"}, context=eve),
        refused("`user_id`", given=said("who am I?"), context={}),
    )
    assert await thread.state() == before
    await thread.run(command={"resume": "yes"})
    assert (await thread.texts())[-1] == "ask_person returned: the person said yes"


async def test_an_unknown_thread_is_not_found_and_can_be_made(begin, http_client):
    thread = await begin()
    thread.thread_id = str(uuid4())
    with pytest.raises(NotFoundError, match="Thread"):
        await thread.say(CODE)
    with pytest.raises(NotFoundError, match=thread.thread_id):
        await thread.state()
    await thread.say(CODE, if_not_exists="create")
    assert await thread.texts() == [CODE, "Confirmed."]


async def test_characters_that_no_store_holds_are_replaced(begin):
    thread = await begin()
    await thread.run(
        {"messages": [{"role": "user", "content": "My code is a\x00b.", "id": "m\x001"}]},
        metadata={"note": "x\x00y"},
        context=thread.context | {"rules": "Be\x00 brief."},
    )
    assert await thread.texts() == [f"My code is a{REPLACEMENT}b.", "Confirmed."]
    with pytest.raises(RunFailedError, match=r"`user_id`.*NUL"):
        await thread.say(CODE, context={"user_id": "ki\x00m"})
    await thread.say(ASK)
    await thread.run(command={"resume": "a\x00b"})
    assert f"the person said a{REPLACEMENT}b" in await thread.texts()


@pytest.mark.parametrize("thread_id", ["t\x00", "t" * 801])
async def test_a_thread_id_that_no_store_holds_is_the_clients_error(begin, http_client, thread_id):
    """A25, expectation 4."""
    thread = await begin()
    for ask in (
        http_client.threads.create(thread_id=thread_id),
        replace(thread, thread_id=thread_id).say(CODE, if_not_exists="create"),
        replace(thread, thread_id=thread_id).state(),
    ):
        with pytest.raises(APIStatusError, match="UUID") as refused:
            await ask
        assert 400 <= refused.value.status_code < 500


async def test_a_wrong_setting_is_named_and_nothing_is_lost(begin):
    async def go_wrong_and_on(given: dict[str, Any], named: str) -> None:
        thread = await begin()
        with pytest.raises(RunFailedError, match=f"(?s){named}"):
            await thread.say(CODE, context=thread.context | given)
        await thread.say(CODE)
        assert (await thread.texts())[-2:] == [CODE, "Confirmed."]

    await asyncio.gather(*(go_wrong_and_on(*case) for case in WRONG_SETTINGS))


async def test_what_is_no_input_is_refused_and_the_thread_stays_readable(begin):
    async def go_wrong_and_on(given: dict[str, Any], named: str) -> None:
        thread = await begin()
        with pytest.raises(RunFailedError, match=f"(?s)InvalidInputError.*{named}"):
            await thread.run(given)
        assert await thread.texts() == []
        await thread.say(CODE)
        assert await thread.texts() == [CODE, "Confirmed."]

    await asyncio.gather(*(go_wrong_and_on(*case) for case in NO_INPUT))
