"""R25: what a provider's prefix cache pays of a summary, and what it keeps of the next request."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

from everlong.graph.runtime import Agent, open_agent
from everlong.nodes.context import Context
from everlong.nodes.rendering import ABOVE
from everlong.stores import memory
from openai_rules import as_bytes, tokens
from openai_server import OpenAIServer, Received

THREAD: RunnableConfig = {"configurable": {"thread_id": "t1"}}
MODEL = "openai:gpt-4o"
LEAST_SHARE = 0.9
BLOCK_TOKENS = 64
"""What the server caches a prompt in."""
ROWS = "row 17,204 of the table was checked and found right; "


@tool
def fetch(number: int, rows: int) -> str:
    """Fetch rows of a table."""
    return f"table {number}: " + ROWS * rows


def answering(*scripted: Any) -> Callable[[dict[str, Any]], Any]:
    """Answer inner requests by what they ask, and the user's in order; then only confirm."""
    answers = list(scripted)

    def answer(body: dict[str, Any]) -> Any:
        last = str(body["messages"][-1]["content"])
        if ABOVE in last or ("<conversation>" in last and "NO_REPLY" not in last):
            return "## SESSION INTENT\nThey check rows.\n## SUMMARY\nAll rows are right so far."
        if "NO_REPLY" in last:
            return "NO_REPLY"
        return answers.pop(0) if answers else "Noted: the rows are right."

    return answer


def calls(*rows: int) -> dict[str, Any]:
    """Return an answer that fetches so many rows in each call."""
    made = [{"name": "fetch", "args": {"number": n, "rows": many}} for n, many in enumerate(rows)]
    return {"tool_calls": made}


def context(**more: Any) -> Context:
    given: dict[str, Any] = {"user_id": "kim", "model": MODEL, "memory": {"enabled": False}}
    compaction = {"trigger_messages": 20, "keep_messages": 4}
    return Context.model_validate(given | {"compaction": compaction} | more)


async def talk(agent: Agent, settings: Context, *, rounds: int, first: int = 0) -> None:
    for number in range(first, first + rounds):
        asked = {"role": "user", "content": f"part {number}: {ROWS * 60}"}
        await agent.ainvoke({"messages": [asked]}, THREAD, context=settings)


def summaries(server: OpenAIServer) -> list[Received]:
    """Return the summary requests that extend what was sent."""
    return [one for one in server.requests if ABOVE in str(one.body["messages"][-1]["content"])]


def share(received: Received) -> float:
    """Return which part of a prompt came from the cache."""
    usage = received.usage
    return usage["prompt_tokens_details"]["cached_tokens"] / usage["prompt_tokens"]


def check_paid_by_cache(server: OpenAIServer, *, at_least: int = 1) -> None:
    """Raise AssertionError unless the cache pays for summaries, and for what leads requests."""
    found = summaries(server)
    assert len(found) >= at_least
    shares = [round(share(one), 3) for one in found]
    assert min(shares) >= LEAST_SHARE, f"at least {LEAST_SHARE} from the cache; got {shares}"
    for one in found:
        after = server.requests[server.requests.index(one) + 1 :]
        following = next((each for each in after if each.body.get("tools")), None)
        if following is not None:
            check_lead_is_cached(following)


def check_lead_is_cached(received: Received) -> None:
    """Raise AssertionError unless the cache has the request's tools and system message."""
    body = received.body
    lead = tokens(as_bytes(body["model"], body["tools"], body["messages"][0]))
    cached = received.usage["prompt_tokens_details"]["cached_tokens"]
    assert cached > lead - BLOCK_TOKENS, f"about {lead} tokens of the lead; got {cached}"


@pytest.fixture
def server(openai_server: OpenAIServer) -> OpenAIServer:
    openai_server.responder = answering()
    return openai_server


async def test_a_summary_of_plain_rounds_is_paid_by_the_cache(dsn, server):
    async with open_agent(tools=[fetch], dsn=dsn) as agent:
        await talk(agent, context(), rounds=30)
        values = (await agent.aget_state(THREAD)).values
    check_paid_by_cache(server, at_least=2)
    assert all(one.body["tools"] for one in summaries(server))
    assert all("tool_choice" not in one.body for one in summaries(server))
    assert values["compaction"]["outcome"] == "done"


async def test_the_receipt_of_the_call_says_what_came_from_the_cache(dsn, server):
    async with open_agent(tools=[fetch], dsn=dsn) as agent:
        await talk(agent, context(), rounds=11)
        values = (await agent.aget_state(THREAD)).values
    (paid,) = [one for one in values["call"]["requests"] if one["kind"] == "summary"]
    assert paid["cached"] >= LEAST_SHARE * paid["input"] > 0


