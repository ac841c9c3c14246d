"""Our middleware in langchain's `create_agent`: compaction and eviction."""

from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import SystemMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.types import Command

from everlong.graph.middleware import EverlongMiddleware
from everlong.nodes.errors import InvalidInputError, MissingUserError
from everlong.nodes.rendering import ABOVE
from everlong.stores import compactions, files, transcripts
from foreign_graph import KIM, SUMMARY, says, texts, thread, user
from invariants import check_pairs, check_summary
from langchain_agent import LARGE, QUIET, check_sent, maker
from scripted_model import ScriptedModel, asks_for_summary, calling

PRICES = "a price\n" * 12_000


@pytest.fixture
def agent(backend):
    return maker(backend)


async def test_the_history_is_compacted_once_each_through_restarts(agent, backend):
    model = ScriptedModel(script=says)
    said, messages = ["one", "two", "three", "four", "five", "six"], []
    for text in said:
        after = await agent(model).ainvoke(user(text), thread(), context=KIM)
        messages = after["messages"]
        assert len({message.id for message in messages}) == len(messages) <= 6
        check_summary(messages)
    check_sent(model)
    assert SUMMARY in messages[0].text
    assert max(len(request) for request in model.requests if not asks_for_summary(request)) <= 6
    entries = await transcripts.read(backend.store, "kim", "t1")
    assert [entry.text for entry in entries][::2] == said
    receipts = await compactions.read(backend.store, "kim", "t1")
    assert len(receipts) == 2
    assert {one["outcome"] for one in receipts} == {"done"}


async def test_a_summary_request_extends_what_the_agent_has_sent(agent):
    model = ScriptedModel(script=says)
    graph = agent(model, [lookup])
    for text in ("one", "two", "three", "four"):
        await graph.ainvoke(user(text), thread(), context=KIM)
    place = next(i for i, one in enumerate(model.requests) if asks_for_summary(one))
    asked, before = model.requests[place], model.requests[place - 1]
    assert ABOVE in asked[-1].text
    shared = len(asked) - 1
    assert [(m.type, m.text) for m in asked[:shared]] == [(m.type, m.text) for m in before[:shared]]
    assert asked[0].text.startswith("You are theirs.")
    assert model.tools[place] == model.tools[place - 1]


async def test_what_is_pinned_and_what_identifies_survives_its_compactions(agent, backend):
    model = ScriptedModel(script=says)
    graph = agent(model)
    pinned = {"role": "user", "content": "never by air", "additional_kwargs": {"pin": True}}
    await graph.ainvoke({"messages": [pinned]}, thread(), context=KIM)
    after = await graph.ainvoke(user("it is order SO-2026-0417"), thread(), context=KIM)
    for text in ("two", "three", "four", "five", "six"):
        after = await graph.ainvoke(user(text), thread(), context=KIM)
    held = texts(after["messages"])
    assert held[1] == "never by air"
    assert SUMMARY in held[0]
    assert "SO-2026-0417" in held[0]  # which the model's summary does not have
    receipts = await compactions.read(backend.store, "kim", "t1")
    assert "SO-2026-0417" in str(receipts[0]["carried"])


def lookup(number: int) -> str:
    """Look a number up."""
    return f"number {number}"


def looking(most: int):
    """Call the tool twice at a time until so many are found."""

    def script(messages):
        if asks_for_summary(messages):
            return SUMMARY
        last = next((m.text for m in reversed(messages) if m.type == "tool"), "0")
        number = int(last.rpartition(" ")[2])
        calls = [("lookup", {"number": number + step}) for step in (1, 2)]
        return "found" if number >= most else calling(*calls, prefix=f"c{number}")

    return script


