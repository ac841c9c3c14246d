"""The middleware and our nodes on LangGraph's own Postgres saver and store, and on ours."""

from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace

import pytest
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.postgres.aio import AsyncPostgresStore

from everlong.stores import files, ledger, transcripts
from everlong.stores.postgres import open_stores
from foreign_graph import KIM, SUMMARY, foreign, texts, thread, user
from invariants import check_pairs, check_summary
from langchain_agent import check_sent, maker
from scripted_model import ScriptedModel, asks_for_summary, calling, kind_of


def prices() -> str:
    """Return the whole price list."""
    return "a price\n" * 12_000


def script(messages):
    """Remember a port, ask for the prices where they are wanted, and sum up."""
    if kind_of(messages) == "flush":
        said = messages[-1].text.partition("<conversation>")[2]
        return "- [1] The user's port is Shanghai." if "port is Shanghai" in said else "NO_REPLY"
    if asks_for_summary(messages):
        return SUMMARY
    if messages[-1].text == "the prices?":
        return calling(("prices", {}))
    return f"{len(messages)} heard"


@asynccontextmanager
async def plain(dsn):
    async with AsyncExitStack() as held:
        saver = await held.enter_async_context(AsyncPostgresSaver.from_conn_string(dsn))
        store = await held.enter_async_context(AsyncPostgresStore.from_conn_string(dsn))
        await saver.setup()
        await store.setup()
        yield SimpleNamespace(saver=saver, store=store)


@pytest.mark.parametrize("opened", [plain, open_stores], ids=["plain", "ours"])
@pytest.mark.parametrize("kind", ["middleware", "nodes"])
async def test_a_conversation_goes_on_after_each_restart(fresh_dsn, kind, opened):
    memory = {"memory": {"consolidate": "on_request"}}
    said = ["my port is Shanghai", "the prices?", "three", "four", "five"]
    model = ScriptedModel(script=script)
    after, entries, facts, moved = {}, [], [], []
    for text in said:
        async with opened(fresh_dsn) as backend:
            if kind == "middleware":
                graph = maker(backend)(model, [prices], settings=memory)
            else:
                graph = foreign(backend, model, tools=[prices], **memory)
            after = await graph.ainvoke(user(text), thread(), context=KIM)
            check_pairs(after["messages"])
            entries = await transcripts.read(backend.store, "kim", "t1")
            facts = await ledger.entries(backend.store, "kim")
            moved = await files.list_paths(backend.store, "kim", "")
    check_sent(model)
    check_summary(after["messages"])
    assert SUMMARY in texts(after["messages"])[0]
    assert [entry.text for entry in entries if entry.role == "human"] == said
    assert (len(facts), len(moved)) == (1, 1)
