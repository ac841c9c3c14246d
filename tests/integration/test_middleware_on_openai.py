"""The middleware with langchain's own OpenAI client over HTTP: overflow, prefix, streams."""

import pytest
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conftest import Backend
from everlong.nodes.rendering import ABOVE
from foreign_graph import KIM, SUMMARY, thread, user
from invariants import check_summary
from langchain_agent import maker
from openai_server import OpenAIServer

LONG = "row 17,204 of the table, checked and found right. " * 120


@tool
def stock(city: str) -> str:
    """Tell the stock of bolts in a city."""
    return f"{city}: 310 bolts"


@pytest.fixture
def agent(openai_server):
    """Make an agent on the server; its client closes no connection before the test ends."""
    backend = Backend(InMemorySaver(), InMemoryStore())

    def make(**settings):
        model = ChatOpenAI(
            model="gpt-4o", base_url=openai_server.url, api_key=openai_server.key, max_retries=0
        )
        return maker(backend)(model, [stock], settings=settings)

    return make


def answer(body):
    last = body["messages"][-1]["content"]
    return SUMMARY if ABOVE in last or "<conversation>" in last else "still here"


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_true_refusal_is_recovered_and_the_window_that_it_named_is_believed(
    agent, openai_server: OpenAIServer, streaming
):
    openai_server.responder, after = answer, {}
    graph = agent(compaction={"trigger_messages": 0, "keep_messages": 2, "flush_before": False})
    for number in range(4):
        await graph.ainvoke(user(f"part {number}: {LONG}"), thread(), context=KIM)
    openai_server.window = 5_000
    if streaming:
        words = [
            part.text
            async for part, _ in graph.astream(
                user("And now?"), thread(), context=KIM, stream_mode="messages"
            )
        ]
        assert "".join(words) == "still here"
    else:
        await graph.ainvoke(user("And now?"), thread(), context=KIM)
    for number in range(4, 8):
        after = await graph.ainvoke(user(f"part {number}: {LONG}"), thread(), context=KIM)
    check_summary(after["messages"])
    assert len([one for one in openai_server.requests if one.status == 400]) == 1


async def test_a_summary_request_is_paid_for_by_the_prefix_cache(
    agent, openai_server: OpenAIServer
):
    openai_server.responder = answer
    graph = agent(compaction={"trigger_messages": 7, "keep_messages": 2, "flush_before": False})
    for number in range(4):
        await graph.ainvoke(user(f"part {number}: {LONG}"), thread(), context=KIM)
    (asked,) = (
        one for one in openai_server.requests if ABOVE in str(one.body["messages"][-1]["content"])
    )
    before = openai_server.requests[openai_server.requests.index(asked) - 1]
    shared = len(asked.body["messages"]) - 1
    assert asked.body["messages"][:shared] == before.body["messages"][:shared]
    assert asked.body["tools"] == before.body["tools"]
    assert "tool_choice" not in asked.body
    cached = asked.usage["prompt_tokens_details"]["cached_tokens"]
    assert cached > 0.7 * asked.usage["prompt_tokens"]


async def test_the_providers_figures_count(agent, openai_server: OpenAIServer):
    openai_server.responder = answer
    graph = agent()
    await graph.ainvoke(user(LONG), thread(), context=KIM)
    kept = (await graph.aget_state(thread())).values["everlong"]
    (record,) = kept["call"]["requests"]
    assert record["input"] == openai_server.requests[0].usage["prompt_tokens"]
    assert kept["meter"]["reported"] >= record["input"]
