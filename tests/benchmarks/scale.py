"""What many users cost one Postgres: its CPU, its WAL, its transactions and its room, per call.

    python tests/benchmarks/scale.py --users 200 --calls 5             # one thread each
    python tests/benchmarks/scale.py --users 100 --calls 5 --tools 2   # so many tool rounds in each
    python tests/benchmarks/scale.py --users 20 --calls 10 --threads 10  # what a sweep costs

The calls and their model are those of `retention.py`, with a flush in each, on an embedded
server.
CPU is that of the server's processes alone: what a core carries, whoever else uses the machine.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
from retention import SAID, Clerk, look

from everlong.graph.agent import utc_now
from everlong.graph.runtime import Agent, open_agent
from everlong.graph.sweeping import Broom, Swept, sweep_user
from everlong.nodes.context import Context
from everlong.stores.embedded import EmbeddedPostgres
from everlong.stores.postgres import open_stores

AT_WORK = """SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint,
    (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())"""
ROOM = """SELECT relname, n_tup_ins, pg_table_size(relid), pg_indexes_size(relid)
    FROM pg_stat_user_tables WHERE n_tup_ins > 50 ORDER BY relname"""
TICKS = os.sysconf("SC_CLK_TCK")


def server_cpu(backend: int) -> float:
    """Return the CPU seconds of the server that a backend belongs to, with those that are gone."""
    server = int(_stat(backend)[1])
    total = sum(map(int, _stat(server)[11:15]))
    for one in Path("/proc").glob("[0-9]*"):
        try:
            found = _stat(int(one.name))
        except OSError:
            continue
        total += sum(map(int, found[11:13])) if int(found[1]) == server else 0
    return total / TICKS


def _stat(process: int) -> list[str]:
    return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(") ")[2].split()


async def costs(dsn: str, what: str, count: int, action: Callable[[], Awaitable[Any]]) -> None:
    """Do something, and print what each of `count` took."""
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        backend = connection.info.backend_pid
        before, cpu = await _row(connection), server_cpu(backend)
        own, began = time.process_time(), time.perf_counter()
        await action()
        took, own = time.perf_counter() - began, time.process_time() - own
        cpu = server_cpu(backend) - cpu
        await asyncio.sleep(1.2)  # the server's counters come late
        after = await _row(connection)
    wal, commits = ((b - a) / count for a, b in zip(before, after, strict=True))
    print(
        f"{what}: {count / took:.1f}/s; each: server CPU {cpu / count * 1e3:.2f} ms, own CPU"
        f" {own / count * 1e3:.1f} ms, WAL {wal:,.0f} bytes, {commits:.1f} transactions",
        flush=True,
    )


async def _row(connection: psycopg.AsyncConnection) -> tuple[int, int]:
    await connection.execute("SELECT pg_stat_force_next_flush()")
    row = await (await connection.execute(AT_WORK)).fetchone()
    return (int(row[0]), int(row[1])) if row else (0, 0)


async def talk(agent: Agent, options: argparse.Namespace, begin: int) -> None:
    """Let every user make the calls, in a thread of their own, some users at once."""
    room = asyncio.Semaphore(options.at_once)

    async def one(user: int) -> None:
        context = Context(
            user_id=f"user{user}",
            model=Clerk(rounds=options.tools),
            memory={"consolidate": "on_request"},
            compaction={"window_tokens": 128_000, "flush_before": False},
        )
        for number in range(begin, begin + options.calls):
            said = {"messages": [{"role": "user", "content": SAID.format(number=number)}]}
            async with room:
                thread = f"t{user}-{number % options.threads}"
                await agent.ainvoke(said, {"configurable": {"thread_id": thread}}, context=context)

    await asyncio.gather(*(one(user) for user in range(options.users)))


async def run(dsn: str, options: argparse.Namespace) -> None:
    """Make the calls twice, index and sweep, and print the costs of each."""
    calls = options.users * options.calls
    async with open_agent(tools=[look], mcp={}, dsn=dsn) as agent:
        await costs(dsn, "first calls", calls, lambda: talk(agent, options, 1))
        await costs(dsn, "calls", calls, lambda: talk(agent, options, options.calls + 1))
    async with open_stores(dsn, pool_size=8) as stores:
        words = stores.store.words
        await costs(dsn, "calls indexed", 2 * calls, lambda: words.update(("users",)))
        broom = Broom(stores=stores, context=Context(user_id="-"), clock=utc_now)

        async def sweep() -> None:
            for user in range(options.users):
                await sweep_user(broom, f"user{user}", Swept())

        await costs(dsn, "users swept", options.users, sweep)
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        for name, rows, table, index in await (await connection.execute(ROOM)).fetchall():
            print(f"{name}: per call {rows / calls / 2:.2f} rows written; ", end="")
            print(f"{table / calls / 2:,.0f} bytes of table, {index / calls / 2:,.0f} of indexes")


def main() -> None:
    """Run it as it was asked for."""
    given = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    given.add_argument("--users", type=int, default=200)
    given.add_argument("--calls", type=int, default=5)
    given.add_argument("--tools", type=int, default=0)
    given.add_argument("--threads", type=int, default=1)
    given.add_argument("--at-once", type=int, default=8)
    options = given.parse_args()
    with tempfile.TemporaryDirectory(prefix="everlong-bench-") as folder:
        Path(folder).chmod(0o755)
        with EmbeddedPostgres(Path(folder) / "home") as dsn:
            asyncio.run(run(dsn, options))


if __name__ == "__main__":
    main()
