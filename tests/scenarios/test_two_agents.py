"""Two agents side by side under one parent: what they keep of a conversation does not mix."""

from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command, interrupt

from everlong.graph.agent import build
from everlong.nodes.pruning import EVICTED
from everlong.stores import compactions, files, transcripts
from invariants import check_pairs
from scripted_model import ScriptedModel, asks_for_summary, calling, kind_of

THREAD = {"configurable": {"thread_id": "t1"}}
KIM = {"user_id": "kim"}
COMPACTING = {"trigger_messages": 5, "keep_messages": 2, "flush_before": False}


def says(name):
    """Answer in a name, with how much was heard; sum up where that is asked for."""
    return lambda messages: (
        f"{name}'s summary" if asks_for_summary(messages) else f"{name} heard {len(messages) - 1}"
    )


def agent(name, script: Any = None, tools=(), **settings):
    model = ScriptedModel(script=script or says(name))
    defaults = {"model": model, "system_prompt": f"You are {name}.", "memory": {"enabled": False}}
    return build(tools=tools, defaults=defaults | settings).compile(), model


def to_whom(state: MessagesState) -> list[str]:
    return [name for name in ("sales", "support") if name in state["messages"][-1].text]


@pytest.fixture
def under_one_parent(backend):
    def make(sales, support):
        builder = StateGraph(MessagesState).add_node("sales", sales).add_node("support", support)
        return builder.add_conditional_edges(START, to_whom, ["sales", "support"]).compile(
            checkpointer=backend.saver, store=backend.store
        )

    return make


def user(text):
    return {"messages": [{"role": "user", "content": text}]}


async def held(graph, name):
    place = {"thread_id": "t1", "checkpoint_ns": name}
    return [m.text for m in (await graph.aget_state({"configurable": place})).values["messages"]]


async def archived(store, name):
    return [entry.text for entry in await transcripts.read(store, "kim", f"t1|{name}")]


async def test_each_has_its_settings_its_history_its_receipts_and_its_transcript(
    under_one_parent, backend
):
    (sales, seller), (support, helper) = agent("sales", compaction=COMPACTING), agent("support")
    graph = under_one_parent(sales, support)
    for text in ("sales: one", "support: two", "sales: three", "sales: four"):
        after = await graph.ainvoke(user(text), THREAD, context=KIM)
    assert [m.text for m in after["messages"]] == [
        "sales: one",
        "sales heard 1",
        "support: two",
        "support heard 3",
        "sales: three",
        "sales heard 3",
        "sales: four",
        "sales heard 3",
    ]
    assert [request[0].text[:14] for request in helper.requests] == ["You are suppor"]
    assert {request[0].text[:13] for request in seller.requests} == {"You are sales"}
    own = await held(graph, "sales")
    assert "sales's summary" in own[0]
    assert own[1:] == ["sales heard 3", "sales: four", "sales heard 3"]
    assert await held(graph, "support") == [m.text for m in after["messages"][:4]]
    assert await archived(backend.store, "support") == [m.text for m in after["messages"][:4]]
    assert await archived(backend.store, "sales") == [m.text for m in after["messages"]]
    assert await compactions.read(backend.store, "kim", "t1|sales")
    assert await compactions.read(backend.store, "kim", "t1|support") == []
    assert await transcripts.threads(backend.store, "kim") == ["t1|sales", "t1|support"]


async def test_both_at_once_answer_once_each(under_one_parent, backend):
    (sales, _), (support, _) = agent("sales"), agent("support")
    graph = under_one_parent(sales, support)
    for text in ("sales and support: one", "sales and support: two"):
        after = await graph.ainvoke(user(text), THREAD, context=KIM)
    assert sorted(m.text for m in after["messages"] if m.type == "ai") == [
        "sales heard 1",
        "sales heard 4",
        "support heard 1",
        "support heard 4",
    ]
    assert len({m.id for m in after["messages"]}) == len(after["messages"]) == 6


def approve(what: str) -> str:
    """Ask the person."""
    return f"{what}: {interrupt(what)}"


async def test_two_approvals_at_once_each_get_their_own_answer(under_one_parent):
    def asking(name):
        script = [calling(("approve", {"what": name})), f"{name} is done"]
        return agent(name, script, tools=[approve])[0]

    graph = under_one_parent(asking("sales"), asking("support"))
    paused = await graph.ainvoke(user("sales and support"), THREAD, context=KIM)
    answers = {one.id: f"yes, {one.value}" for one in paused["__interrupt__"]}
    assert sorted(answers.values()) == ["yes, sales", "yes, support"]
    after = await graph.ainvoke(Command(resume=answers), THREAD, context=KIM)
    results = [m.text for m in after["messages"] if m.type == "tool"]
    assert sorted(results) == ["sales: yes, sales", "support: yes, support"]


