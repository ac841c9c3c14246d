"""Forgetting a user leaves nothing in any table, and nothing is written again (R49)."""

import asyncio

import psycopg
import pytest
from langchain_core.tools import tool
from langgraph.types import interrupt

from cli_process import everlong
from everlong.graph import forgetting
from everlong.graph.runtime import open_agent
from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError
from everlong.stores import ledger, transcript_search, transcripts
from everlong.stores.entries import Fact
from everlong.stores.tombstones import UserForgottenError
from everlong.stores.traces import traces
from scripted_model import ScriptedModel, calling

SECRET = "the-heron-9174"  # noqa: S105 - looked for in every table
NEIGHBOURS = ("kimo", "kim_1", "ki", "../kim", "Kim")


@tool
def long_report() -> str:
    """Return more than a history holds."""
    return f"{SECRET} " * 10_000


@tool
def approve() -> str:
    """Wait for a person."""
    return str(interrupt("may I?"))


TOOLS = (long_report, approve)


def script(messages):
    last = messages[-1]
    if "NO_REPLY" in last.text:
        return f"- the code is {SECRET}"
    if "<ledger>" in last.text:
        return f"# Codes\n- the code is {SECRET}"
    if last.type == "human" and "report" in last.text:
        return calling(("long_report", {}))
    if last.type == "human" and "approve" in last.text:
        return calling(("approve", {}), ("long_report", {}), prefix=f"a{len(messages)}")
    return f"Noted {SECRET}."


def context(user_id, **more):
    settings = {"compaction": {"trigger_messages": 6, "keep_messages": 2}} | more
    given = {"user_id": user_id, "model": ScriptedModel(script=script)}
    return Context.model_validate(given | settings)


async def say(agent, thread_id, text, settings):
    given = {"messages": [{"role": "user", "content": text}]}
    await agent.ainvoke(given, {"configurable": {"thread_id": thread_id}}, context=settings)


async def live(agent, user_id, prefix=""):
    """Leave a trace of every kind."""
    on, off = context(user_id), context(user_id, transcript=False, memory={"enabled": False})
    for text in (f"code {SECRET}", "report", "and?", "thanks", "bye"):
        await say(agent, f"{prefix}plain", text, on)
    await say(agent, f"{prefix}without a transcript", f"code {SECRET}", off)
    await say(agent, f"{prefix}waiting", "approve", on)
    background = context(user_id, memory={"flush_mode": "background"})
    await say(agent, f"{prefix}later", f"code {SECRET}", background)


async def words_in(dsn, text):
    """Return how many rows of each table hold a text, in whatever column."""
    found = {}
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        cursor = await connection.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = 'public'"
        )
        for table, column, kind in await cursor.fetchall():
            held = (
                f"position(%s::bytea IN {column})"
                if kind == "bytea"
                else f"strpos({column}::text, %s)"
            )
            needle = text.encode() if kind == "bytea" else text
            query = f"SELECT count(*) FROM {table} WHERE {held} > 0"  # noqa: S608 - our own tables
            rows = await (await connection.execute(query, (needle,))).fetchall()
            if rows[0][0]:
                found[f"{table}.{column}"] = rows[0][0]
    return found


async def left_of(dsn, user_id, threads=()):
    return {one.table: one.rows for one in await traces(dsn, user_id, threads) if one.rows}


@pytest.fixture
async def agent(dsn):
    async with open_agent(tools=TOOLS, dsn=dsn) as agent:
        yield agent


async def test_nothing_is_left_in_any_table(agent, dsn):
    await live(agent, "kim")
    before = await left_of(dsn, "kim", ["plain"])
    assert {"store", "checkpoints", "checkpoint_blobs", "checkpoint_messages"} <= set(before)
    await transcript_search.search_all(agent.store, "kim", SECRET)  # indexes
    done = await forgetting.forget_user(agent, "kim")
    assert done.threads == ("later", "plain", "waiting", "without a transcript")
    assert done.left == 0
    assert done.records > 20
    assert await left_of(dsn, "kim", done.threads) == {}
    assert await words_in(dsn, SECRET) == {}


