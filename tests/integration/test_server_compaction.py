"""What a client of the real `langgraph dev` sees while everlong compacts and flushes."""

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk import get_client

from everlong.nodes.rendering import ABOVE
from everlong.nodes.transcript import SUMMARY_NAME
from everlong.stores import compactions
from everlong.stores.postgres import open_stores
from http_thread import HttpThread, said
from inner_words import check_quiet
from langgraph_server import LangGraphServer, make_project
from openai_server import OpenAIServer

ANSWER, SUMMARY, FLUSH = "The answer is three.", "SUMMARY-TOKEN", "FLUSH-TOKEN"
MODES: list[Any] = ["messages-tuple", "updates", "custom", "values"]
ROUND = "Row 17,204 of the table is checked and found right. " * 60
SMALL_WINDOW = 4_000
FLUSH_SECONDS = 0.6
REASONS = {"automatic": "messages", "overflow": "overflow", "forced": "manual"}
TRIGGERS = tuple(REASONS)
COUNTS = {"automatic": 5, "overflow": 13, "forced": 4}
"""Messages when the compaction begins: rounds, and the new question."""


def answer(body: dict[str, Any]) -> Any:
    """Answer as the agent's model, or as a summariser or a flush that lets its own words out."""
    last = str(body["messages"][-1]["content"])
    if "NO_REPLY" in last:
        time.sleep(FLUSH_SECONDS)
        return f"- {FLUSH} is a fact."
    return SUMMARY if ABOVE in last or "<conversation>" in last else ANSWER


@pytest.fixture(scope="module")
def model_host() -> Iterator[OpenAIServer]:
    with OpenAIServer() as host:
        host.responder = answer
        yield host


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, server_dsn: str, model_host: OpenAIServer
) -> Iterator[LangGraphServer]:
    """Run a server whose models are at the host."""
    folder: Path = make_project(tmp_path_factory.mktemp("compacting"))
    at = {"OPENAI_BASE_URL": model_host.url, "OPENAI_API_KEY": model_host.key}
    with LangGraphServer(folder, DATABASE_URL=server_dsn, EVERLONG_POOL_SIZE="5", **at) as server:
        yield server
    assert "BlockingError" not in server.log_text()


