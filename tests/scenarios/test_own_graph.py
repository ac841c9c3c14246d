"""Our nodes in a graph that is not ours: its state class, its tools, its model."""

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from everlong.graph.parts import compaction_node, eviction_wrapper, tools_of
from everlong.nodes.errors import InvalidInputError, MissingUserError
from everlong.stores import compactions, files, ledger, transcripts
from foreign_graph import COMPACTING, KIM, SUMMARY, foreign, says, texts, thread, user
from invariants import check_pairs, check_summary
from scripted_model import ScriptedModel, asks_for_summary, calling, kind_of

PRICES = "a price\n" * 12_000


@dataclass
class AsDataclass:
    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)
    plan: str = ""


class AsModel(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = Field(default_factory=list)
    plan: str = ""


class AsHistory(TypedDict, total=False):
    history: Annotated[list[AnyMessage], add_messages]
    plan: str


@pytest.mark.parametrize(
    ("schema", "key"), [(AsDataclass, "messages"), (AsModel, "messages"), (AsHistory, "history")]
)
async def test_it_compacts_whatever_the_state_class(backend, schema, key):
    graph = foreign(backend, ScriptedModel(script=says), schema=schema, key=key)
    for text in ("one", "two", "three", "four"):
        after = await graph.ainvoke(user(text, key), thread(), context=KIM)
    history = after[key]
    assert SUMMARY in history[0].text
    assert texts(history[1:]) == ["5 heard", "four", "3 heard"] or len(history) < 8
    assert after["plan"] == "answer"
    assert set(after) == {key, "plan"}


async def test_what_stays_keeps_its_ids_and_comes_once_through_a_restart(backend):
    model = ScriptedModel(script=says)
    seen: dict[str, str] = {}
    for text in ("one", "two", "three", "four", "five", "six"):
        graph = foreign(backend, model)  # as a new process would
        after = await graph.ainvoke(user(text), thread(), context=KIM)
        messages = after["messages"]
        assert len({message.id for message in messages}) == len(messages) <= 6
        check_summary(messages)
        for message in messages[1:]:
            assert seen.setdefault(message.id, message.text) == message.text
    entries = await transcripts.read(backend.store, "kim", "t1")
    assert [e.text for e in entries][::2] == ["one", "two", "three", "four", "five", "six"]
    assert len(entries) == 12
    receipts = await compactions.read(backend.store, "kim", "t1")
    assert {one["outcome"] for one in receipts} == {"done"}


def lookup(number: int) -> str:
    """Look a number up."""
    return f"number {number}"


async def test_calls_and_results_stay_together_in_a_long_loop(backend):
    def script(messages):
        if asks_for_summary(messages):
            return SUMMARY
        done = sum(message.type == "tool" for message in messages)
        last = next((m.text for m in reversed(messages) if m.type == "tool"), "0")
        number = int(last.rpartition(" ")[2])
        check_pairs(messages)
        assert done <= 8
        calls = [("lookup", {"number": number + step}) for step in (1, 2)]
        return "found" if number >= 12 else calling(*calls, prefix=f"c{number}")

    model = ScriptedModel(script=script)
    graph = foreign(backend, model, tools=[lookup])
    after = await graph.ainvoke(user("look them all up"), thread(), context=KIM)
    assert after["messages"][-1].text == "found"
    assert "look them all up" in texts(after["messages"])
    check_pairs(after["messages"])


def prices() -> str:
    """Return the whole price list."""
    return PRICES


def reading(messages):
    """Ask for the prices, then for their second page, and then say what came."""
    results = [message for message in messages if message.type == "tool"]
    if not results:
        return calling(("prices", {}))
    path = results[0].text.partition("stored whole as ")[2].partition(";")[0]
    if len(results) == 1:
        return calling(("read_stored", {"path": path, "offset": 20_000}), prefix="r")
    return "read"


@pytest.mark.parametrize("by_wrapper", [False, True])
async def test_a_result_that_is_too_long_moves_and_is_read_back(backend, by_wrapper):
    settings = {"memory": {"enabled": False}}
    tools = [prices, *tools_of(settings, memory=False)]
    wrapper = eviction_wrapper(settings, tools=tools)
    node = ToolNode(tools, awrap_tool_call=wrapper) if by_wrapper else None
    model = ScriptedModel(script=reading)
    graph = foreign(backend, model, tools=tools, tool_node=node)
    events = [
        part
        async for part in graph.astream(
            user("the prices?"), thread(), context=KIM, stream_mode="custom"
        )
    ]
    assert [event["type"] for event in events] == ["eviction"]
    state = (await graph.aget_state(thread())).values
    moved, page = (message for message in state["messages"] if message.type == "tool")
    assert len(moved.text) < 3_000
    assert "read the rest with read_stored" in moved.text
    assert "characters 20,000 to" in page.text
    assert await files.read_text(backend.store, "kim", events[0]["path"]) == PRICES
    assert state["messages"][-1].text == "read"
    sizes = [
        max(len(m.text) for m in one.values["messages"])
        async for one in graph.aget_state_history(thread())
        if one.values.get("messages")
    ]
    assert (max(sizes) < 30_000) is by_wrapper  # a node is too late for the first checkpoint


@tool("prices")
def as_update(tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Return the whole price list as an update of the state."""
    return Command(update={"history": [ToolMessage(PRICES, tool_call_id=tool_call_id)]})


async def test_a_result_in_an_update_moves_whatever_the_channels_name(backend):
    wrapper = eviction_wrapper({"memory": {"enabled": False}}, messages_key="history")
    node = ToolNode([as_update], messages_key="history", awrap_tool_call=wrapper)
    model = ScriptedModel(script=[calling(("prices", {})), "read"])
    graph = foreign(
        backend, model, schema=AsHistory, key="history", tools=[as_update], tool_node=node
    )
    await graph.ainvoke(user("the prices?", "history"), thread(), context=KIM)
    async for one in graph.aget_state_history(thread()):
        assert all(len(message.text) < 30_000 for message in one.values.get("history", []))


async def test_no_inner_word_is_streamed_and_the_models_own_are(backend):
    graph = foreign(backend, ScriptedModel(script=says))
    words, events = [], []
    for text in ("one", "two", "three", "four"):
        async for mode, part in graph.astream(
            user(text), thread(), context=KIM, stream_mode=["messages", "custom"]
        ):
            if mode == "messages":
                words.append(part[0].text)
            else:
                events.append(part["type"])
    assert SUMMARY not in "".join(words)
    assert "".join(words).startswith("1 heard3 heard5 heard")
    assert events == ["compaction.started", "compaction.finished"]


async def test_a_compaction_is_told_though_no_node_of_ours_follows(backend):
    model = ScriptedModel(script=says)
    settings = {"model": model, "compaction": COMPACTING, "memory": {"enabled": False}}

    async def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState, context_schema=dict).add_node(agent)
    builder.add_node("compact", compaction_node(settings)).add_edge(START, "compact")
    graph = builder.add_edge("compact", "agent").compile(
        checkpointer=backend.saver, store=backend.store
    )
    told: list[list[str]] = []
    for text in ("one", "two", "three", "four", "five"):
        stream = graph.astream(user(text), thread(), context=KIM, stream_mode="custom")
        told.append([part["type"] async for part in stream])
    assert told == [[], [], [], ["compaction.started", "compaction.finished"], []]
    (receipt,) = await compactions.read(backend.store, "kim", "t1")
    assert receipt["outcome"] == "done"  # by the next call


async def test_facts_are_remembered_and_found_in_another_thread(backend):
    def script(messages):
        if kind_of(messages) == "flush":
            said = "Shanghai" in messages[-1].text.partition("<conversation>")[2]
            return "- [1] The user's port is Shanghai." if said else "NO_REPLY"
        if messages[-1].type == "tool":
            return messages[-1].text
        asks = "which" in messages[-1].text
        return calling(("memory_search", {"query": "port"})) if asks else "noted"

    memory = {"consolidate": "on_request"}
    graph = foreign(backend, ScriptedModel(script=script), tools=tools_of(), memory=memory)
    await graph.ainvoke(user("my port is Shanghai"), thread(), context=KIM)
    (entry,) = await ledger.entries(backend.store, "kim")
    assert "Shanghai" in entry.text
    after = await graph.ainvoke(user("which port?"), thread("t2"), context=KIM)
    assert "Source: memory/" in after["messages"][-1].text
    other = await graph.ainvoke(user("which port?"), thread("t3"), context={"user_id": "eve"})
    assert "Nothing is remembered" in other["messages"][-1].text


def ask_person(question: str) -> str:
    """Ask the person."""
    return f"the person said {interrupt(question)}"


async def test_a_pause_in_a_tool_of_its_own_goes_on(backend):
    script = [calling(("ask_person", {"question": "Go?"})), "done"]
    graph = foreign(backend, ScriptedModel(script=script), tools=[ask_person])
    paused = await graph.ainvoke(user("ask me"), thread(), context=KIM)
    assert [one.value for one in paused["__interrupt__"]] == ["Go?"]
    after = await graph.ainvoke(Command(resume="yes"), thread(), context=KIM)
    assert texts(after["messages"]) == ["ask me", "", "the person said yes", "done"]


async def test_an_open_call_is_closed_where_the_user_types_instead(backend):
    script = [calling(("ask_person", {"question": "Go?"})), "never mind"]
    model = ScriptedModel(script=script)
    graph = foreign(backend, model, tools=[ask_person])
    await graph.ainvoke(user("ask me"), thread(), context=KIM)
    await graph.ainvoke(user("forget it"), thread(), context=KIM)
    check_pairs(model.requests[-1])


async def test_without_a_user_nothing_runs(backend):
    model = ScriptedModel(script=says)
    with pytest.raises(MissingUserError, match="user_id"):
        await foreign(backend, model).ainvoke(user("hello"), thread(), context={"tenant": "t"})
    assert model.requests == []


async def test_another_users_thread_is_refused(backend):
    model = ScriptedModel(script=says)
    graph = foreign(backend, model)
    await graph.ainvoke(user("my secret"), thread(), context=KIM)
    with pytest.raises(InvalidInputError, match="expected a thread of 'eve'"):
        await graph.ainvoke(user("what was said?"), thread(), context={"user_id": "eve"})
    assert len(model.requests) == 1


async def test_who_resumes_anothers_paused_run_saves_nothing(backend):
    script = [calling(("memory_save", {"content": "The PIN is 4711"}))]
    node = ToolNode(tools_of())
    graph = foreign(
        backend, ScriptedModel(script=script), tools=tools_of(), tool_node=node, memory={}
    )
    await graph.ainvoke(user("save it"), thread(), context=KIM, interrupt_before=["tools"])
    with pytest.raises(InvalidInputError, match="not a thread of 'eve'"):
        await graph.ainvoke(None, thread(), context={"user_id": "eve"})
    assert await ledger.entries(backend.store, "eve") == []


class Added(TypedDict):
    messages: Annotated[list[Any], operator.add]


async def test_a_history_that_cannot_be_replaced_is_refused_with_the_reason(backend):
    model = ScriptedModel(script=says)
    settings = {"model": model, "compaction": COMPACTING, "memory": {"enabled": False}}
    builder = StateGraph(Added).add_node("compact", compaction_node(settings))
    graph = builder.add_edge(START, "compact").compile(
        checkpointer=backend.saver, store=backend.store
    )
    many = [AIMessage(str(n), id=f"a{n}") for n in range(8)]
    with pytest.raises(InvalidInputError, match="add_messages"):
        await graph.ainvoke({"messages": many}, thread(), context=KIM)
    assert texts((await graph.aget_state(thread())).values["messages"]) == texts(many)


def test_a_wrong_setting_is_refused_when_the_node_is_made():
    with pytest.raises(InvalidInputError, match="trigger_messages"):
        compaction_node({"compaction": {"trigger_messages": 1}})
