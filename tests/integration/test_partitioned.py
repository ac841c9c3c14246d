"""The tables of a large database may be partitioned, as docs/scale.md shows it."""

import re
from pathlib import Path

import psycopg

from everlong.graph.runtime import open_agent
from everlong.nodes.context import Context
from everlong.stores.work_queue import open_records

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
OURS = {
    "store_work",
    "store_day",
    "store_same",
    "store_saved",
    "store_prefix_idx",
    "checkpoints_run",
}
CONFIG = {"configurable": {"thread_id": "t1"}}
INDEXES = "SELECT indexname FROM pg_indexes WHERE tablename IN ('store', 'checkpoints')"
HELD = "SELECT count(*), count(DISTINCT tableoid) FROM checkpoints"


async def say(dsn, *texts, **memory):
    """Say this in calls of one process, and return all messages."""
    context = Context(user_id="kim", model="offline", memory=memory)
    answer = {"messages": []}
    async with open_agent(dsn=dsn) as agent:
        for text in texts:
            said = {"messages": [{"role": "user", "content": text}]}
            answer = await agent.ainvoke(said, CONFIG, context=context)
        await agent.await_quiescence(30)
        assert await open_records(agent.store) == []
    return [one.text for one in answer["messages"]]


async def rows(dsn, query):
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        return await (await connection.execute(query)).fetchall()


async def partition(dsn):
    code = re.search(r"^```sql\n(DO .*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute(code[1].replace("63", "7").replace("64", "8"))


async def test_a_conversation_goes_on_when_its_tables_were_partitioned(dsn):
    await say(dsn, "Remember that our exports go through Shanghai port only.")
    await partition(dsn)
    later = [f"What about order PX-{number}?" for number in range(30)]
    await say(dsn, *later, flush_mode="background")
    texts = await say(dsn, "Which port do our exports use?")
    assert "Shanghai port" in texts[-1]
    assert {name for (name,) in await rows(dsn, INDEXES)} > OURS
    ((checkpoints, tables),) = await rows(dsn, HELD)
    assert checkpoints <= 20 + 25
    assert tables == 1