async def test_neighbours_keep_everything(agent, dsn):
    for number, user_id in enumerate(NEIGHBOURS):
        await say(agent, f"t{number}", f"code {SECRET}", context(user_id))
    before = {user_id: await left_of(dsn, user_id) for user_id in NEIGHBOURS}
    await live(agent, "kim", "kims ")
    done = await forgetting.forget_user(agent, "kim")
    assert await left_of(dsn, "kim", done.threads) == {}
    assert {user_id: await left_of(dsn, user_id) for user_id in NEIGHBOURS} == before
    for number, user_id in enumerate(NEIGHBOURS):
        await say(agent, f"t{number}", "and?", context(user_id))


async def test_a_thread_is_found_whose_first_call_was_cut_off(agent, dsn):
    given = {"messages": [{"role": "assistant", "content": SECRET}]}
    with pytest.raises(InvalidInputError, match="nothing to answer"):
        await agent.ainvoke(given, {"configurable": {"thread_id": "t"}}, context=context("kim"))
    assert (await left_of(dsn, "kim"))["checkpoints"]
    done = await forgetting.forget_user(agent, "kim")
    assert done.threads == ("t",)
    assert await words_in(dsn, SECRET) == {}


async def test_another_users_words_that_happen_to_be_the_id_are_theirs(agent, dsn):
    model = ScriptedModel(script=lambda asked: "- kim" if "NO_REPLY" in asked[-1].text else "kim")
    await say(agent, "t", "kim", context("eve", model=model))
    await ledger.append(
        agent.store,
        "eve",
        "save",
        [Fact("kim")],
        instant="2026-03-09T12:00:00Z",
        zone="UTC",
        thread_id="kim",
        sources=[],
    )
    assert {"checkpoint_messages.blob", "store.value"} <= set(await words_in(dsn, "kim"))
    assert await left_of(dsn, "kim") == {}


async def test_an_id_that_is_another_users_thread_by_now_is_left_to_them(agent, dsn):
    await say(agent, "shared", f"code {SECRET}", context("kim"))
    await agent.graph.checkpointer.adelete_thread("shared")
    await say(agent, "shared", "hello", context("eve"))
    before = await left_of(dsn, "eve")
    await forgetting.forget_user(agent, "kim")
    assert await left_of(dsn, "eve") == before
    await say(agent, "shared", "still there?", context("eve"))


async def test_the_id_is_refused_before_anything_is_written_until_it_is_allowed_again(agent, dsn):
    await say(agent, "t", "hello", context("kim"))
    await forgetting.forget_user(agent, "kim")
    with pytest.raises(InvalidInputError, match="--allow-again"):
        await say(agent, "t", "hello again", context("kim"))
    assert await left_of(dsn, "kim", ["t"]) == {}
    assert await forgetting.allow_again(agent, "kim")
    await say(agent, "t", "hello again", context("kim"))
    assert len(await transcripts.read(agent.store, "kim", "t")) == 2
    assert not await forgetting.allow_again(agent, "kim")


@pytest.mark.parametrize("where", ["answer", "flush"])
async def test_a_call_that_is_under_way_writes_no_more(agent, dsn, where):
    at_work, go_on = asyncio.Event(), asyncio.Event()

    class Waiting(ScriptedModel):
        async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
            if ("NO_REPLY" in messages[-1].text) == (where == "flush"):
                at_work.set()
                await go_on.wait()
            return await super()._agenerate(messages, stop, run_manager, **kwargs)

    settings = context("kim").model_copy(update={"model": Waiting(script=script)})
    running = asyncio.create_task(say(agent, "t", f"code {SECRET}", settings))
    await at_work.wait()
    await forgetting.forget_user(agent, "kim")
    go_on.set()
    with pytest.raises(UserForgottenError):
        await running
    assert await left_of(dsn, "kim", ["t"]) == {}
    assert await words_in(dsn, SECRET) == {}


async def test_a_late_worker_writes_nothing(agent, dsn):
    settings = context("kim", memory={"flush_mode": "background"})
    await say(agent, "t", f"code {SECRET}", settings)
    await forgetting.forget_user(agent, "kim")
    await agent.await_quiescence(20, user_id="kim")
    assert await left_of(dsn, "kim", ["t"]) == {}
    assert await ledger.entries(agent.store, "kim") == []


