"""What our model adds to the client: event loops, other servers' fields, reasoning."""

import asyncio
import subprocess
import sys
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import SecretStr

from everlong.nodes.blocks import without_thoughts
from everlong.nodes.models import chat_model
from everlong.nodes.openai_compatible import OpenAICompatible
from openai_server import OpenAIServer
from strategies import found, searches, thought


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


IMAGE: dict[str, Any] = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}


async def test_a_thread_that_another_provider_began_goes_on(openai_server: OpenAIServer) -> None:
    openai_server.script(["Fine."])
    said: list[Any] = [thought(), searches("s1"), found("s1"), {"type": "text", "text": "7."}]
    asking: list[Any] = [thought(), {"type": "tool_use", "id": "call_Oslo", "name": "weather"}]
    shown: list[Any] = [{"type": "text", "text": "A map."}, IMAGE]
    history = [
        HumanMessage([{"type": "text", "text": "Look."}, IMAGE]),
        AIMessage(said),
        HumanMessage("Oslo?"),
        AIMessage(asking, tool_calls=[cast("Any", CALL)]),
        ToolMessage(shown, tool_call_id="call_Oslo"),
    ]
    assert (await chat_model("openai:gpt-4o").ainvoke(history)).text == "Fine."
    user, searched, _, called, result, map_shown = openai_server.requests[0].body["messages"]
    assert [part["type"] for part in user["content"]] == ["text", "image_url"]
    assert [part["type"] for part in searched["content"]] == ["text"] * 3
    assert "the provider ran web_search" in searched["content"][0]["text"]
    assert called["content"] is None
    assert [part["text"] for part in result["content"]] == ["A map.", "(image attached)"]
    assert (map_shown["role"], map_shown["content"][1]["type"]) == ("user", "image_url")


def test_an_item_whose_reasoning_was_removed_is_sent_without_its_id() -> None:
    content: list[Any] = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "text", "text": "Looking.", "id": "msg_1"},
        {"type": "function_call", "id": "fc_1", "call_id": "call_Oslo", "name": "weather"},
    ]
    content[-1]["arguments"] = '{"city": "Oslo"}'
    message = AIMessage(content, tool_calls=[cast("Any", CALL)])
    bare = without_thoughts(message)
    assert bare is not None
    model = OpenAICompatible(
        model="gpt-5",
        api_key=SecretStr("none"),
        use_responses_api=True,
        base_url="https://api.openai.com/v1",
    )
    sent = {name: model._get_request_payload([one]) for name, one in (("a", message), ("b", bare))}
    kinds = {name: [item["type"] for item in one["input"]] for name, one in sent.items()}
    assert kinds == {
        "a": ["reasoning", "message", "function_call"],
        "b": ["message", "function_call"],
    }
    assert [item.get("id") for item in sent["a"]["input"]] == ["rs_1", "msg_1", "fc_1"]
    assert [item.get("id") for item in sent["b"]["input"]] == [None, None]
