"""Threads of other agents on Postgres go on here, as docs/moving.md says."""

import pytest
from deepagents import create_deep_agent
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarization
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.types import Command, interrupt

from everlong.graph.middleware import EverlongMiddleware
from everlong.graph.runtime import open_agent
from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.models import chat_model
from everlong.stores import ledger, transcripts
from foreign_graph import KIM, SUMMARY, says, texts, thread, user
from invariants import check_summary
from scripted_model import ScriptedModel, asks_for_summary, calling, kind_of

THEIRS = "THEIR WORDS: the order is A-17"
SAID = ("my order is A-17", "two", "three", "four")
FEW = {"trigger_messages": 6, "keep_messages": 2}


def their_summary():
    return {
        "trigger": ("messages", 6),
        "keep": ("messages", 2),
        "summarizer": lambda _: THEIRS,
    }


@pytest.fixture
async def saver(fresh_dsn):
    async with AsyncPostgresSaver.from_conn_string(fresh_dsn) as plain:
        await plain.setup()
        yield plain


@pytest.fixture
async def langchains(saver):
    """A thread that langchain's middleware has compacted."""
    model = ScriptedModel(script=says)
    middleware = SummarizationMiddleware(model, **their_summary())
    agent = create_agent(model, middleware=[middleware], checkpointer=saver)
    after = {}
    for text in SAID:
        after = await agent.ainvoke(user(text), thread())
    assert THEIRS in texts(after["messages"])[0]
    return agent


async def test_our_agent_goes_on_with_a_thread_of_langchains_and_merges_its_summary(
    langchains, fresh_dsn
):
    model = ScriptedModel(script=says)
    async with open_agent(dsn=fresh_dsn) as agent:
        context = Context(user_id="kim", model=model, compaction=FEW | {"flush_before": False})
        for text in ("five", "six"):
            after = await agent.ainvoke(user(text), thread(), context=context)
        check_summary(after["messages"])
        asked = next(request for request in model.requests if asks_for_summary(request))
        assert any(THEIRS in text for text in texts(asked))
        flushed = [one for one in model.requests if kind_of(one) == "flush"]
        assert flushed
        assert not any(THEIRS in text for request in flushed for text in texts(request))
        archived = await transcripts.read(agent.store, "kim", "t1")
        assert [one.text for one in archived if one.role == "human"] == ["four", "five", "six"]
        with pytest.raises(InvalidInputError, match=r"`thread_id`: .*'eve'"):
            await agent.ainvoke(user("mine?"), thread(), context=Context(user_id="eve"))


async def test_langchains_agent_cannot_have_it_back_from_our_checkpointer(langchains, fresh_dsn):
    async with open_agent(dsn=fresh_dsn) as agent:
        await agent.ainvoke(user("five"), thread(), context=KIM | {"model": "offline"})
    with pytest.raises(NotImplementedError, match=r"everlong\.messages"):
        await langchains.ainvoke(user("six"), thread())


async def test_the_middleware_hands_a_thread_over_and_back_on_a_plain_checkpointer(
    langchains, saver, fresh_dsn
):
    async with AsyncPostgresStore.from_conn_string(fresh_dsn) as store:
        await store.setup()
        model = ScriptedModel(script=says)
        ours = create_agent(
            model,
            middleware=[EverlongMiddleware({"compaction": FEW})],
            checkpointer=saver,
            store=store,
        )
        for text in ("five", "six"):
            after = await ours.ainvoke(user(text), thread(), context=KIM)
        check_summary(after["messages"])
        back = await langchains.ainvoke(user("seven"), thread())
    assert texts(back["messages"])[-2] == "seven"
    assert SUMMARY in texts(after["messages"])[0]


async def test_a_thread_of_deepagents_is_compacted_from_its_own_messages(saver, fresh_dsn):
    model = ScriptedModel(script=says)
    theirs = DeepSummarization(model, backend=StateBackend(), **their_summary())
    deep = create_deep_agent(model, middleware=[theirs], checkpointer=saver)
    for text in SAID:
        await deep.ainvoke(user(text), thread())
    assert "_summarization_event" in (await deep.aget_state(thread())).values
    asked = ScriptedModel(script=says)
    async with open_agent(dsn=fresh_dsn) as agent:
        context = Context(user_id="kim", model=asked, compaction=FEW)
        after = await agent.ainvoke(user("five"), thread(), context=context)
    check_summary(after["messages"])
    summed = next(request for request in asked.requests if asks_for_summary(request))
    assert any(SAID[0] in text for text in texts(summed))
    assert not any(THEIRS in text for text in texts(summed))


async def test_a_call_that_waits_in_the_old_agent_is_closed_by_a_new_message(saver, fresh_dsn):
    def pay() -> str:
        """Pay."""
        return interrupt("sure?")

    model = ScriptedModel(script=[calling(("pay", {}))])
    paused = await create_agent(model, [pay], checkpointer=saver).ainvoke(user("pay"), thread())
    assert paused["__interrupt__"]
    async with open_agent(dsn=fresh_dsn, tools=[pay]) as agent:
        context = Context(user_id="kim", model=ScriptedModel(script=says))
        for resumed in (None, Command(resume="yes")):
            with pytest.raises(InvalidInputError, match="Send a new message"):
                await agent.ainvoke(resumed, thread(), context=context)
        after = await agent.ainvoke(user("never mind"), thread(), context=context)
        assert [one.type for one in after["messages"]] == ["human", "ai", "tool", "human", "ai"]
        assert "not answered" in texts(after["messages"])[2]
        assert not await ledger.entries(agent.store, "kim")


async def test_a_search_of_memory_names_its_source_on_a_store_with_one_connection(saver, fresh_dsn):
    async with AsyncPostgresStore.from_conn_string(fresh_dsn) as store:
        await store.setup()
        agent = create_agent(
            chat_model("offline"),
            middleware=[EverlongMiddleware()],
            checkpointer=saver,
            store=store,
        )
        await agent.ainvoke(user("Remember that my port is Shanghai."), thread(), context=KIM)
        call = user('Call memory_search {"query": "port"}.')
        after = await agent.ainvoke(call, thread("t2"), context=KIM)
        found = next(one for one in after["messages"] if one.type == "tool")
    assert "Source: memory/" in found.text
