"""The real client against a real server: what goes over the wire, and what comes of it."""

import asyncio
import socket
import time
from typing import Any, cast

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool

from everlong.nodes.models import chat_model, explain
from everlong.nodes.overflow import Overflow, overflow_in
from everlong.nodes.usage import Usage, usage_of
from openai_server import OpenAIServer

LONG = "The ship leaves Shanghai on Friday with forty containers on board. " * 40


@tool
def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"{city}: 4 C"


def calls(*cities: str) -> dict[str, Any]:
    return {
        "tool_calls": [{"name": "weather", "args": {"city": c}, "id": f"call_{c}"} for c in cities]
    }


async def streamed(model: Any, messages: Any) -> AIMessageChunk:
    pieces: list[AIMessageChunk] = [chunk async for chunk in model.astream(messages)]
    return pieces[0] + pieces[1:]


async def test_a_named_model_answers_and_sends_the_key(openai_server: OpenAIServer) -> None:
    openai_server.script(["Hello."])
    answer = await chat_model("openai:gpt-4o").ainvoke("Hi")
    received = openai_server.requests[0]
    assert answer.text == "Hello."
    assert received.body["messages"] == [{"content": "Hi", "role": "user"}]
    assert received.body["model"] == "gpt-4o"
    assert received.headers["authorization"] == "Bearer test-key"


def test_calls_that_are_not_asynchronous_work_too(openai_server: OpenAIServer) -> None:
    openai_server.script(["Hello.", "Again."])
    model = chat_model("openai:gpt-4o")
    assert model.invoke("Hi").text == "Hello."
    assert "".join(chunk.text for chunk in model.stream("Hi")) == "Again."


async def test_an_answer_arrives_in_pieces_with_its_usage(openai_server: OpenAIServer) -> None:
    openai_server.script(["A text that is longer than a single piece of it."])
    pieces = [chunk async for chunk in chat_model("openai:gpt-4o").astream("Hi")]
    assert len([p for p in pieces if p.text]) > 2
    whole = pieces[0] + cast("Any", pieces[1:])
    assert whole.text == "A text that is longer than a single piece of it."
    assert usage_of(whole) == Usage(
        openai_server.requests[0].usage["prompt_tokens"],
        0,
        openai_server.requests[0].usage["completion_tokens"],
    )


@pytest.mark.parametrize("streaming", [False, True])
async def test_parallel_calls_and_their_results_travel_both_ways(
    openai_server: OpenAIServer, streaming: bool
) -> None:
    openai_server.script([calls("Oslo", "Bergen"), "Both are cold."])
    model = chat_model("openai:gpt-4o").bind_tools([weather])
    question = HumanMessage("Oslo or Bergen?")
    asked = await (streamed(model, [question]) if streaming else model.ainvoke([question]))
    assert isinstance(asked, AIMessage)
    assert [(c["name"], c["args"], c["id"]) for c in asked.tool_calls] == [
        ("weather", {"city": "Oslo"}, "call_Oslo"),
        ("weather", {"city": "Bergen"}, "call_Bergen"),
    ]
    results = [ToolMessage("4 C", tool_call_id=str(c["id"])) for c in asked.tool_calls]
    answer = await model.ainvoke([question, asked, *results])
    assert answer.text == "Both are cold."
    assert openai_server.requests[0].body["tools"][0]["function"]["name"] == "weather"


async def test_arguments_that_are_no_json_become_an_invalid_call(
    openai_server: OpenAIServer,
) -> None:
    openai_server.script([{"tool_calls": [{"name": "weather", "args": '{"city": oops]'}]}])
    answer = await chat_model("openai:gpt-4o").bind_tools([weather]).ainvoke("Hi")
    assert isinstance(answer, AIMessage)
    assert not answer.tool_calls
    assert answer.invalid_tool_calls[0]["args"] == '{"city": oops]'


@pytest.mark.parametrize("shape", ["openai", "deepseek"])
@pytest.mark.parametrize("streaming", [False, True])
async def test_cached_tokens_are_read_in_both_shapes(
    openai_server: OpenAIServer, streaming: bool, shape: str
) -> None:
    openai_server.usage_shape = shape
    openai_server.responder = "Noted."
    model = chat_model("openai:deepseek-flash")

    async def ask(*messages: Any) -> Usage | None:
        answer = await (streamed(model, messages) if streaming else model.ainvoke([*messages]))
        assert isinstance(answer, AIMessage)
        return usage_of(answer)

    first = await ask(HumanMessage(LONG))
    second = await ask(HumanMessage(LONG), AIMessage("Noted."), HumanMessage("And now?"))
    other = await ask(HumanMessage("Another beginning. " + LONG))
    assert first
    assert second
    assert other
    assert (first.cached, other.cached) == (0, 0)
    assert 0.8 * first.input < second.cached < second.input


async def test_no_usage_reported_is_none(openai_server: OpenAIServer) -> None:
    openai_server.usage_shape = "none"
    openai_server.script(["Hello.", "Hello."])
    model = chat_model("openai:gpt-4o")
    answer = await model.ainvoke("Hi")
    assert isinstance(answer, AIMessage)
    assert usage_of(answer) is None
    assert usage_of(await streamed(model, "Hi")) is None


