"""The agent as a node of another graph: its history is its own, the parent's stays as it is."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from everlong.graph.agent import build
from everlong.nodes.errors import InvalidInputError, MissingUserError
from everlong.stores import compactions, transcripts
from invariants import check_pairs
from scripted_model import ScriptedModel, asks_for_summary, calling

THREAD = {"configurable": {"thread_id": "t1"}}
COMPACTING = {"trigger_messages": 5, "keep_messages": 2, "flush_before": False}
SUMMARY = "The user counts."


def ask_person(question: str) -> str:
    """Ask the person, and wait for the answer."""
    return f"the person said {interrupt(question)}"


def talk(messages):
    """Repeat what was said last; sum up where that is asked for."""
    return SUMMARY if asks_for_summary(messages) else f"You said: {messages[-1].text}"


def context(script: Any = talk, **more):
    given = {"user_id": "kim", "model": ScriptedModel(script=script), "memory": {"enabled": False}}
    return given | more


def user(text):
    return {"messages": [{"role": "user", "content": text}]}


def texts(messages):
    return [message.text for message in messages]


@pytest.fixture
def parent(backend):
    """Make a parent with the agent as its node."""

    def make(agent=None, schema=MessagesState):
        builder = StateGraph(schema, context_schema=dict)
        builder.add_node("everlong", agent or build(tools=[ask_person]).compile())
        builder.add_edge(START, "everlong")
        return builder.compile(checkpointer=backend.saver, store=backend.store)

    return make


async def child_state(graph):
    """Return the agent's own state, as the parent's saver holds it."""
    place = {"thread_id": "t1", "checkpoint_ns": "everlong"}
    return (await graph.aget_state({"configurable": place})).values


@pytest.mark.parametrize("checkpointer", [None, True])
async def test_each_message_is_once_in_both_histories(parent, checkpointer):
    graph, given = parent(build().compile(checkpointer=checkpointer)), context()
    for text in ("one", "two"):
        after = await graph.ainvoke(user(text), THREAD, context=given)
    whole = ["one", "You said: one", "two", "You said: two"]
    assert texts(after["messages"]) == whole
    assert texts((await child_state(graph))["messages"]) == whole
    assert texts(given["model"].requests[-1][1:]) == whole[:3]


async def test_its_compaction_touches_its_own_history_only(parent, backend):
    graph, given = parent(), context(compaction=COMPACTING)
    said, after = ["one", "two", "three", "four"], {}
    for text in said:
        after = await graph.ainvoke(user(text), THREAD, context=given)
    spoken = [each for text in said for each in (text, f"You said: {text}")]
    assert texts(after["messages"]) == spoken
    own = (await child_state(graph))["messages"]
    assert SUMMARY in own[0].text
    assert texts(own[1:]) == spoken[-3:]
    assert [one for one in texts(given["model"].requests[-1]) if one in spoken] == spoken[-3:-1]
    entries = await transcripts.read(backend.store, "kim", "t1|everlong")
    assert [entry.text for entry in entries] == spoken
    receipts = await compactions.read(backend.store, "kim", "t1|everlong")
    assert {receipt["outcome"] for receipt in receipts} == {"done"}


async def test_an_edit_in_the_parent_reaches_it_and_its_previews_stay(parent):
    graph, given = parent(), context()
    await graph.ainvoke(user("one"), THREAD, context=given)
    first = (await graph.aget_state(THREAD)).values["messages"][0]
    await graph.aupdate_state(
        THREAD, {"messages": [first.model_copy(update={"content": "uno"})]}, as_node="everlong"
    )
    await graph.ainvoke(user("two"), THREAD, context=given)
    assert texts(given["model"].requests[-1][1:]) == ["uno", "You said: one", "two"]


async def test_tokens_come_through_the_parent_and_no_inner_word(parent):
    graph, given = parent(), context(compaction=COMPACTING)
    for text in ("one", "two"):
        await graph.ainvoke(user(text), THREAD, context=given)
    words, events = [], []
    async for space, mode, part in graph.astream(
        user("three"), THREAD, context=given, stream_mode=["messages", "custom"], subgraphs=True
    ):
        if mode == "messages":
            assert [one.partition(":")[0] for one in space] == ["everlong"]
            words.append(part[0].text)
        else:
            events.append(part["type"])
    assert "".join(words) == "You said: three"
    assert events == ["compaction.started", "compaction.finished"]


async def test_an_approval_inside_pauses_the_parent_and_goes_on_with_the_answer(parent):
    graph = parent()
    given = context([calling(("ask_person", {"question": "Go?"})), "done", "bye"])
    paused = await graph.ainvoke(user("ask me"), THREAD, context=given)
    assert [one.value for one in paused["__interrupt__"]] == ["Go?"]
    after = await graph.ainvoke(Command(resume="yes"), THREAD, context=given)
    whole = ["ask me", "", "the person said yes", "done"]
    assert texts(after["messages"]) == whole
    await graph.ainvoke(user("thanks"), THREAD, context=given)
    assert texts(given["model"].requests[-1][1:]) == [*whole, "thanks"]


async def test_who_types_instead_of_answering_is_answered(parent):
    graph = parent()
    given = context([calling(("ask_person", {"question": "Go?"})), "never mind then"])
    await graph.ainvoke(user("ask me"), THREAD, context=given)
    after = await graph.ainvoke(user("never mind"), THREAD, context=given)
    assert after["messages"][-1].text == "never mind then"
    check_pairs(given["model"].requests[-1])


async def test_a_parent_without_context_schema_gives_what_the_caller_gives(backend):
    builder = StateGraph(MessagesState).add_node("everlong", build().compile())
    graph = builder.add_edge(START, "everlong").compile(
        checkpointer=backend.saver, store=backend.store
    )
    after = await graph.ainvoke(user("hello"), THREAD, context=context())
    assert after["messages"][-1].text == "You said: hello"


@pytest.mark.parametrize("nobody", [None, {}, {"user_id": None}, {"customer": "kim"}])
async def test_a_parent_that_passes_no_user_is_told_what_to_pass(parent, nobody):
    graph = parent()
    with pytest.raises(MissingUserError, match="parent graph passes it in its own context"):
        await graph.ainvoke(user("hello"), THREAD, context=nobody)
    assert await child_state(graph) == {}


async def test_another_user_does_not_get_into_its_history(parent):
    graph = parent()
    await graph.ainvoke(user("my secret"), THREAD, context=context())
    before = await child_state(graph)
    stranger = context(user_id="eve")
    with pytest.raises(InvalidInputError, match="not a thread of 'eve'"):
        await graph.ainvoke(user("what was said?"), THREAD, context=stranger)
    assert stranger["model"].requests == []
    assert await child_state(graph) == before


class Order(TypedDict, total=False):
    question: str
    request: str
    answer: str


async def test_a_node_that_calls_it_has_other_channels_and_its_history_goes_on(backend):
    agent = build().compile()

    async def ask(state: Order) -> Order:
        answered = await agent.ainvoke(user(state["question"]))
        return {"answer": " / ".join(texts(answered["messages"]))}

    builder = StateGraph(Order, context_schema=dict).add_node("ask", ask)
    graph = builder.add_edge(START, "ask").compile(checkpointer=backend.saver, store=backend.store)
    given = context()
    await graph.ainvoke({"question": "one"}, THREAD, context=given)
    after = await graph.ainvoke({"question": "two"}, THREAD, context=given)
    assert after["answer"] == "You said: two"
    assert texts(given["model"].requests[-1][1:]) == ["one", "You said: one", "two"]


class Ticket(MessagesState):
    request: str
    owner: str
    call: str
    meter: int


async def test_channels_of_the_parent_with_names_of_ours_are_its_own(parent):
    graph, given = parent(schema=Ticket), context()
    own = {"request": "a refund", "owner": "the shop", "call": "ring", "meter": 3}
    for text in ("one", "two"):
        after = await graph.ainvoke(user(text) | own, THREAD, context=given)
    assert {name: after[name] for name in own} == own
    assert after["messages"][-1].text == "You said: two"


async def test_one_that_keeps_nothing_gets_the_parents_history_each_time(parent, backend, caplog):
    graph, given = parent(build().compile(checkpointer=False)), context(compaction=COMPACTING)
    said, after = ["one", "two", "three"], {}
    for text in said:
        after = await graph.ainvoke(user(text), THREAD, context=given)
    assert texts(after["messages"]) == [e for t in said for e in (t, f"You said: {t}")]
    assert await child_state(graph) == {}
    assert await transcripts.threads(backend.store, "kim") == []
    assert "cannot be read" not in caplog.text


async def test_what_others_have_said_since_is_new_to_it(backend):
    async def colleague(state: MessagesState) -> MessagesState:
        return {"messages": [AIMessage("the colleague's word")]}

    builder = StateGraph(MessagesState, context_schema=dict).add_node(colleague)
    builder.add_node("everlong", build().compile()).add_edge(START, "colleague")
    graph = builder.add_edge("colleague", "everlong").compile(
        checkpointer=backend.saver, store=backend.store
    )
    given = context(lambda messages: f"heard {len(messages) - 1}")
    for text in ("one", "two"):
        after = await graph.ainvoke(user(text), THREAD, context=given)
    assert texts(after["messages"]) == [
        "one",
        "the colleague's word",
        "heard 2",
        "two",
        "the colleague's word",
        "heard 5",
    ]
