"""The checkpointer on Postgres: each message once, and everything else as LangGraph's own."""

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph import START, MessagesState, StateGraph
from psycopg.rows import dict_row

from everlong.stores.checkpoints import PooledSaver
from everlong.stores.postgres import migrate, open_pool
from everlong.stores.pruned_saver import DELETE_RUNS
from everlong.stores.server import BY_RUN

CONFIG = {"configurable": {"thread_id": "t1"}}


@pytest.fixture
async def pool(dsn):
    async with open_pool(dsn, size=4) as opened:
        yield opened


def echo(saver):
    def answer(state):
        return {"messages": [AIMessage(f"heard {state['messages'][-1].text}")]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


async def said(graph, config=CONFIG):
    return [m.text for m in (await graph.aget_state(config)).values.get("messages", [])]


async def rows(dsn, table="checkpoint_messages"):
    async with await psycopg.AsyncConnection.connect(dsn, row_factory=dict_row) as connection:
        cursor = await connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - a table's name
        return await cursor.fetchall()


async def test_each_message_is_stored_once_and_read_back_as_it_was(pool, dsn):
    graph = echo(PooledSaver(pool))
    call = {"name": "look", "args": {"q": "Ōsaka"}, "id": "c1"}
    first = [
        HumanMessage("go", id="h1", name="kim", additional_kwargs={"pin": True}),
        AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s"}], tool_calls=[call]),
        ToolMessage("found", tool_call_id="c1", artifact={"rows": [1]}, status="error"),
        HumanMessage("one"),
    ]
    await graph.ainvoke({"messages": first}, CONFIG)
    for text in ("two", "three"):
        await graph.ainvoke({"messages": [("user", text)]}, CONFIG)
    assert len(await rows(dsn)) == 9
    again = echo(PooledSaver(pool))
    messages = (await again.aget_state(CONFIG)).values["messages"]
    assert messages[:3] == [
        first[0],
        messages[1],
        first[2].model_copy(update={"id": messages[2].id}),
    ]
    assert messages[1].content == first[1].content
    assert messages[1].tool_calls == first[1].tool_calls
    assert [m.text for m in messages[-2:]] == ["three", "heard three"]


async def test_history_forks_and_edits_are_as_ever(pool):
    graph = echo(PooledSaver(pool))
    await graph.ainvoke({"messages": [("user", "one")]}, CONFIG)
    await graph.ainvoke({"messages": [("user", "two")]}, CONFIG)
    history = [snapshot async for snapshot in graph.aget_state_history(CONFIG)]
    counts = [len(snapshot.values.get("messages", [])) for snapshot in history]
    assert counts == [4, 3, 2, 2, 1, 0]
    fork = next(s for s in history if len(s.values.get("messages", [])) == 2)
    await graph.ainvoke({"messages": [("user", "other")]}, fork.config)
    assert await said(graph) == ["one", "heard one", "other", "heard other"]
    ident = (await graph.aget_state(CONFIG)).values["messages"][0].id
    await graph.aupdate_state(CONFIG, {"messages": [RemoveMessage(ident)]})
    assert await said(graph) == ["heard one", "other", "heard other"]


async def test_a_message_that_changes_under_its_id_is_a_new_row(pool, dsn):
    graph = echo(PooledSaver(pool))
    await graph.ainvoke({"messages": [HumanMessage("long " * 99, id="h1")]}, CONFIG)
    before = len(await rows(dsn))
    await graph.aupdate_state(CONFIG, {"messages": [HumanMessage("short", id="h1")]})
    assert (await said(graph))[0] == "short"
    assert len(await rows(dsn)) == before + 1


async def test_deleting_a_thread_leaves_no_message_and_the_next_run_stores_anew(pool, dsn):
    saver = PooledSaver(pool)
    graph = echo(saver)
    given = {"messages": [HumanMessage("one", id="h1")]}
    await graph.ainvoke(given, CONFIG)
    await saver.adelete_thread("t1")
    assert await rows(dsn) == []
    await graph.ainvoke(given, CONFIG)
    assert await said(graph) == ["one", "heard one"]


async def test_a_thread_that_another_process_deleted_is_stored_anew(pool, dsn):
    graph, other = echo(PooledSaver(pool)), PooledSaver(pool)
    given = {"messages": [HumanMessage("one", id="h1")]}
    await graph.ainvoke(given, CONFIG)
    await other.adelete_thread("t1")
    await graph.ainvoke(given, CONFIG)
    assert await said(echo(PooledSaver(pool))) == ["one", "heard one"]


async def test_pruning_keeps_what_the_newest_checkpoint_needs_and_nothing_else(pool, dsn):
    saver = PooledSaver(pool)
    graph = echo(saver)
    for text in ("one", "two"):
        await graph.ainvoke({"messages": [("user", text)]}, CONFIG)
    ident = (await graph.aget_state(CONFIG)).values["messages"][0].id
    await graph.aupdate_state(CONFIG, {"messages": [RemoveMessage(ident)]})
    await saver.aprune(["t1"])
    assert await said(graph) == ["heard one", "two", "heard two"]
    assert len(await rows(dsn)) == 3
    await graph.ainvoke({"messages": [("user", "three")]}, CONFIG)
    assert (await said(graph))[-1] == "heard three"


async def test_threads_with_the_same_words_share_nothing(pool):
    saver = PooledSaver(pool)
    graph = echo(saver)
    same = {"messages": [HumanMessage("one", id="h1")]}
    other = {"configurable": {"thread_id": "t2"}}
    await graph.ainvoke(same, CONFIG)
    await graph.ainvoke(same, other)
    await saver.adelete_thread("t1")
    assert await said(graph, other) == ["one", "heard one"]


async def test_messages_that_are_gone_are_told_and_not_left_out(pool, dsn):
    graph = echo(PooledSaver(pool))
    await graph.ainvoke({"messages": [("user", "one")]}, CONFIG)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute("DELETE FROM checkpoint_messages")
    with pytest.raises(LookupError, match="2 messages of 2 gone"):
        await graph.aget_state(CONFIG)


async def test_a_rolled_back_run_is_gone_but_from_a_copy_of_its_thread(pool):
    saver = PooledSaver(pool)
    graph = echo(saver)
    await graph.ainvoke({"messages": [("user", "one")]}, CONFIG)
    run = {**CONFIG, "metadata": {"run_id": "r2"}}
    await graph.ainvoke({"messages": [("user", "two")]}, run)
    found = await saver.aget_tuple(CONFIG)
    other = {"configurable": {"thread_id": "t2", "checkpoint_ns": ""}}
    versions = found.checkpoint["channel_versions"]
    await saver.aput(other, found.checkpoint, found.metadata, versions)
    await saver.adelete_for_runs(["r2"])
    assert await said(graph) == ["one", "heard one"]
    assert await said(graph, other) == ["one", "heard one", "two", "heard two"]


async def test_a_runs_checkpoints_are_found_by_an_index(pool):
    async with pool.connection() as connection:
        await connection.execute("SET enable_seqscan = off")
        try:
            for query, given in ((DELETE_RUNS, {"runs": ["r1", "r2"]}), (BY_RUN, ["r1"])):
                plan = await connection.execute(f"EXPLAIN {query}", given)
                assert "on checkpoints_run" in str(await plan.fetchall())
        finally:
            await connection.execute("RESET enable_seqscan")


async def test_lone_nodes_store_no_write_that_the_next_checkpoint_holds(pool, dsn):
    await echo(PooledSaver(pool)).ainvoke({"messages": [("user", "one")]}, CONFIG)
    assert await rows(dsn, "checkpoint_writes") != []
    other = {"configurable": {"thread_id": "t2"}}
    before = len(await rows(dsn, "checkpoint_writes"))
    lone = PooledSaver(pool, lone_nodes={"__start__", "answer"})
    await echo(lone).ainvoke({"messages": [("user", "one")]}, other)
    assert len(await rows(dsn, "checkpoint_writes")) == before


async def test_many_threads_forget_the_oldest_and_stay_right(pool, monkeypatch):
    monkeypatch.setattr("everlong.stores.checkpoint_messages.MOST_REMEMBERED_THREADS", 2)
    graph = echo(PooledSaver(pool))
    threads = [{"configurable": {"thread_id": f"t{number}"}} for number in range(4)]
    for config in [*threads, *threads]:
        await graph.ainvoke({"messages": [("user", "hi")]}, config)
    for config in threads:
        assert await said(graph, config) == ["hi", "heard hi"] * 2


async def test_a_second_migration_changes_nothing(dsn):
    await migrate(dsn)
