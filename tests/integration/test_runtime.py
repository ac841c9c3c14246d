"""`open_agent` on a real Postgres: turns, strangers, bad input, runs at once."""

import asyncio
from contextlib import aclosing

import pytest
from langchain_core.runnables import RunnableConfig

from everlong.graph.runtime import open_agent
from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError, MissingUserError
from everlong.stores.dsn import DatabaseUnavailableError
from everlong.stores.postgres import migrate
from everlong.stores.text import REPLACEMENT
from scripted_model import ScriptedModel, asks_for_summary

THREAD: RunnableConfig = {"configurable": {"thread_id": "t1"}}


def echo(messages):
    return f"heard {messages[-1].text}"


def context(**more):
    given = {"user_id": "kim", "model": ScriptedModel(script=echo), "memory": {"enabled": False}}
    return Context.model_validate(given | more)


def user(text):
    return {"messages": [{"role": "user", "content": text}]}


async def texts(agent, thread=THREAD):
    snapshot = await agent.aget_state(thread)
    return [message.text for message in snapshot.values.get("messages", [])]


async def test_runs_of_one_thread_at_once_lose_no_turn(dsn):
    async with open_agent(dsn=dsn) as one, open_agent(dsn=dsn) as other:
        await asyncio.gather(
            *(
                agent.ainvoke(user(f"{name}{number}"), THREAD, context=context())
                for name, agent in (("a", one), ("b", other))
                for number in range(4)
            )
        )
        said = await texts(one)
        assert sorted(text for text in said if not text.startswith("heard")) == [
            f"{name}{number}" for name in "ab" for number in range(4)
        ]
        questions, answers = said[::2], said[1::2]
        assert answers == [f"heard {question}" for question in questions]


async def test_a_cancelled_waiter_gives_its_place_to_the_next(dsn):
    async with open_agent(dsn=dsn) as one, open_agent(dsn=dsn) as other:
        slow = context(model=ScriptedModel(script=[1.0, "slow answer"]))
        running = asyncio.create_task(one.ainvoke(user("slow"), THREAD, context=slow))
        await asyncio.sleep(0.2)
        waiting = asyncio.create_task(other.ainvoke(user("given up"), THREAD, context=context()))
        await asyncio.sleep(0.2)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await running
        await other.ainvoke(user("next"), THREAD, context=context())
        assert await texts(one) == ["slow", "slow answer", "next", "heard next"]


async def test_a_strangers_call_changes_nothing(dsn):
    async with open_agent(dsn=dsn) as agent:
        await agent.ainvoke(user("mine"), THREAD, context=context())
        before = await texts(agent)
        with pytest.raises(InvalidInputError, match="not a thread of 'eve'"):
            await agent.ainvoke(user("let me in"), THREAD, context=context(user_id="eve"))
        assert await texts(agent) == before


@pytest.mark.parametrize("user_id", [None, "", "   "])
async def test_no_user_is_refused_before_anything_is_written(dsn, user_id):
    async with open_agent(dsn=dsn) as agent:
        with pytest.raises(MissingUserError, match="user_id"):
            await agent.ainvoke(user("hello"), THREAD, context=context(user_id=user_id))
        assert await texts(agent) == []


@pytest.mark.parametrize("thread_id", [None, "", "t\x00", "t\ud83d", "t" * 801])
async def test_a_thread_id_that_cannot_be_stored_is_refused(dsn, thread_id):
    config = {"configurable": {"thread_id": thread_id}}
    async with open_agent(dsn=dsn) as agent:
        with pytest.raises(InvalidInputError, match="`thread_id`: expected"):
            await agent.ainvoke(user("hello"), config, context=context())
        with pytest.raises(InvalidInputError, match="`thread_id`: expected"):
            await agent.aupdate_state(config, user("edited"))


