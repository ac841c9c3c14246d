"""The whole agent on Postgres and the real OpenAI client over HTTP."""

from itertools import pairwise

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from everlong.graph.runtime import open_agent
from everlong.nodes.context import Compaction, Context, Memory
from everlong.nodes.rendering import ABOVE
from everlong.nodes.transcript import is_summary
from invariants import check_state
from openai_server import OpenAIServer

THREAD: RunnableConfig = {"configurable": {"thread_id": "t1"}}


@tool
def stock(city: str) -> str:
    """Tell the stock of bolts in a city."""
    return {"Oslo": "1240 bolts", "Bergen": "310 bolts"}[city]


def user(text):
    return {"messages": [{"role": "user", "content": text}]}


def context(**more):
    return Context(user_id="kim", model="openai:gpt-4o", memory=Memory(enabled=False), **more)


async def test_streaming_parallel_tools_and_usage_with_cached_tokens(
    dsn, openai_server: OpenAIServer
):
    openai_server.script(
        [
            {
                "tool_calls": [
                    {"name": "stock", "args": {"city": "Oslo"}},
                    {"name": "stock", "args": {"city": "Bergen"}},
                ]
            },
            "Oslo has 1240 bolts, Bergen 310.",
        ]
    )
    async with open_agent(tools=[stock], dsn=dsn) as agent:
        words = [
            part.text
            async for part, _ in agent.astream(
                user("Compare Oslo and Bergen. " * 40),
                THREAD,
                context=context(),
                stream_mode="messages",
            )
            if part.type == "AIMessageChunk"
        ]
        values = (await agent.aget_state(THREAD)).values
    assert "".join(words) == "Oslo has 1240 bolts, Bergen 310."
    assert len([word for word in words if word]) > 1
    check_state(values["messages"])
    first, second = values["call"]["requests"]
    assert (first["kind"], second["kind"]) == ("answer", "answer")
    assert second["cached"] > 0
    assert second["input"] == openai_server.requests[1].usage["prompt_tokens"]
    assert values["meter"]["reported"] >= second["input"]
    bodies = [request.body for request in openai_server.requests]
    assert bodies[0]["messages"] == bodies[1]["messages"][: len(bodies[0]["messages"])]
    assert bodies[0]["tools"] == bodies[1]["tools"]


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_true_context_length_exceeded_is_recovered_in_the_same_call(
    dsn, openai_server: OpenAIServer, streaming
):
    def answer(body):
        last = body["messages"][-1]["content"]
        return (
            "They talked about rows." if ABOVE in last or "<conversation>" in last else "still here"
        )

    openai_server.responder = answer
    long = "row 17,204 of the table, checked and found right. " * 120
    async with open_agent(dsn=dsn) as agent:
        settings = context(compaction=Compaction(trigger_messages=0, keep_messages=2))
        for number in range(4):
            await agent.ainvoke(user(f"part {number}: {long}"), THREAD, context=settings)
        openai_server.window = 5_000
        if streaming:
            async for _ in agent.astream(user("And now?"), THREAD, context=settings):
                pass
        else:
            await agent.ainvoke(user("And now?"), THREAD, context=settings)
        values = (await agent.aget_state(THREAD)).values
        for number in range(4, 8):  # the window that was named is believed from now on
            await agent.ainvoke(user(f"part {number}: {long}"), THREAD, context=settings)
    assert values["messages"][-1].text == "still here"
    assert is_summary(values["messages"][0])
    assert values["compaction"]["trigger"] == "overflow"
    assert values["compaction"]["by"] == "model"
    refused = [r for r in openai_server.requests if r.status == 400]
    assert len(refused) == 1


async def test_a_model_host_that_is_down_keeps_the_question(dsn, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "test-key")
    async with open_agent(dsn=dsn) as agent:
        with pytest.raises(Exception, match=r"[Cc]onnection"):
            await agent.ainvoke(user("hello"), THREAD, context=context())
        values = (await agent.aget_state(THREAD)).values
        assert [message.text for message in values["messages"]] == ["hello"]


async def test_a_missing_key_is_named_before_any_request(dsn, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with open_agent(dsn=dsn) as agent:
        with pytest.raises(ValueError, match="OPENAI_API_KEY"):
            await agent.ainvoke(user("hello"), THREAD, context=context())


async def test_consecutive_requests_extend_one_prefix_until_a_compaction(
    dsn, openai_server: OpenAIServer
):
    openai_server.responder = "noted"
    async with open_agent(dsn=dsn) as agent:
        for number in range(6):
            await agent.ainvoke(user(f"message {number}"), THREAD, context=context())
    bodies = [request.body["messages"] for request in openai_server.requests]
    for before, after in pairwise(bodies):
        assert after[: len(before)] == before
