"""The agent under parents of every kind: their states, their savers, their loops and branches."""

import asyncio
import operator
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from everlong.graph.agent import build
from everlong.nodes.errors import InvalidInputError, MissingUserError, ThreadBusyError
from everlong.stores.settings import settings
from foreign_graph import texts
from scripted_model import ScriptedModel, asks_for_summary, calling

THREAD: Any = {"configurable": {"thread_id": "t1"}}
OWN: Any = {"configurable": {"thread_id": "t1", "checkpoint_ns": "everlong"}}
COMPACTING = {"trigger_messages": 5, "keep_messages": 2, "flush_before": False}
SAID = ("one", "two", "three", "four")
WHOLE = [each for text in SAID for each in (text, f"You said: {text}")]


@dataclass
class AsDataclass:
    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)


class AsModel(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = Field(default_factory=list)


class Added(TypedDict):
    messages: Annotated[list[Any], operator.add]


class Replaced(TypedDict):
    messages: list[Any]


def ask_person(question: str) -> str:
    """Ask the person, and wait for the answer."""
    return f"the person said {interrupt(question)}"


def talk(messages):
    if asks_for_summary(messages):
        return "The user counts."
    last = messages[-1]
    if last.type == "human" and last.text.startswith("ask"):
        return calling(("ask_person", {"question": last.text}), prefix=last.text[4:])
    return f"You said: {last.text}"


def context(**more):
    given = {"user_id": "kim", "model": ScriptedModel(script=talk), "memory": {"enabled": False}}
    return given | {"compaction": COMPACTING} | more


def user(text):
    return {"messages": [{"role": "user", "content": text}]}


def under(schema=MessagesState, agent=None):
    builder = StateGraph(schema, context_schema=dict)
    builder.add_node("everlong", agent or build(tools=[ask_person]).compile())
    return builder


def alone_under(schema, backend):
    """Return a parent that has no node but our agent."""
    graph = under(schema).add_edge(START, "everlong")
    return graph.compile(checkpointer=backend.saver, store=backend.store)


async def own(graph):
    return texts((await graph.aget_state(OWN)).values["messages"])


@pytest.mark.parametrize("schema", [MessagesState, AsDataclass, AsModel])
async def test_whatever_the_state_class_each_message_is_once_in_both(backend, schema):
    graph = alone_under(schema, backend)
    after: Any = {}
    for text in SAID:
        after = await graph.ainvoke(user(text), THREAD, context=context())
    assert texts(after["messages"]) == WHOLE
    assert (await own(graph))[1:] == WHOLE[-3:]


@pytest.mark.parametrize("is_dict", [True, False])
async def test_with_a_reducer_that_gives_no_ids_each_message_is_once_too(backend, is_dict):
    graph = alone_under(Added, backend)
    after: Any = {}
    for text in ("one", "two", "two", "three"):
        given = user(text) if is_dict else {"messages": [HumanMessage(text)]}
        after = await graph.ainvoke(given, THREAD, context=context())
    held = [one["content"] if isinstance(one, dict) else one.text for one in after["messages"]]
    assert held == [*WHOLE[:4], "two", "You said: two", *WHOLE[4:6]]
    assert (await own(graph))[1:] == ["You said: two", *WHOLE[4:6]]


async def test_a_channel_without_reducer_holds_what_the_call_brought(backend):
    graph = alone_under(Replaced, backend)
    after: Any = {}
    for text in SAID:
        after = await graph.ainvoke(user(text), THREAD, context=context())
    assert texts(after["messages"]) == WHOLE[-1:]
    assert (await own(graph))[1:] == WHOLE[-3:]


@pytest.mark.parametrize("has_store", [True, False])
async def test_under_a_parent_that_keeps_nothing_it_sees_the_whole_each_time(backend, has_store):
    store = backend.store if has_store else None
    graph = under().add_edge(START, "everlong").compile(store=store)
    said: list[Any] = []
    for text in SAID:
        given = {"messages": [*said, HumanMessage(text)]}
        said = (await graph.ainvoke(given, context=context()))["messages"]
    assert texts(said) == WHOLE


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_parent_that_passes_no_user_is_told_so_and_nothing_is_written(backend, keeps):
    saver = backend.saver if keeps else None
    graph = under().add_edge(START, "everlong").compile(checkpointer=saver, store=backend.store)
    given = {"model": ScriptedModel(script=talk)}
    with pytest.raises(MissingUserError, match="parent graph passes it in its own context"):
        await graph.ainvoke(user("one"), THREAD, context=given)
    assert given["model"].requests == []
    assert await backend.store.alist_namespaces() == []
    if keeps:
        assert (await graph.aget_state(OWN)).values == {}


async def test_in_a_loop_it_is_given_each_time_what_came_since(backend):
    async def nudge(state: MessagesState) -> MessagesState:
        return {"messages": [HumanMessage(f"more {len(state['messages'])}")]}

    def goes_on(state: MessagesState):
        return "nudge" if len(state["messages"]) < 8 else END

    graph = (
        under()
        .add_node(nudge)
        .add_edge(START, "everlong")
        .add_conditional_edges("everlong", goes_on, ["nudge", END])
        .add_edge("nudge", "everlong")
        .compile(checkpointer=backend.saver, store=backend.store)
    )
    after = await graph.ainvoke(user("go"), THREAD, context=context())
    said = ["go", "more 2", "more 4", "more 6"]
    assert texts(after["messages"]) == [e for t in said for e in (t, f"You said: {t}")]
    assert (await own(graph))[1:] == texts(after["messages"])[-3:]


async def test_streamed_paused_and_resumed_over_compactions_nothing_comes_twice(backend):
    graph = (
        under().add_edge(START, "everlong").compile(checkpointer=backend.saver, store=backend.store)
    )
    given = context()
    for number in range(4):
        for send in (user(f"ask {number}"), Command(resume=f"yes {number}")):
            async for _ in graph.astream(
                send, THREAD, context=given, stream_mode=["values", "messages"], subgraphs=True
            ):
                pass
    messages = (await graph.aget_state(THREAD)).values["messages"]
    assert len({message.id for message in messages}) == len(messages) == 16
    results = [message.text for message in messages if message.type == "tool"]
    assert results == [f"the person said yes {number}" for number in range(4)]
    assert len(await own(graph)) <= 5


def branches(_: MessagesState):
    return [Send("everlong", user(text)) for text in ("left", "right")]


async def test_workers_side_by_side_each_stand_by_themselves(backend):
    graph = (
        under(agent=build().compile(checkpointer=False))
        .add_conditional_edges(START, branches, ["everlong"])
        .compile(checkpointer=backend.saver, store=backend.store)
    )
    for text in ("go", "again"):
        after = await graph.ainvoke(user(text), THREAD, context=context())
    both = ["You said: left", "You said: right"]
    assert texts(after["messages"]) == ["go", *both, "again", *both]


async def test_two_at_once_with_one_history_are_refused_with_what_to_do(backend):
    graph = (
        under()
        .add_conditional_edges(START, branches, ["everlong"])
        .compile(checkpointer=backend.saver, store=backend.store)
    )
    with pytest.raises(InvalidInputError, match="checkpointer=False"):
        await graph.ainvoke(user("go"), THREAD, context=context())
    alone = (
        under().add_edge(START, "everlong").compile(checkpointer=backend.saver, store=backend.store)
    )
    after = await alone.ainvoke(user("one"), THREAD, context=context())  # nothing is held for ever
    assert after["messages"][-1].text == "You said: one"


@pytest.fixture
def waiting_briefly(monkeypatch):
    monkeypatch.setenv("EVERLONG_THREAD_WAIT_SECONDS", "0.3")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


@pytest.mark.usefixtures("waiting_briefly")
async def test_another_run_waits_for_one_that_was_left_and_says_so_where_it_takes_long(backend):
    graph = (
        under().add_edge(START, "everlong").compile(checkpointer=backend.saver, store=backend.store)
    )
    model = ScriptedModel(script=[1.5, "late", "here", "there"])
    given: Any = context(model=model)
    running = asyncio.create_task(graph.ainvoke(user("one"), THREAD, context=given))
    while not model.requests:  # noqa: ASYNC110 - of a run that is to hang
        await asyncio.sleep(0.02)
    with pytest.raises(ThreadBusyError, match=r"'t1' to be free within 0.3 s.*`everlong`"):
        await graph.ainvoke(user("two"), THREAD, context=given)
    await running
    async for _ in graph.astream(
        user("three"), THREAD, context=given, stream_mode="messages", subgraphs=True
    ):
        break
    after = await graph.ainvoke(user("four"), THREAD, context=given)
    assert after["messages"][-1].text in {"here", "there"}


async def test_two_in_one_node_have_a_history_each(backend):
    agent = build().compile()

    async def both(_: MessagesState) -> dict[str, list[AIMessage]]:
        found = [await agent.ainvoke(user(text)) for text in ("left", "right")]
        return {"messages": [one["messages"][-1] for one in found]}

    builder = StateGraph(MessagesState, context_schema=dict).add_node(both).add_edge(START, "both")
    graph = builder.compile(checkpointer=backend.saver, store=backend.store)
    given = context()
    for text in ("go", "again"):
        await graph.ainvoke(user(text), THREAD, context=given)
    heard = [texts(request[1:]) for request in given["model"].requests[-2:]]
    assert heard == [
        ["left", "You said: left", "left"],
        ["right", "You said: right", "right"],
    ]


async def test_two_in_one_node_that_are_given_the_whole_history_hear_each_message_once(backend):
    first, second = build().compile(), build().compile()

    async def both(state: MessagesState) -> dict[str, Any]:
        one = (await first.ainvoke({"messages": state["messages"]}))["messages"]
        two = (await second.ainvoke({"messages": [*state["messages"], *one]}))["messages"]
        return {"messages": [*one, *two]}

    builder = StateGraph(MessagesState, context_schema=dict).add_node(both).add_edge(START, "both")
    graph = builder.compile(checkpointer=backend.saver, store=backend.store)
    given = context(compaction={})
    for text in ("one", "two"):
        after = await graph.ainvoke(user(text), THREAD, context=given)
    whole = texts(after["messages"])
    assert whole[3:] == ["two", "You said: two", "You said: You said: two"]
    assert [texts(one[1:]) for one in given["model"].requests[-2:]] == [whole[:4], whole[:5]]


@pytest.mark.parametrize("compaction", [{}, COMPACTING])
async def test_where_the_parent_is_run_again_from_an_old_step_it_goes_back_too(backend, compaction):
    graph = (
        under().add_edge(START, "everlong").compile(checkpointer=backend.saver, store=backend.store)
    )
    given = context(compaction=compaction)
    for text in SAID:
        await graph.ainvoke(user(text), THREAD, context=given)
    steps = [one async for one in graph.aget_state_history(THREAD) if one.next == ("everlong",)]
    then = next(one for one in steps if one.values["messages"][-1].text == "three")
    after = await graph.ainvoke(None, then.config, context=given)
    assert texts(after["messages"]) == WHOLE[:6]
    assert "four" not in " ".join(texts(given["model"].requests[-1][1:]))
    assert (await own(graph))[-3:] == WHOLE[3:6]