async def test_rounds_with_parallel_calls_and_compaction_between_them(dsn, server):
    rounds = [calls(60, 60, 60), calls(60), calls(60, 60), calls(60), calls(60), calls(60)]
    server.responder = answering(*rounds, "Done.", *rounds)
    async with open_agent(tools=[fetch], dsn=dsn) as agent:
        settings = context(compaction={"trigger_messages": 14, "keep_messages": 4})
        await talk(agent, settings, rounds=6)
    check_paid_by_cache(server, at_least=2)
    bodies = [one.body["messages"] for one in summaries(server)]
    assert any(message["role"] == "tool" for message in bodies[0])


@pytest.mark.parametrize("flush", ["never", "always"])
async def test_injected_memory_is_part_of_what_is_cached(dsn, server, flush):
    remembering = context(memory={"flush": flush, "consolidate": "on_request"})
    async with open_agent(tools=[fetch], dsn=dsn) as agent:
        facts = "\n".join(f"- Fact {number}: {ROWS}" for number in range(20))
        await memory.write(
            agent.store,
            "kim",
            text=f"# Facts\n{facts}",
            base=None,
            consumed=[],
            instant="2026-03-09T12:00:00.000Z",
            by="person",
        )
        await talk(agent, remembering, rounds=20)
    check_paid_by_cache(server, at_least=2)
    for one in summaries(server):
        assert one.body["messages"][1]["content"].startswith("<reference")


async def test_an_evicted_result_is_sent_to_the_summary_as_it_was_sent_before(dsn, server):
    server.responder = answering(calls(2_000, 10), "Read.", calls(2_000), "Read.")
    async with open_agent(tools=[fetch], dsn=dsn) as agent:
        await talk(agent, context(), rounds=12)
    check_paid_by_cache(server)
    spelled = json.dumps(summaries(server)[0].body["messages"])
    assert "large_tool_results/" in spelled
    assert len(spelled) < 100_000


async def test_results_that_are_shortened_first_do_not_break_the_prefix(dsn, server):
    server.responder = answering(*(part for _ in range(9) for part in (calls(300), "Read.")))
    settings = {"trigger_messages": 0, "trigger_tokens": 24_000, "keep_messages": 4}
    pruned = {"prune": {"protect_tokens": 4_000, "minimum_tokens": 1_000}}
    async with open_agent(tools=[fetch], dsn=dsn) as agent:
        await talk(agent, context(compaction=settings | pruned), rounds=24)
    check_paid_by_cache(server)


async def test_system_messages_and_pins_of_the_history_stay_in_the_prefix(dsn, server):
    pinned = HumanMessage("The safe word is heron.", additional_kwargs={"pin": True})
    async with open_agent(tools=[fetch], dsn=dsn) as agent:
        given = [SystemMessage("Never state prices without VAT."), pinned]
        await agent.ainvoke({"messages": given}, THREAD, context=context(rules="Be brief."))
        await talk(agent, context(rules="Be brief."), rounds=20)
    check_paid_by_cache(server, at_least=2)


async def test_another_process_goes_on_with_the_same_prefix(dsn, server):
    for part in range(3):
        async with open_agent(tools=[fetch], dsn=dsn) as agent:
            await talk(agent, context(), rounds=8, first=8 * part)
    check_paid_by_cache(server, at_least=2)


async def test_a_compaction_that_a_person_asked_for_is_paid_by_the_cache(dsn, server):
    async with open_agent(tools=[fetch], dsn=dsn) as agent:
        await talk(agent, context(), rounds=8)
        asked = {"request": {"compact": True, "instructions": "Keep the row numbers."}}
        await agent.ainvoke(asked, THREAD, context=context())
        await talk(agent, context(), rounds=1, first=8)
    check_paid_by_cache(server)
    assert "Keep the row numbers." in summaries(server)[0].body["messages"][-1]["content"]


async def test_another_summary_model_is_sent_the_conversation_as_text(dsn, server):
    settings = context(summary_model="openai:gpt-4o-mini")
    async with open_agent(tools=[fetch], dsn=dsn) as agent:
        await talk(agent, settings, rounds=11)
    assert summaries(server) == []
    (rendered,) = [one for one in server.requests if one.body["model"] == "gpt-4o-mini"]
    assert "tools" not in rendered.body
    (message,) = rendered.body["messages"]
    assert "<conversation>\n[user]\npart 0: " in message["content"]
    following = server.requests[server.requests.index(rendered) + 1]
    check_lead_is_cached(following)


async def test_the_same_summary_model_by_name_still_extends_the_prefix(dsn, server):
    async with open_agent(tools=[fetch], dsn=dsn) as agent:
        await talk(agent, context(summary_model=MODEL), rounds=11)
    check_paid_by_cache(server)