async def test_a_fact_that_is_forgotten_is_in_no_table_any_more(agent, dsn):
    await live(agent, "kim")
    await agent.await_quiescence(20, user_id="kim")
    await transcript_search.search_all(agent.store, "kim", SECRET)  # indexes
    assert {"store_words.words", "store.value"} <= set(await words_in(dsn, SECRET))
    done = await forgetting.forget(agent, "kim", SECRET)
    assert done.is_done
    assert done.swept.threads == 4
    assert await words_in(dsn, SECRET) == {}
    await say(agent, "plain", "and now?", context("kim"))
    resumed = await agent.aget_state({"configurable": {"thread_id": "waiting"}})
    assert resumed.interrupts


def test_the_command_asks_erases_and_proves(dsn):
    said = "Remember that our exports go through Shanghai port only.\n"
    on = ("--dsn", dsn)
    everlong("chat", "-u", "kim", "-t", "orders", *on, given=said)
    everlong("chat", "-u", "eve", "-t", "eves", *on, given=said)

    asked = everlong("forget-user", "kim", *on)
    assert asked.code == 1
    assert "kim has 1 thread; records: " in asked.out
    assert "--yes" in asked.err

    done = everlong("forget-user", "kim", "--yes", *on)
    assert done.code == 0, done.err
    assert "1 thread." in done.out
    assert "store 0 rows" in " ".join(done.out.split())
    assert "checkpoint_messages" in done.out
    assert "Nothing of kim is left" in done.out
    assert "orders" in done.err

    refused = everlong("chat", "-u", "kim", "-t", "orders", *on, given=said)
    assert refused.code == 1
    assert "--allow-again" in refused.err
    assert everlong("memory", "show", "-u", "eve", "--list", *on).out

    assert everlong("forget-user", "kim", "--allow-again", *on).code == 0
    assert everlong("forget-user", "kim", "--allow-again", *on).code == 1
    assert everlong("chat", "-u", "kim", "-t", "orders", *on, given=said).code == 0


def test_one_thing_is_forgotten_by_command(dsn):
    on = ("--user", "kim", "--dsn", dsn)
    given = "Remember that our exports go through Shanghai port only.\nRemember: I like tea.\n"
    everlong("chat", "-t", "orders", *on, given=given)
    assert everlong("memory", "forget", "umbrella", *on).code == 1
    asked = everlong("memory", "forget", "exports", *on)
    assert asked.code == 1
    assert "Shanghai" in asked.out
    assert everlong("memory", "search", "shanghai", *on).out
    done = everlong("memory", "forget", "exports", "--yes", *on)
    assert done.code == 0, done.err
    assert "Forgotten: 1 fact of the ledger" in done.out
    assert "checkpoints of 1 thread" in done.out
    assert everlong("memory", "search", "shanghai", *on).out == ""
    said = everlong("transcript", "-t", "orders", *on).out
    assert "Shanghai" not in said
    assert "tea" in said


def test_what_was_forgotten_may_be_told_again_once_that_is_allowed(dsn):
    on, chat = ("--user", "kim", "--dsn", dsn), ("chat", "-t", "t")
    told = "Remember that our exports go through Shanghai port only.\n"
    everlong(*chat, *on, given=told)
    assert everlong("memory", "forget", "exports", "--yes", *on).code == 0
    everlong(*chat, *on, given=told)
    assert everlong("memory", "search", "shanghai", *on).out == ""
    again = ("memory", "forget", "--allow-again", *on)
    assert everlong(*again, "we like tea").code == 1
    assert everlong(*again, "exports go through Shanghai port only").code == 0
    everlong(*chat, *on, given=told)
    assert "Shanghai" in everlong("memory", "search", "shanghai", *on).out


def test_a_mistyped_user_is_told_and_not_refused_later(dsn):
    done = everlong("forget-user", "kin", "--yes", "--dsn", dsn)
    assert done.code == 1
    assert "there is nothing of kin" in done.err
    assert everlong("chat", "-u", "kin", "-t", "t", "--dsn", dsn, given="hello\n").code == 0


def test_the_command_tells_of_other_tables_and_leaves_them(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (customer text)")
        connection.execute("INSERT INTO orders VALUES ('kim')")
    everlong("chat", "-u", "kim", "-t", "t", "--dsn", dsn, given="hello\n")
    done = everlong("forget-user", "kim", "--yes", "--dsn", dsn)
    assert done.code == 0
    assert "orders 1 row (not everlong's; left alone)" in " ".join(done.out.split())
