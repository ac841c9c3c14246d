"""What our model adds to the client: event loops, other servers' fields, reasoning."""

import asyncio
import subprocess
import sys
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool

from everlong.nodes.models import chat_model
from openai_server import OpenAIServer


@tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"{city}: 4 C"


CALL = {"name": "weather", "args": {"city": "Oslo"}, "id": "call_Oslo"}


async def streamed(model: Any, messages: Any) -> AIMessageChunk:
    pieces: list[AIMessageChunk] = [chunk async for chunk in model.astream(messages)]
    return pieces[0] + pieces[1:]


def test_two_event_loops_in_one_process_both_work(openai_server: OpenAIServer) -> None:
    openai_server.responder = "Hello."

    async def ask() -> str:
        return (await chat_model("openai:gpt-4o").ainvoke("Hi")).text

    made_outside = chat_model("openai:gpt-4o")

    async def ask_outside() -> str:
        return (await made_outside.ainvoke("Hi")).text

    assert [asyncio.run(ask()) for _ in range(3)] == ["Hello."] * 3
    assert [asyncio.run(ask_outside()) for _ in range(3)] == ["Hello."] * 3


def test_a_first_use_in_a_loop_blocks_nothing(openai_server: OpenAIServer) -> None:
    openai_server.script(["Hello."])
    code = """
import asyncio, blockbuster, everlong.nodes.models as models
async def ask():
    with blockbuster.blockbuster_ctx():
        print((await (await models.load("openai:gpt-4o")).ainvoke("Hi")).text)
asyncio.run(ask())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603 - our own code
    assert run.stdout == "Hello.\n", run.stderr


async def test_one_loop_uses_its_connection_again(openai_server: OpenAIServer) -> None:
    openai_server.responder = "Hello."
    for _ in range(5):
        await chat_model("openai:gpt-4o").ainvoke("Hi")
    assert openai_server.connections == 1


async def test_the_responses_api_is_never_asked_for_elsewhere(openai_server: OpenAIServer) -> None:
    openai_server.script(["Hello.", "Hello."])
    await chat_model("openai:gpt-5-pro").ainvoke("Hi")
    await chat_model("openai:gpt-6-sol").bind_tools([weather]).ainvoke("Hi")
    assert [r.status for r in openai_server.requests] == [200, 200]


@pytest.mark.parametrize(
    ("name", "field"),
    [("deepseek-flash", "max_tokens"), ("gpt-4o", "max_tokens"), ("o3", "max_completion_tokens")],
)
async def test_the_answers_limit_goes_under_the_name_that_the_model_knows(
    openai_server: OpenAIServer, name: str, field: str
) -> None:
    openai_server.script(["Hello."])
    await chat_model(f"openai:{name}").bind(max_tokens=77).ainvoke("Hi")
    body = openai_server.requests[0].body
    assert {k: v for k, v in body.items() if k.startswith("max_")} == {field: 77}


@pytest.mark.parametrize("streaming", [False, True])
async def test_deepseeks_reasoning_goes_back_with_the_call(
    openai_server: OpenAIServer, streaming: bool
) -> None:
    openai_server.wants_reasoning = True
    openai_server.script(
        [{"reasoning_content": "Oslo is a city, so I ask."} | {"tool_calls": [CALL]}, "It is cold."]
    )
    model = chat_model("openai:deepseek-flash").bind_tools([weather])
    asked = await (streamed(model, "Oslo?") if streaming else model.ainvoke("Oslo?"))
    kept = AIMessage.model_validate(asked.model_dump() | {"type": "ai"})
    history = [HumanMessage("Oslo?"), kept, ToolMessage("4 C", tool_call_id="call_Oslo")]
    assert (await model.ainvoke(history)).text == "It is cold."
    sent = openai_server.requests[1].body["messages"][1]
    assert sent["reasoning_content"] == "Oslo is a city, so I ask."


async def test_deepseek_gets_the_field_with_calls_that_another_model_made(
    openai_server: OpenAIServer,
) -> None:
    openai_server.wants_reasoning = True
    openai_server.script(["It is cold."])
    history = [
        HumanMessage("Oslo?"),
        AIMessage("", tool_calls=[cast("Any", CALL)]),
        ToolMessage("4 C", tool_call_id="call_Oslo"),
    ]
    assert (await chat_model("openai:deepseek-flash").ainvoke(history)).text == "It is cold."


async def test_others_never_get_a_field_they_did_not_send(openai_server: OpenAIServer) -> None:
    openai_server.script(["Fine."])
    history = [HumanMessage("Hi"), AIMessage("Hello."), HumanMessage("How are you?")]
    await chat_model("openai:gpt-4o").ainvoke(history)
    sent = openai_server.requests[0].body["messages"]
    assert all("reasoning_content" not in message for message in sent)