async def overflow_of(model: BaseChatModel, streaming: bool) -> Overflow | None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its type is the client's affair
        await (streamed(model, LONG) if streaming else model.ainvoke(LONG))
    return overflow_in(caught.value)


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_overflow_is_recognised_with_the_limit_that_is_named(
    openai_server: OpenAIServer, streaming: bool
) -> None:
    openai_server.window = 300
    found = await overflow_of(chat_model("openai:gpt-4o"), streaming)
    assert found
    assert found.limit == 300
    assert found.requested
    assert found.requested > 300
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize("streaming", [False, True])
async def test_llama_cpps_overflow_is_recognised(
    openai_server: OpenAIServer, streaming: bool
) -> None:
    error = {
        "code": 400,
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 9412,
        "n_ctx": 8192,
    }
    openai_server.script([{"status": 400, "error": error}])
    assert await overflow_of(chat_model("openai:local"), streaming) == Overflow(8192, 9412)


async def test_an_overflow_inside_a_stream_is_recognised(openai_server: OpenAIServer) -> None:
    message = "This model's maximum context length is 4096 tokens, but the request has 5000 tokens."
    openai_server.script([{"content": "", "error_after": {"message": message, "code": 400}}])
    found = await overflow_of(chat_model("openai:local"), streaming=True)
    assert found == Overflow(4096, 5000)


async def test_broken_tool_pairs_are_no_overflow(openai_server: OpenAIServer) -> None:
    stray = ToolMessage("4 C", tool_call_id="gone")
    with pytest.raises(Exception, match="must be a response to") as caught:
        await chat_model("openai:gpt-4o").ainvoke([HumanMessage("Hi"), stray])
    assert overflow_in(caught.value) is None


async def test_a_rate_limit_is_retried_twice_and_no_more(openai_server: OpenAIServer) -> None:
    model = chat_model("openai:gpt-4o")
    openai_server.script(["Hello."])
    openai_server.fail_next(429, times=2)
    assert (await model.ainvoke("Hi")).text == "Hello."
    assert [r.status for r in openai_server.requests] == [429, 429, 200]
    openai_server.fail_next(429, times=9, message="Rate limit reached")
    with pytest.raises(Exception, match="Rate limit reached") as caught:
        await model.ainvoke("Hi")
    assert len(openai_server.requests) == 6
    assert overflow_in(caught.value) is None
    assert "Wait and try again" in explain(caught.value, model)


async def test_a_bad_request_is_not_retried(openai_server: OpenAIServer) -> None:
    openai_server.fail_next(400, message="Invalid value for 'tools'")
    with pytest.raises(Exception, match="Invalid value"):
        await chat_model("openai:gpt-4o").ainvoke("Hi")
    assert len(openai_server.requests) == 1


async def test_a_request_too_many_is_seen(openai_server: OpenAIServer) -> None:
    with pytest.raises(Exception, match="script ended"):
        await chat_model("openai:gpt-4o").ainvoke("Hi")
    assert len(openai_server.requests) == 1


async def test_a_stream_that_breaks_off_raises(openai_server: OpenAIServer) -> None:
    openai_server.script([{"content": "Half of the ", "cut": True}])
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its type is the client's affair
        await streamed(chat_model("openai:gpt-4o"), "Hi")
    assert overflow_in(caught.value) is None


async def test_a_refused_connection_fails_soon_and_names_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    model, began = chat_model("openai:gpt-4o"), time.perf_counter()
    with pytest.raises(Exception, match=r"Connection error\.") as caught:
        await model.ainvoke("Hi")
    assert time.perf_counter() - began < 10
    line = explain(caught.value, model)
    assert line.startswith(f"gpt-4o at {address}: cannot be reached (")
    assert "OPENAI_BASE_URL" in line
    assert "refused" in line or "Connect call failed" in line


async def test_a_refused_key_is_explained_without_showing_it(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key")
    model = chat_model("openai:gpt-4o")
    with pytest.raises(Exception, match="Incorrect API key") as caught:
        await model.ainvoke("Hi")
    line = explain(caught.value, model)
    expected = "the key was refused. Check OPENAI_API_KEY. (HTTP 401)"
    assert line == f"gpt-4o at {openai_server.url}: {expected}"


async def test_twenty_requests_at_once_are_all_answered(openai_server: OpenAIServer) -> None:
    openai_server.responder = lambda body: f"You said {body['messages'][0]['content']}."
    model = chat_model("openai:gpt-4o")
    answers = await asyncio.gather(*(model.ainvoke(str(n)) for n in range(20)))
    assert [a.text for a in answers] == [f"You said {n}." for n in range(20)]


async def ask_for_the_wrong_thing(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(body: dict[str, Any]) -> str:
        raise AssertionError(body["model"])

    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        server.script([wrong])
        with pytest.raises(Exception, match="AssertionError"):
            await chat_model("openai:gpt-4o").ainvoke("Hi")


async def test_an_error_of_a_scripted_function_reaches_the_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(AssertionError, match="gpt-4o"):
        await ask_for_the_wrong_thing(monkeypatch)