async def test_in_a_long_tool_loop_pairs_stay_whole_and_the_question_stays(agent):
    model = ScriptedModel(script=looking(20))
    graph = agent(model, [lookup])
    updates = [
        part
        async for part in graph.astream(
            user("look them all up"), thread(), context=KIM, stream_mode="updates"
        )
    ]
    assert all(isinstance(what, dict) for part in updates for what in part.values())
    check_sent(model)
    asked = [request for request in model.requests if not asks_for_summary(request)]
    assert all("look them all up" in texts(request) for request in asked)
    assert max(map(len, asked)) <= 9
    state = (await graph.aget_state(thread())).values
    assert state["messages"][-1].text == "found"
    assert "view" not in state["everlong"]
    check_pairs(state["messages"])
    check_summary(state["messages"])
    model.script = says
    after = await graph.ainvoke(user("thanks"), thread(), context=KIM)
    check_sent(model)
    assert after["messages"][-1].text.endswith("heard")


def prices() -> str:
    """Return the whole price list."""
    return PRICES


@tool("prices")
def pages() -> str:
    """Return some pages of the price list."""
    return PRICES[:50_000]


def reading(messages):
    """Ask for the prices, for a text that is not there, for their second page; then say so."""
    results = [message for message in messages if message.type == "tool"]
    if not results:
        return calling(("prices", {}))
    path = results[0].text.partition("stored whole as ")[2].partition(";")[0]
    if not path:
        return "read at once"
    if len(results) == 1:
        return calling(("read_stored", {"path": "nowhere.txt"}), prefix="n")
    if len(results) == 2:
        return calling(("read_stored", {"path": path, "offset": 20_000}), prefix="r")
    return "read"


async def test_no_checkpoint_holds_a_result_that_is_too_long_and_it_is_read_back(agent, backend):
    model = ScriptedModel(script=reading)
    graph = agent(model, [prices], settings=LARGE)
    events = [
        part
        async for part in graph.astream(
            user("the prices?"), thread(), context=KIM, stream_mode="custom"
        )
    ]
    assert [event["type"] for event in events] == ["eviction"]
    after = (await graph.aget_state(thread())).values["messages"]
    moved, missed, page = (message for message in after if message.type == "tool")
    assert "read the rest with read_stored" in moved.text
    assert (missed.status, missed.text[:29]) == ("error", "There is no stored text 'nowh")
    assert "characters 20,000 to" in page.text
    assert await files.read_text(backend.store, "kim", events[0]["path"]) == PRICES
    async for one in graph.aget_state_history(thread()):
        assert all(len(m.text) < 30_000 for m in one.values.get("messages", []))
    assert "stored under the path" in model.requests[0][0].text


