"""Progress comes as custom events, each when the thread's state holds what it reports (R23)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from everlong.nodes.pruning import EVICTED
from everlong.nodes.transcript import is_summary
from everlong.stores import compactions
from orders import ROUNDS, SMALL, answering
from scripted_model import ScriptedModel, asks_for_summary, calling

ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "and now?"}]}
COMPACT: dict[str, Any] = {"request": {"compact": True}}


class SlowSaver(InMemorySaver):
    """Takes its time to write, as a database under load does."""

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0.05)
        return await super().aput(*args, **kwargs)


class UnreadableSaver(InMemorySaver):
    """Cannot be read while a run goes on."""

    broken = False

    async def aget_tuple(self, config: Any) -> Any:
        if self.broken and "checkpoint_id" in config["configurable"]:
            msg = "no connection"
            raise OSError(msg)
        return await super().aget_tuple(config)


@tool
def export(size: int) -> str:
    """Export the table."""
    return "x" * size


async def follow(talk: Any, given: Any, durability: Any = "async", **options: Any) -> list[Any]:
    """Run a call; return each custom event with the state as it is read when the event comes."""
    running = talk.graph.astream(
        given,
        talk.config,
        context=talk.context,
        stream_mode="custom",
        durability=durability,
        **options,
    )
    return [(event, await talk.values()) async for event in running]


def of_type(seen: list[Any], kind: str) -> list[Any]:
    return [(event, state) for event, state in seen if event["type"] == kind]


def spoken(state: Any) -> list[BaseMessage]:
    return [message for message in state["messages"] if message.type != "system"]


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("trigger", ["messages", "overflow", "manual"])
async def test_an_end_is_told_when_the_state_holds_it(converse, durability, trigger):
    refusals = iter([ContextOverflowError("too long")] if trigger == "overflow" else [])

    def script(messages):
        return next(refusals, "the answer")

    talk = converse(
        model=ScriptedModel(script=script),
        summary_model=ScriptedModel(script=["They spoke of orders."]),
        compaction=SMALL | {"trigger_messages": 6 if trigger == "messages" else 0},
    )
    await talk.seed(ROUNDS)
    seen = await follow(talk, COMPACT if trigger == "manual" else ASK, durability)
    (started, before), (finished, after) = seen
    count = 10 if trigger == "manual" else 11
    assert started == {
        "type": "compaction.started",
        "trigger": trigger,
        "messages": count,
        "tokens": finished["tokens_before"],
    }
    assert len(spoken(before)) == count
    assert finished["type"] == "compaction.finished"
    assert (finished["outcome"], finished["trigger"]) == ("done", trigger)
    assert (finished["messages_before"], finished["messages_after"]) == (count, 3)
    assert finished["tokens_after"] < finished["tokens_before"]
    assert after["compaction"]["id"] == finished["id"]
    assert is_summary(spoken(after)[0])
    assert {message.id for message in spoken(after)} & {"h0", "a0", "h3"} == set()
    record = await compactions.find(talk.store, "kim", "thread-1", finished["id"])
    assert record is not None
    assert record["outcome"] == "done"


@pytest.mark.parametrize(
    ("summary", "outcome"), [("", "refused"), (RuntimeError("401 bad key"), "failed")]
)
async def test_an_attempt_that_changes_nothing_is_told_with_its_outcome(converse, summary, outcome):
    talk = converse(
        model=answering(), summary_model=ScriptedModel(script=[summary]), compaction=SMALL
    )
    await talk.seed(ROUNDS)
    (started, _), (finished, state) = await follow(talk, ASK)
    assert started["type"] == "compaction.started"
    assert (finished["type"], finished["outcome"]) == ("compaction.finished", outcome)
    assert finished["reason"]
    assert finished["messages_before"] == finished["messages_after"] == 11
    assert state["compaction"]["outcome"] == outcome


async def test_a_compaction_with_nothing_to_replace_says_so_and_is_told_once(converse):
    talk = converse(model=answering(), compaction={"keep_messages": 20})
    await talk.seed(ROUNDS[:4])
    ((finished, state),) = await follow(talk, COMPACT)
    assert (finished["type"], finished["outcome"]) == ("compaction.finished", "nothing to replace")
    assert len(spoken(state)) == 4


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_a_move_is_told_when_the_state_holds_the_preview(converse, durability):
    def script(messages):
        return "read" if messages[-1].type == "tool" else calling(("export", {"size": 90_000}))

    talk = converse(model=ScriptedModel(script=script), tools=[export])
    ((event, state),) = await follow(talk, ASK, durability)
    assert (event["type"], event["chars"]) == ("eviction", 90_000)
    moved = next(message for message in state["messages"] if message.id == event["message"])
    assert moved.additional_kwargs[EVICTED] == {"path": event["path"], "chars": 90_000}
    assert event["path"] in moved.text


async def test_a_move_and_a_compaction_of_one_call_are_told_in_order(converse):
    def script(messages):
        if asks_for_summary(messages):
            return "They exported."
        return "read" if messages[-1].type == "tool" else calling(("export", {"size": 90_000}))

    talk = converse(
        model=ScriptedModel(script=script),
        tools=[export],
        compaction=SMALL | {"trigger_messages": 13},
    )
    await talk.seed(ROUNDS)
    seen = await follow(talk, ASK)
    kinds = [event["type"] for event, _ in seen]
    assert kinds == ["eviction", "compaction.started", "compaction.finished"]
    (_, moved), _, (_, compacted) = seen
    assert "90,000" in spoken(moved)[-1].text
    assert is_summary(spoken(compacted)[0])


async def test_a_writer_that_is_slow_is_waited_for(converse):
    talk = converse(model=answering(), compaction=SMALL)
    talk.saver = SlowSaver()
    talk.use_store(talk.store)
    await talk.seed(ROUNDS)
    for given in (ASK, COMPACT):
        ((_, state),) = of_type(await follow(talk, given), "compaction.finished")
        assert is_summary(spoken(state)[0])


async def test_a_state_that_cannot_be_read_back_ends_no_call_and_is_made_up_for(converse):
    talk = converse(model=answering(), compaction=SMALL)
    talk.saver = UnreadableSaver()
    talk.use_store(talk.store)
    await talk.seed(ROUNDS)
    talk.saver.broken = True
    seen = await follow(talk, ASK)
    talk.saver.broken = False
    assert [event["outcome"] for event, _ in of_type(seen, "compaction.finished")] == ["done"]
    (record,) = await compactions.read(talk.store, "kim", "thread-1")
    assert record["outcome"] == "begun"
    assert await follow(talk, ASK) == []
    (record,) = await compactions.read(talk.store, "kim", "thread-1")
    assert record["outcome"] == "done"


@pytest.mark.parametrize("given", [ASK, COMPACT], ids=["automatic", "forced"])
async def test_a_run_that_writes_only_at_its_end_tells_and_completes_its_record_later(
    converse, given
):
    talk = converse(model=answering(), compaction=SMALL)
    await talk.seed(ROUNDS)
    seen = await follow(talk, given, "exit")
    assert [event["type"] for event, _ in seen] == ["compaction.started", "compaction.finished"]
    (record,) = await compactions.read(talk.store, "kim", "thread-1")
    assert record["outcome"] == "begun"
    await follow(talk, ASK)
    (record, *_) = await compactions.read(talk.store, "kim", "thread-1")
    assert record["outcome"] == "done"


async def test_ainvoke_gives_the_same_events(converse):
    talk = converse(model=answering(), compaction=SMALL)
    await talk.seed(ROUNDS)
    events = await talk.graph.ainvoke(ASK, talk.config, context=talk.context, stream_mode="custom")
    assert [event["type"] for event in events] == ["compaction.started", "compaction.finished"]


async def test_a_provider_that_refuses_twice_comes_after_the_end_that_was_told(converse):
    talk = converse(
        model=ScriptedModel(script=[ContextOverflowError("too long"), ContextOverflowError("no")]),
        summary_model=ScriptedModel(script=["Orders."]),
        compaction=SMALL | {"trigger_messages": 0},
    )
    await talk.seed(ROUNDS)
    with pytest.raises(ContextOverflowError, match="no"):
        await talk.send(ASK)
    assert talk.event_types() == ["compaction.started", "compaction.finished"]
    talk.context = talk.context.model_copy(update={"model": answering()})
    assert await talk.say("again?") == "ok"
    assert talk.event_types().count("compaction.finished") == 1


async def test_a_parent_graph_streams_the_events_and_none_of_the_inner_words(converse):
    talk = converse(model=answering("SUMMARY-TOKEN"), compaction=SMALL)
    agent = talk.graph.builder.compile()

    async def ask(state: MessagesState) -> Any:
        answered = await agent.ainvoke(state, context=talk.context)
        return {"messages": answered["messages"][-1:]}

    parent = (
        StateGraph(MessagesState)
        .add_node("ask", ask)
        .add_edge(START, "ask")
        .add_edge("ask", END)
        .compile(checkpointer=talk.saver, store=talk.store)
    )
    parts = [
        part
        async for part in parent.astream(
            {"messages": [*ROUNDS, HumanMessage("and now?", id="new")]},
            {"configurable": {"thread_id": "parent"}},
            stream_mode=["custom", "messages"],
            subgraphs=True,
        )
    ]
    custom = [part["type"] for _, mode, part in parts if mode == "custom"]
    assert custom == ["compaction.started", "compaction.finished"]
    words = [part[0].text for _, mode, part in parts if mode == "messages"]
    assert "ok" in words
    assert not any("SUMMARY-TOKEN" in word for word in words)


async def test_what_is_told_is_no_longer_in_the_state(converse: Callable[..., Any]):
    talk = converse(model=answering(), compaction=SMALL)
    await talk.seed(ROUNDS)
    await talk.compact()
    assert "to_tell" not in (await talk.values())["call"]
    await talk.seed(ROUNDS)
    await talk.say("and now?")
    assert "to_tell" not in (await talk.values())["call"]