def price_list() -> str:
    """Return the whole price list."""
    return "a price\n" * 12_000


async def test_what_one_moved_away_says_whose_it_is(under_one_parent, backend):
    sales, _ = agent("sales", [calling(("price_list", {})), "there"], tools=[price_list])
    graph = under_one_parent(sales, agent("support")[0])
    after = await graph.ainvoke(user("sales: the prices?"), THREAD, context=KIM)
    (result,) = (m for m in after["messages"] if m.type == "tool")
    path = result.additional_kwargs[EVICTED]["path"]
    assert await files.read_text(backend.store, "kim", path) == "a price\n" * 12_000
    (file,) = await files.list_paths(backend.store, "kim", "")
    assert file.origin["thread"] == "t1|sales"


async def test_one_does_not_find_in_its_session_what_only_the_other_was_told(backend):
    asked = calling(("session_search", {"query": "the colour is crimson"}))
    memory = {"memory": {"flush": "never", "consolidate": "on_request"}}
    sales, _ = agent("sales", ["noted", asked, "there"], **memory)
    support, _ = agent("support", [asked, "nothing there"], **memory)

    async def tell_sales(state: MessagesState) -> dict[str, Any]:
        return await sales.ainvoke(user(state["messages"][0].text))

    async def ask_support(state: MessagesState) -> dict[str, Any]:
        return await support.ainvoke(user("what was said?"))

    builder = StateGraph(MessagesState).add_sequence([tell_sales, ask_support])
    graph = builder.add_edge(START, "tell_sales").compile(
        checkpointer=backend.saver, store=backend.store
    )
    after = await graph.ainvoke(user("the colour is crimson"), THREAD, context=KIM)
    (found,) = (m.text for m in after["messages"] if m.type == "tool")
    assert found.startswith("Nothing was said about")
    assert await transcripts.threads(backend.store, "kim") == ["t1|ask_support", "t1|tell_sales"]
    builder = StateGraph(MessagesState).add_node(tell_sales).add_edge(START, "tell_sales")
    again = builder.compile(checkpointer=backend.saver, store=backend.store)
    after = await again.ainvoke(user("what was said?"), THREAD, context=KIM)
    (own,) = (m.text for m in after["messages"] if m.type == "tool" and m.text != found)
    assert own.startswith("Source: sessions/t1|tell_sales#0")


async def test_both_know_what_the_user_told_one(under_one_parent):
    def remembering(messages):
        if kind_of(messages) == "flush":
            return "- [1] The user's port is Shanghai."
        return "a document" if kind_of(messages) == "consolidation" else "noted"

    sales, _ = agent("sales", remembering, memory={"consolidate": "on_request"})
    asked = calling(("memory_search", {"query": "port"}))
    support, _ = agent("support", [asked, "Shanghai", "NO_REPLY"], memory={})
    graph = under_one_parent(sales, support)
    await graph.ainvoke(user("sales: my port is Shanghai"), THREAD, context=KIM)
    after = await graph.ainvoke(user("support: which port?"), THREAD, context=KIM)
    (found,) = (m.text for m in after["messages"] if m.type == "tool")
    assert "Shanghai" in found


@tool
def hand_over(
    runtime: ToolRuntime[Any, Any], tool_call_id: Annotated[str, InjectedToolCallId]
) -> Command[Any]:
    """Hand the conversation over to support."""
    done = ToolMessage("handed over", tool_call_id=tool_call_id, name="hand_over")
    new = {"messages": [runtime.state["messages"][-1], done]}
    return Command(goto="support", graph=Command.PARENT, update=new)


async def test_one_hands_over_to_the_other_and_goes_on_later(under_one_parent, backend):
    script = [calling(("hand_over", {})), "welcome back"]
    sales, seller = agent("sales", script, tools=[hand_over])
    support, helper = agent("support")
    graph = under_one_parent(sales, support)
    after = await graph.ainvoke(user("sales: help"), THREAD, context=KIM)
    whole = ["sales: help", "", "handed over", "support heard 3"]
    assert [m.text for m in after["messages"]] == whole
    check_pairs(helper.requests[-1])
    assert await archived(backend.store, "sales") == []
    after = await graph.ainvoke(user("sales: hello again"), THREAD, context=KIM)
    assert [m.text for m in seller.requests[-1][1:]] == [*whole, "sales: hello again"]
    check_pairs(seller.requests[-1])
    assert after["messages"][-1].text == "welcome back"
    assert {"sales: help", "sales: hello again"} <= set(await archived(backend.store, "sales"))