async def test_a_stream_that_is_left_early_gives_the_thread_to_the_next_run(dsn):
    async with open_agent(dsn=dsn) as agent:
        for stream in (agent.astream, agent.astream_events):
            parts = stream(user("left"), THREAD, context=context())
            async with aclosing(parts):
                await anext(parts)
        await agent.ainvoke(user("next"), THREAD, context=context())
        assert (await texts(agent))[-2:] == ["next", "heard next"]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"compaction": {"trigger_messages": 1}}, "trigger_messages"),
        ({"compaction": {"keep_messages": 0}}, "keep_messages"),
        ({"compaction": {"summary_prompt": "no place"}}, "messages"),
        ({"eviction": {"over_char": 3}}, "over_char"),
        ({"memory": {"flush": "sometimes"}}, "sometimes"),
        ({"time_zone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_a_setting_that_is_wrong_is_named(dsn, given, named):
    async with open_agent(dsn=dsn) as agent:
        with pytest.raises(InvalidInputError, match=named):
            await agent.ainvoke(user("hello"), THREAD, context={"user_id": "kim"} | given)
        assert await texts(agent) == []


@pytest.mark.parametrize(
    "messages", [[], [("user", "  ")], [("system", "be brief")], [("user", "")]]
)
async def test_nothing_to_answer_is_refused_and_the_thread_goes_on(dsn, messages):
    async with open_agent(dsn=dsn) as agent:
        with pytest.raises(InvalidInputError, match="messages"):
            await agent.ainvoke({"messages": messages}, THREAD, context=context())
        await agent.ainvoke(user("hello"), THREAD, context=context())
        said = [text for text in await texts(agent) if text != "be brief"]
        assert said == ["hello", "heard hello"]


async def test_characters_that_no_store_holds_are_replaced_everywhere_alike(dsn):
    async with open_agent(dsn=dsn) as agent:
        model = ScriptedModel(script=echo)
        run = {**THREAD, "metadata": {"note": "x\x00y\ud83d"}}
        await agent.ainvoke(user("my code is a\x00b \ud83d"), run, context=context(model=model))
        expected = f"my code is a{REPLACEMENT}b {REPLACEMENT}"
        assert model.requests[-1][-1].text == expected
        assert (await texts(agent))[0] == expected


async def test_an_unreachable_database_is_named():
    with pytest.raises(DatabaseUnavailableError, match=r"127\.0\.0\.1:1/nothing.*DATABASE_URL"):
        await migrate("postgresql://nobody:secret@127.0.0.1:1/nothing")


async def test_the_error_of_an_unreachable_database_keeps_the_password_to_itself():
    with pytest.raises(DatabaseUnavailableError) as caught:
        await migrate("postgresql://nobody:secret@127.0.0.1:1/nothing")
    assert "secret" not in str(caught.value)


async def test_eight_processes_worth_of_set_up_on_an_empty_database(fresh_dsn):
    await asyncio.gather(*(migrate(fresh_dsn) for _ in range(8)))
    await migrate(fresh_dsn)


async def test_streams_give_the_answers_words_and_only_these(dsn):
    def script(messages):
        return "SUMMARY TOKEN" if asks_for_summary(messages) else "one two three"

    async with open_agent(dsn=dsn) as agent:
        run = context(
            model=ScriptedModel(script=script),
            compaction={"trigger_messages": 4, "keep_messages": 2},
        )
        for text in ("a", "b", "c"):
            parts = [
                part
                async for part in agent.astream(
                    user(text), THREAD, context=run, stream_mode=["messages", "custom"]
                )
            ]
        words = "".join(part[0].text for mode, part in parts if mode == "messages")
        assert words == "one two three"
        events = [part["type"] for mode, part in parts if mode == "custom"]
        assert events == ["compaction.started", "compaction.finished"]
        seen = [e async for e in agent.astream_events(user("d"), THREAD, context=run)]
        assert not any(
            "SUMMARY" in str(event) for event in seen if event["event"] == "on_chat_model_stream"
        )


async def test_the_models_own_error_reaches_the_caller_and_the_question_stays(dsn):
    async with open_agent(dsn=dsn) as agent:
        failing = context(model=ScriptedModel(script=[RuntimeError("model host is down")]))
        with pytest.raises(RuntimeError, match="model host is down"):
            await agent.ainvoke(user("one"), THREAD, context=failing)
        assert await texts(agent) == ["one"]
        await agent.ainvoke(None, THREAD, context=context())
        assert await texts(agent) == ["one", "heard one"]