@tool
def prices_twice(tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Return the whole price list, and an update beside it."""
    return [ToolMessage(PRICES, tool_call_id=tool_call_id), Command(update={})]


async def test_of_several_outcomes_of_one_call_none_is_too_long_in_a_checkpoint(agent):
    graph = agent(ScriptedModel(script=[calling(("prices_twice", {})), "read"]), [prices_twice])
    await graph.ainvoke(user("the prices?"), thread(), context=KIM)
    async for one in graph.aget_state_history(thread()):
        assert all(len(m.text) < 30_000 for m in one.values.get("messages", []))
    assert texts((await graph.aget_state(thread())).values["messages"])[-1] == "read"


async def test_results_of_an_imported_history_are_moved_too(agent, backend):
    graph = agent(ScriptedModel(script=says))
    call = calling(("prices", {}))
    result = {"role": "tool", "content": PRICES, "tool_call_id": "call_0_prices", "name": "prices"}
    given = {"messages": [("user", "the prices?"), call, result, ("user", "so?")]}
    after = await graph.ainvoke(given, thread(), context=KIM)
    (moved,) = (m for m in after["messages"] if m.type == "tool")
    assert len(moved.text) < 3_000
    assert len(await files.list_paths(backend.store, "kim", "")) == 1


@pytest.mark.parametrize("nobody", [None, {}, {"tenant": "t"}])
async def test_without_a_user_the_model_is_not_asked(agent, nobody):
    model = ScriptedModel(script=says)
    with pytest.raises(MissingUserError, match="user_id"):
        await agent(model).ainvoke(user("hello"), thread(), context=nobody)
    assert model.requests == []


async def test_another_users_thread_is_refused(agent):
    model = ScriptedModel(script=says)
    await agent(model).ainvoke(user("my secret"), thread(), context=KIM)
    with pytest.raises(InvalidInputError, match="expected a thread of 'eve'"):
        await agent(model).ainvoke(user("what was said?"), thread(), context={"user_id": "eve"})
    assert len(model.requests) == 1


def test_a_synchronous_call_is_refused_with_what_to_write(agent):
    model = ScriptedModel(script=says)
    graph = create_agent(model, middleware=[EverlongMiddleware(QUIET)])
    with pytest.raises(InvalidInputError, match="expected `ainvoke`"):
        graph.invoke(user("hello"), context=KIM)
    assert model.requests == []


@pytest.mark.parametrize("own", ["model", "system_prompt"])
def test_what_the_agent_has_of_its_own_is_no_setting(own):
    with pytest.raises(InvalidInputError, match="the agent's own"):
        EverlongMiddleware({own: "offline"})


async def test_blocks_of_a_system_prompt_stay_blocks(agent):
    blocks = [{"type": "text", "text": "You are theirs.", "cache_control": {"type": "ephemeral"}}]
    model = ScriptedModel(script=says)
    graph = agent(model, system_prompt=SystemMessage(content=blocks))
    await graph.ainvoke(user("hello"), thread(), context=KIM)
    sent = model.requests[-1][0].content
    assert sent[0] == blocks[0]
    assert [block["type"] for block in sent] == ["text", "text"]


async def test_a_client_that_sends_its_whole_history_adds_only_what_is_new(agent, backend):
    model = ScriptedModel(script=says)
    seen: list[dict[str, str]] = []
    after: dict[str, Any] = {}
    for number in range(6):
        seen.append({"role": "user", "content": f"question {number}", "id": f"q{number}"})
        after = await agent(model).ainvoke({"messages": seen}, thread(), context=KIM)
        last = after["messages"][-1]
        seen.append({"role": "assistant", "content": last.text, "id": last.id})
        check_summary(after["messages"])
    check_sent(model)
    archived = await transcripts.read(backend.store, "kim", "t1")
    assert [entry.text for entry in archived] == [one["content"] for one in seen]
    held = texts(after["messages"])[1:]
    assert held == [one["content"] for one in seen][-len(held) :]


async def test_a_small_window_has_a_small_limit(agent):
    model = ScriptedModel(script=reading, profile={"max_input_tokens": 100_000})
    small = ScriptedModel(script=reading, profile={"max_input_tokens": 60_000})
    for one, moves in ((model, False), (small, True)):
        graph = agent(one, [pages], settings={"compaction": {"trigger_messages": 0}})
        after = await graph.ainvoke(user("the prices?"), thread(f"t{moves}"), context=KIM)
        first = next(message for message in after["messages"] if message.type == "tool")
        assert ("stored whole as" in first.text) is moves
        held = [
            len(message.text)
            async for step in graph.aget_state_history(thread(f"t{moves}"))
            for message in step.values.get("messages", [])
        ]
        assert (max(held) < 45_000) is moves


async def test_a_thread_of_langchains_summarisation_goes_on_and_its_summary_is_merged(backend):
    model = ScriptedModel(script=["first", "second", "THEIR WORDS", "third"])
    theirs = create_agent(
        model,
        middleware=[SummarizationMiddleware(model, trigger=("messages", 5), keep=("messages", 2))],
        checkpointer=backend.saver,
        store=backend.store,
    )
    for text in ("one", "two", "three"):
        await theirs.ainvoke(user(text), thread(), context=KIM)
    model = ScriptedModel(script=says)
    ours = maker(backend)(model)
    for text in ("four", "five"):
        after = await ours.ainvoke(user(text), thread(), context=KIM)
    check_summary(after["messages"])
    asked = next(request for request in model.requests if asks_for_summary(request))
    assert any("THEIR WORDS" in text for text in texts(asked))
    assert not any("THEIR WORDS" in text for text in texts(after["messages"]))
    archived = await transcripts.read(backend.store, "kim", "t1")
    assert not any("THEIR WORDS" in entry.text for entry in archived)
