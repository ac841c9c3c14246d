"""Our middleware in langchain's `create_agent`: long-term memory, and who it is of."""

from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conftest import Backend
from everlong.graph.middleware import EverlongMiddleware
from everlong.nodes.context import Context
from everlong.stores import ledger, memory, transcripts
from foreign_graph import KIM, texts, thread, user
from scripted_model import ScriptedModel, asks_for_summary, calling, kind_of

DOCUMENT = "# About the user\n- The user's port is Shanghai."


def script(messages):
    """Remember a port, look it up or save it where that is asked for."""
    kind, text = kind_of(messages), messages[-1].text
    if kind == "flush":
        said = text.partition("<conversation>")[2]
        return "- [1] The user's port is Shanghai." if "port is Shanghai" in said else "NO_REPLY"
    if kind == "consolidation":
        return DOCUMENT
    if asks_for_summary(messages):
        return "A summary."
    if messages[-1].type == "tool":
        return text
    if text.startswith("which"):
        return calling(("memory_search", {"query": "port"}))
    if text.startswith("save"):
        return calling(("memory_save", {"content": "The user's colour is crimson."}))
    if text.startswith("forget"):
        return calling(("memory_forget", {"query": "port Shanghai"}))
    return "noted"


@pytest.fixture
def backend():
    """Keep all in memory; what Postgres makes of it, `test_middleware` asks."""
    return Backend(InMemorySaver(), InMemoryStore())


@pytest.fixture
def agent(backend):
    def make(model=None, *, settings=None, saver=None, **options):
        return create_agent(
            model or ScriptedModel(script=script),
            middleware=[EverlongMiddleware(settings)],
            checkpointer=saver or backend.saver,
            store=backend.store,
            **options,
        )

    return make


async def test_facts_go_to_the_ledger_then_to_the_document_then_into_every_request(agent, backend):
    model = ScriptedModel(script=script)
    graph = agent(model)
    await graph.ainvoke(user("my port is Shanghai"), thread(), context=KIM)
    (entry,) = await ledger.entries(backend.store, "kim")
    assert "Shanghai" in entry.text
    assert "Shanghai" in (await memory.read(backend.store, "kim")).text
    after = await graph.ainvoke(user("hello"), thread("t2"), context=KIM)
    sent = next(request for request in model.requests if request[-1].text == "hello")
    assert [message.name for message in sent] == [None, "__memory__", None]
    assert "The user's port is Shanghai." in sent[1].text
    assert texts(after["messages"]) == ["hello", "noted"]


async def test_nothing_is_flushed_twice_and_every_word_is_in_the_archive(agent, backend):
    model = ScriptedModel(script=script)
    for text in ("my port is Shanghai", "hello", "hello again"):
        await agent(model).ainvoke(user(text), thread(), context=KIM)
    flushes = [one[-1].text for one in model.requests if kind_of(one) == "flush"]
    assert ["my port is Shanghai" in one.partition("<conversation>")[2] for one in flushes] == [
        True,
        False,
        False,
    ]
    assert len(await ledger.entries(backend.store, "kim")) == 1
    archived = [entry.text for entry in await transcripts.read(backend.store, "kim", "t1")]
    assert archived == ["my port is Shanghai", "noted", "hello", "noted", "hello again", "noted"]


async def test_its_tools_read_and_save_and_nobody_elses_memory_is_seen(agent, backend):
    graph = agent(settings={"memory": {"consolidate": "on_request"}})
    await graph.ainvoke(user("my port is Shanghai"), thread(), context=KIM)
    found = await graph.ainvoke(user("which port?"), thread("t2"), context=KIM)
    assert "Source: memory/" in found["messages"][-1].text
    other = await graph.ainvoke(user("which port?"), thread("t3"), context={"user_id": "eve"})
    assert "Nothing is remembered" in other["messages"][-1].text
    saved = await graph.ainvoke(user("save it"), thread("t4"), context=KIM)
    assert saved["messages"][-1].text.startswith("Saved 1 fact.")
    assert len(await ledger.entries(backend.store, "kim")) == 2
    assert await ledger.entries(backend.store, "eve") == []


async def test_what_is_forgotten_is_struck_out_of_this_history_too(agent, backend):
    graph = agent(settings={"memory": {"consolidate": "on_request"}})
    await graph.ainvoke(user("my port is Shanghai"), thread(), context=KIM)
    after = await graph.ainvoke(user("forget my port"), thread(), context=KIM)
    assert after["messages"][-1].text.startswith("Forgotten:")
    assert not any("Shanghai" in text for text in texts(after["messages"]))
    assert not any("Shanghai" in e.text for e in await ledger.entries(backend.store, "kim"))


async def test_a_run_may_switch_memory_off_and_then_offers_no_tool_of_it(agent, backend):
    model = ScriptedModel(script=script)
    off = KIM | {"memory": {"enabled": False}}
    await agent(model).ainvoke(user("my port is Shanghai"), thread(), context=off)
    assert model.tools == [["read_stored", "list_files"]]
    assert await ledger.entries(backend.store, "kim") == []


async def test_without_a_store_it_compacts_and_offers_nothing_to_read():
    model = ScriptedModel(script=script)
    settings = {"compaction": {"trigger_messages": 4, "keep_messages": 1}}
    graph = create_agent(
        model, middleware=[EverlongMiddleware(settings)], checkpointer=InMemorySaver()
    )
    for text in ("one", "two", "three"):
        after = await graph.ainvoke(user(text), thread(), context=KIM)
    assert model.tools[0] == []
    assert "A summary." in after["messages"][0].text


@dataclass
class Tenant:
    """A context of the agent's own."""

    tenant: str
    user_id: str
    everlong: dict[str, Any]


@pytest.mark.parametrize(
    "given",
    [
        {"user_id": "kim", "compaction": {"trigger_messages": 4, "keep_messages": 1}},
        Context(user_id="kim", compaction={"trigger_messages": 4, "keep_messages": 1}),
        Tenant("t", "kim", {"compaction": {"trigger_messages": 4, "keep_messages": 1}}),
    ],
)
async def test_a_runs_context_overrides_the_middlewares_settings(agent, backend, given):
    schema = type(given) if isinstance(given, Tenant) else None
    quiet = {"memory": {"enabled": False}, "compaction": {"trigger_messages": 40}}
    graph = agent(settings=quiet, context_schema=schema)
    for text in ("one", "two", "three"):
        after = await graph.ainvoke(user(text), thread(), context=given)
    assert "A summary." in after["messages"][0].text
    assert await ledger.entries(backend.store, "kim") == []


async def test_a_user_may_be_fixed_for_an_agent_of_one_person():
    store = InMemoryStore()
    settings = {"user_id": "kim", "memory": {"consolidate": "on_request"}}
    graph = create_agent(
        ScriptedModel(script=script), middleware=[EverlongMiddleware(settings)], store=store
    )
    await graph.ainvoke(user("my port is Shanghai"))
    assert len(await ledger.entries(store, "kim")) == 1
