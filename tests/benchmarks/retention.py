"""What a long thread costs in Postgres, table by table: bytes and rows per call, and what stays.

    python tests/benchmarks/retention.py --rounds 10000            # plain rounds, memory off
    python tests/benchmarks/retention.py --rounds 300 --memory     # a flush in each call
    python tests/benchmarks/retention.py --rounds 300 --tools 2    # so many tool rounds in each

It runs on a database of its own in an embedded server, with a model of its own, which answers at
once. `EVERLONG_CHECKPOINTS_KEPT` and all other settings are taken as they are.
"""

import argparse
import asyncio
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from psycopg.rows import dict_row

from everlong.graph.runtime import Agent, open_agent
from everlong.nodes.context import Context
from everlong.stores.embedded import EmbeddedPostgres
from everlong.stores.postgres import open_stores

CHECKPOINTS = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "checkpoint_messages")
SAID = "What is the state of order {number}, and when does it leave the port? " * 3
ANSWER = "Order {number} is in the yard; it leaves on Friday with the next feeder. " * 8
COLUMNS = (
    "SELECT relname AS name, n_tup_ins AS inserted, n_tup_del AS deleted,"
    " pg_total_relation_size(relid) AS file FROM pg_stat_user_tables ORDER BY relname"
)


class Clerk(BaseChatModel):
    """Answers at once: facts to a flush, a summary to a compaction, calls where it is told to."""

    rounds: int = 0

    @property
    def _llm_type(self) -> str:
        return "clerk"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        last = messages[-1].text
        number = sum(1 for one in messages if isinstance(one, HumanMessage))
        if "<ledger>" in last:
            return AIMessage("# Orders\n- The user asks for orders that leave the port.")
        if "NO_REPLY" in last:
            asked = re.findall(r"order (\d+)", last)
            return AIMessage(f"- Order {asked[-1]} was asked for." if asked else "NO_REPLY")
        if "<conversation>" in last or "summar" in last.lower():
            return AIMessage("## SESSION INTENT\nOrders.\n## SUMMARY\nMany orders were asked for.")
        done = 0
        for one in reversed(messages):
            if isinstance(one, HumanMessage):
                break
            done += one.type == "tool"
        if done < self.rounds:
            call = {"name": "look", "args": {"order": str(number)}, "id": f"c{len(messages)}"}
            return AIMessage("", tool_calls=[call])
        return AIMessage(ANSWER.format(number=number))


def look(order: str) -> str:
    """Look an order up."""
    return f"Order {order}: " + "in the yard, row 7, slot 12; " * 30


async def main() -> None:
    """Run the rounds, and print what they cost."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--rounds", type=int, default=1_000)
    given.add_argument("--tools", type=int, default=0)
    given.add_argument("--memory", action="store_true")
    options = given.parse_args()
    with tempfile.TemporaryDirectory(prefix="everlong-bench-") as folder:
        Path(folder).chmod(0o755)  # noqa: ASYNC240 - before anything runs
        with EmbeddedPostgres(Path(folder) / "home") as dsn:
            async with open_agent(tools=[look], mcp={}, dsn=dsn) as agent:
                await _measure(agent, dsn, options)


async def _measure(agent: Agent, dsn: str, options: argparse.Namespace) -> None:
    context = Context(
        user_id="bench",
        model=Clerk(rounds=options.tools),
        memory={"enabled": options.memory, "consolidate": "on_request"},
        compaction={"window_tokens": 128_000, "flush_before": False},
    )
    config = {"configurable": {"thread_id": "t1"}}
    times: list[float] = []
    every = max(options.rounds // 10, 1)
    print(
        f"{'round':>7} {'ms p50':>7} {'ms p99':>7} {'live checkpoint bytes':>22} {'rows':>6}"
        f" {'bytes of files':>15}"
    )
    wal = await _wal(dsn)
    for number in range(1, options.rounds + 1):
        began = time.perf_counter()
        said = {"messages": [{"role": "user", "content": SAID.format(number=number)}]}
        await agent.ainvoke(said, config, context=context)
        times.append((time.perf_counter() - began) * 1_000)
        if number % every == 0 or number == options.rounds:
            await _tell(dsn, number, times[-every:])
    print(f"\nWAL per call: {(await _wal(dsn) - wal) / options.rounds:,.0f} bytes")
    await _table(dsn, options.rounds)
    async with open_stores(dsn, pool_size=2) as stores:
        await stores.saver.keep_newest("t1", kept=1)
    live = await _live(dsn)
    at_rest = ", ".join(f"`{name}` {live[name][1]:,}" for name in CHECKPOINTS)
    print(
        f"\nat rest, live bytes: {at_rest}; {sum(live[name][1] for name in CHECKPOINTS):,} in all"
    )


async def _tell(dsn: str, number: int, times: Sequence[float]) -> None:
    live = await _live(dsn)
    size = sum(live[name][1] for name in CHECKPOINTS)
    rows = sum(live[name][0] for name in CHECKPOINTS)
    half, most = statistics.median(times), sorted(times)[int(len(times) * 0.99)]
    files = await _files(dsn)
    print(f"{number:>7} {half:>7.1f} {most:>7.1f} {size:>22,} {rows:>6} {files:>15,}", flush=True)


async def _table(dsn: str, rounds: int) -> None:
    live = await _live(dsn)
    async with await psycopg.AsyncConnection.connect(dsn, row_factory=dict_row) as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        await asyncio.sleep(1)
        found = await (await connection.execute(COLUMNS)).fetchall()
    print("\n| table | rows written per call | live rows | live bytes | file bytes |")
    print("|---|---|---|---|---|")
    for row in found:
        count, size = live.get(row["name"], (0, 0))
        if row["inserted"]:
            per = row["inserted"] / rounds
            print(f"| `{row['name']}` | {per:.2f} | {count:,} | {size:,} | {row['file']:,} |")
    kinds = [f"`{kind}`: {n:,} rows, {size:,} bytes" for kind, n, size in await _kinds(dsn)]
    print("\nof `store`, live: " + "; ".join(kinds))


async def _live(dsn: str) -> dict[str, tuple[int, int]]:
    """Return how many rows are live in each table, and how many bytes they take, compressed."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        names = await (
            await connection.execute("SELECT relname FROM pg_stat_user_tables")
        ).fetchall()
        found: dict[str, tuple[int, int]] = {}
        for (name,) in names:
            query = f"SELECT count(*), coalesce(sum(pg_column_size(t.*)), 0) FROM {name} t"  # noqa: S608 - a table's name
            count, size = (await (await connection.execute(query)).fetchone()) or (0, 0)
            found[name] = int(count), int(size)
        return found


async def _files(dsn: str) -> int:
    """Return what the checkpoint tables take on the disk, with indexes and dead rows."""
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        query = "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name"
        row = await (await connection.execute(query, [list(CHECKPOINTS)])).fetchone()
        return int((row or (0,))[0])


async def _wal(dsn: str) -> int:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        query = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint"
        return int(((await (await connection.execute(query)).fetchone()) or (0,))[0])


async def _kinds(dsn: str) -> list[tuple[str, int, int]]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        query = (
            "SELECT split_part(prefix, '.', 3), count(*), sum(pg_column_size(store.*))"
            " FROM store GROUP BY 1 ORDER BY 1"
        )
        return [
            (k, n, int(size)) for k, n, size in await (await connection.execute(query)).fetchall()
        ]


if __name__ == "__main__":
    asyncio.run(main())