@pytest.fixture
async def begin(served: LangGraphServer, model_host: OpenAIServer) -> AsyncIterator[Any]:
    """Begin a thread of rounds that the next run compacts for the given reason."""
    async with get_client(url=served.url, api_key=None) as client:

        async def begin_for(trigger: str, **context: Any) -> HttpThread:
            compaction = {
                "trigger_messages": 5 if trigger == "automatic" else 0,
                "keep_messages": 2,
                "flush_before": False,
            }
            given = {
                "user_id": f"kim-{uuid4().hex[:6]}",
                "model": "openai:gpt-4o",
                "memory": {"enabled": False},
                "compaction": compaction,
            }
            thread = await HttpThread.new(client, given | context, "everlong")
            for number in range(COUNTS[trigger] // 2):
                await thread.say(f"{number}: {ROUND}")
            if trigger == "overflow":
                model_host.window = SMALL_WINDOW
            return thread

        yield begin_for
        model_host.window = 128_000


async def follow(thread: HttpThread, trigger: str, modes: Any) -> list[tuple[Any, Any, float]]:
    """Run; return each part of the stream, the state when a custom event came, and when it came."""
    given = {"request": {"compact": True}} if trigger == "forced" else said("And now?")
    parts = thread.client.runs.stream(
        thread.thread_id,
        thread.graph,
        input=given,
        context=thread.context,
        stream_mode=modes,
        stream_subgraphs=True,
    )
    return [
        (
            part,
            (await thread.state())["values"] if part.event.startswith("custom") else None,
            time.perf_counter(),
        )
        async for part in parts
    ]


def of(seen: list[tuple[Any, Any, float]], event: str) -> list[Any]:
    return [part.data for part, _, _ in seen if part.event == event]


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_a_client_sees_the_answer_and_progress_and_nothing_of_the_summary(begin, trigger):
    thread = await begin(trigger)
    seen = await follow(thread, trigger, MODES)
    assert of(seen, "error") == []
    check_quiet([part.data for part, _, _ in seen], [SUMMARY])
    chunks = [part for part in of(seen, "messages") if part[0]["type"] == "AIMessageChunk"]
    words = "".join(message["content"] for message, _ in chunks)
    assert words == ("" if trigger == "forced" else ANSWER)
    assert {about["langgraph_node"] for _, about in chunks} <= {"reason"}
    started, finished = of(seen, "custom")
    assert (started["type"], started["trigger"]) == ("compaction.started", REASONS[trigger])
    assert started["messages"] == finished["messages_before"] == COUNTS[trigger]
    assert (finished["type"], finished["outcome"]) == ("compaction.finished", "done")
    assert finished["messages_after"] == 3
    assert finished["tokens_after"] < finished["tokens_before"] == started["tokens"]


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_an_end_is_told_when_a_client_reads_it_in_the_state_and_in_the_record(
    begin, server_dsn, trigger
):
    thread = await begin(trigger)
    seen = await follow(thread, trigger, MODES)
    ((finished, state),) = [
        (part.data, state)
        for part, state, _ in seen
        if part.event == "custom" and part.data["type"] == "compaction.finished"
    ]
    assert state["compaction"]["id"] == finished["id"]
    assert state["messages"][0]["name"] == SUMMARY_NAME
    user_id = thread.context["user_id"]
    async with open_stores(server_dsn, pool_size=2) as stores:
        found = await compactions.find(stores.store, user_id, thread.thread_id, finished["id"])
        assert found is not None
        assert (found["outcome"], found["model"]) == ("done", "openai:gpt-4o")
        assert found["usage"]["input"] > 0
        originals = await compactions.originals(stores.store, user_id, thread.thread_id, found)
    assert originals[0].text == f"0: {ROUND}"
    assert [entry.message_id for entry in originals] == found["message_ids"]


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_the_event_stream_has_no_inner_call(begin, trigger):
    thread = await begin(trigger)
    seen = await follow(thread, trigger, ["events"])
    check_quiet([part.data for part, _, _ in seen], [SUMMARY])
    events = of(seen, "events")
    models = [event for event in events if event["event"].startswith("on_chat_model")]
    assert {event["metadata"]["langgraph_node"] for event in models} <= {"reason"}
    streamed = [event for event in models if event["event"] == "on_chat_model_stream"]
    words = "".join(event["data"]["chunk"]["content"] for event in streamed)
    assert words == ("" if trigger == "forced" else ANSWER)
    receipt = (await thread.state())["values"]["compaction"]
    assert (receipt["trigger"], receipt["outcome"]) == (REASONS[trigger], "done")


async def test_the_answer_is_there_before_the_flush_ends_and_nothing_of_the_flush_is(begin):
    thread = await begin("automatic", memory={"consolidate": "on_request"})
    seen = await follow(thread, "automatic", MODES)
    check_quiet([part.data for part, _, _ in seen], [SUMMARY, FLUSH])
    answered = next(
        at
        for part, _, at in seen
        if part.event == "values" and part.data["messages"][-1]["type"] == "ai"
    )
    flushed = next(
        at
        for part, _, at in seen
        if part.event == "custom" and part.data["type"] == "memory.flushed"
    )
    assert answered < flushed - FLUSH_SECONDS / 2


async def test_a_summariser_that_is_down_ends_no_run_and_its_failure_is_told(begin, model_host):
    thread = await begin("automatic", summary_model="openai:summariser")
    model_host.fail_next(401, message="SUMMARY-TOKEN: no such key", retry=False)
    seen = await follow(thread, "automatic", MODES)
    assert of(seen, "error") == []
    _, finished = of(seen, "custom")
    assert finished["outcome"] == "failed"
    assert finished["messages_after"] == 5
    texts = await thread.texts()
    assert texts[-2:] == ["And now?", ANSWER]
    assert not any(SUMMARY in text for text in texts)
