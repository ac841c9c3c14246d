"""R46: what a provider's prefix cache keeps of a long session while MEMORY.md changes."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everlong.graph.runtime import Agent, open_agent
from everlong.nodes.context import Context
from everlong.stores import ledger, memory
from everlong.stores.entries import Fact
from openai_server import OpenAIServer, Received

CALLS = 50
MOST_POINTS_BELOW = 0.03
ROWS = "row 17,204 of the table was checked and found right; " * 40


def answer(body: dict[str, Any]) -> str:
    """Keep each box that is named, join all lines, and else only confirm."""
    last = str(body["messages"][-1]["content"])
    if "NO_REPLY" in last and "<conversation>" in last:
        said = re.findall(r"My box (\d+) holds (\w+)\.", last.split("<conversation>")[1])
        return "\n".join(f"- Box {n} holds {what}. [1]" for n, what in said) or "NO_REPLY"
    if "<ledger>" in last and "<document>" in last:
        lines = re.findall(r"^- .+$", last.split("<document>")[1], re.MULTILINE)
        return "\n".join(["# Boxes", *dict.fromkeys(lines)])
    if "messages above" in last or "<conversation>" in last:
        return "## SESSION INTENT\nThey check rows.\n## SUMMARY\nAll rows are right so far."
    return "Noted: the rows are right."


def said(number: int) -> str:
    things = ["tea", "rice", "salt", "silk", "wool", "cork", "zinc", "jute", "hemp", "lime"]
    return f"My box {number} holds {things[number % 10]}. {ROWS}"


def share(requests: list[Received]) -> float:
    """Return which part of the answering requests' prompts came from the cache."""
    answering = [one for one in requests if one.body.get("tools")]
    asked = [one for one in answering if "My box" in str(one.body["messages"][-1]["content"])]
    assert len(asked) == CALLS
    cached = sum(one.usage["prompt_tokens_details"]["cached_tokens"] for one in asked)
    return cached / sum(one.usage["prompt_tokens"] for one in asked)


@pytest.fixture
def session(dsn: str, openai_server: OpenAIServer) -> Callable[..., Any]:
    """Hold a session of fifty calls, some minutes apart; return its share and the versions."""
    openai_server.responder = answer

    async def held(*, minutes: float = 0, between: Any = None, **settings: Any) -> Any:
        now = [datetime(2026, 3, 9, 12, tzinfo=UTC)]
        openai_server.requests.clear()
        openai_server.cache.forget()
        user_id = "kim" if settings["enabled"] else "nobody"
        given = {"user_id": user_id, "model": "openai:gpt-4o", "memory": settings}
        context = Context.model_validate(given)
        async with open_agent(dsn=dsn, clock=lambda: now[0]) as agent:
            for number in range(CALLS):
                asked = {"messages": [{"role": "user", "content": said(number)}]}
                thread = {"configurable": {"thread_id": user_id}}
                await agent.ainvoke(asked, thread, context=context)
                if between is not None:
                    await between(agent, number, now[0])
                now[0] += timedelta(minutes=minutes)
            written = await memory.versions(agent.store, user_id)
        return share(openai_server.requests), len(written)

    return held


async def told_elsewhere(agent: Agent, number: int, now: datetime) -> None:
    """Save, as another session of the user would, a fact in every fifth call."""
    if number % 5 == 0:
        instant, place = now.isoformat(), {"zone": "UTC", "thread_id": "other", "sources": []}
        fact = Fact(f"Warehouse {number} is closed on Sundays.", (f"elsewhere-{number}",))
        await ledger.append(agent.store, "kim", "save", [fact], instant=instant, **place)


@pytest.mark.parametrize(
    ("minutes", "every_minutes", "between", "least_versions"),
    [(10, 30, None, 15), (1, 0, told_elsewhere, CALLS)],
)
async def test_a_session_with_memory_keeps_its_prefix_as_one_without(
    session, minutes, every_minutes, between, least_versions
):
    """MEMORY.md is rewritten in every third call; then in each, and other sessions save, too."""
    without, _ = await session(enabled=False)
    kept, versions = await session(
        enabled=True, minutes=minutes, consolidate_every_minutes=every_minutes, between=between
    )
    assert versions >= least_versions
    assert kept >= without - MOST_POINTS_BELOW, f"{kept:.3f} with memory, {without:.3f} without"
