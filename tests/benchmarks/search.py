"""How fast a search is, and how much faster than reading what it searches.

    python tests/benchmarks/search.py --entries 100000 --all 1000000 --searches 300 [--dsn DSN]

One user has so many ledger entries and as many messages, all users together `--all` of both kinds.
Everything is in one database and one run: ratios hold on any machine, milliseconds on this one.
Each search is done three times and the fastest counts, which leaves out what else the machine does;
`--repeats 1` leaves it in.
Without `--dsn` the database is an embedded one, which is gone afterwards.
"""

import argparse
import asyncio
import random
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from statistics import median, quantiles
from tempfile import mkdtemp
from typing import Any

import psycopg
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from psycopg.types.json import Jsonb

from everlong.stores import ledger, pages, transcript_search, transcripts
from everlong.stores.embedded import EmbeddedPostgres
from everlong.stores.entries import Entry, Fact, iso
from everlong.stores.namespaces import space
from everlong.stores.postgres import PostgresStore, migrate, open_pool
from everlong.stores.records import all_items

HEAVY = "heavy"
THREAD_MESSAGES = 500
BEGIN = datetime(2024, 1, 1, 8, tzinfo=UTC)
TOTALS = [1_000, 3_000, 10_000, 30_000]
"""Entries and messages of one other user."""
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
HAN = (
    "出口港口上海宁波客户订单发货集装箱提单报关检验付款合同价格交货仓库船期代理海关运费保险单证税率"
)


class Words:
    """Texts of made-up words, few of them common, with Chinese and order numbers among them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - any texts will do
        chosen = random.Random(1)  # noqa: S311
        self.words = ["".join(chosen.choices(SYLLABLES, k=n % 3 + 2)) for n in range(20_000)]
        self.weights = list(accumulate(1 / (n + 10) for n in range(len(self.words))))

    def some(self, count: int) -> list[str]:
        return self.random.choices(self.words, cum_weights=self.weights, k=count)

    def text(self) -> str:
        words = self.some(self.random.randint(6, 18))
        if self.random.random() < 0.4:
            words.insert(3, "".join(self.random.choices(HAN, k=8)))
        if self.random.random() < 0.2:
            words.insert(1, f"ORD-{self.random.randint(0, 999_999):06d}")
        return " ".join(words)

    def query(self, text: str) -> str:
        """Ask for some of a text's words, now and then with common ones."""
        words = text.split()
        asked = self.random.sample(words, k=min(len(words), self.random.randint(1, 4)))
        return " ".join([*asked, *self.some(self.random.randint(0, 2))])


def ledger_puts(user_id: str, count: int, words: Words) -> Iterator[PutOp]:
    """Yield the entries of a user who talks every few minutes by day."""
    when = BEGIN
    for number in range(count):
        when += timedelta(seconds=words.random.randint(60, 500))
        if when.hour >= 20:
            when = when.replace(hour=8) + timedelta(days=1)
        key = f"{when:%Y%m%dT%H%M%S%fZ}-{number:016x}"
        facts = tuple(
            Fact(words.text(), (f"m{number}",), key=f"{key}#{n}")
            for n in range(words.random.choice((1, 1, 2)))
        )
        yield ledger.put_of(
            user_id,
            Entry(
                key=key,
                kind="flush",
                day=f"{when:%Y-%m-%d}",
                at=iso(when),
                zone="UTC",
                facts=facts,
                sources=(f"m{number}",),
                thread_id=f"t{number // 100}",
                promoted=False,
            ),
        )


async def message_rows(user_id: str, count: int, words: Words) -> list[tuple[str, str, Any]]:
    """Return the rows of a user's threads, as `transcripts.append` makes them."""
    rows: list[tuple[str, str, Any]] = []
    for first in range(0, count, THREAD_MESSAGES):
        store = InMemoryStore()
        kinds = (HumanMessage, AIMessage)
        said = [
            kinds[n % 2](words.text(), id=f"m{first + n}")
            for n in range(min(THREAD_MESSAGES, count - first))
        ]
        thread_id = f"t{first // THREAD_MESSAGES}"
        await transcripts.append(store, user_id, thread_id, said, first=0, instant=iso(BEGIN))
        found = await store.asearch(space(user_id, "transcripts", thread_id), limit=10_000)
        rows += [(".".join(one.namespace), one.key, one.value) for one in found]
    return rows


async def load(dsn: str, user_id: str, count: int, words: Words) -> None:
    """Write so many entries and messages of a user."""
    puts = ledger_puts(user_id, count, words)
    rows = [(".".join(put.namespace), put.key, put.value) for put in puts]
    rows += await message_rows(user_id, count, words)
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        cursor = connection.cursor()
        async with cursor.copy("COPY store (prefix, key, value) FROM STDIN") as copy:
            for prefix, key, value in rows:
                await copy.write_row((prefix, key, Jsonb(value)))


async def fill(dsn: str, entries: int, everyone: int) -> None:
    """Write the one user's records, and those of others until there are so many in all."""
    await load(dsn, HEAVY, entries, Words(1))
    left, number = everyone - 2 * entries, 0
    while left > 0:
        size = min(TOTALS[number % len(TOTALS)], left)
        await load(dsn, f"user{number}", size // 2, Words(100 + number))
        left, number = left - size, number + 1


async def timed(action: Callable[[], Awaitable[Any]], repeats: int = 1) -> float:
    """Return how many milliseconds it takes, at best."""
    taken: list[float] = []
    for _ in range(repeats):
        begin = time.perf_counter()
        await action()
        taken.append((time.perf_counter() - begin) * 1_000)
    return min(taken)


async def measure(
    name: str,
    search: Callable[[str], Awaitable[Any]],
    queries: list[str],
    place: tuple[PostgresStore, tuple[str, ...]],
    repeats: int,
) -> None:
    """Print how long searches take, and reading what they search."""
    reading_ms = await timed(lambda: all_items(*place), repeats)
    for query in queries[:10]:
        await search(query)
    taken = [await timed(lambda query=query: search(query), repeats) for query in queries]
    p50, p95 = median(taken), quantiles(taken, n=20)[-1]
    print(
        f"{name:28} p50 {p50:6.1f} ms  p95 {p95:6.1f} ms  max {max(taken):6.1f} ms"
        f"  reading {reading_ms:7.0f} ms ={reading_ms / p50:5.0f} p50 ={reading_ms / p95:5.0f} p95",
        flush=True,
    )


def told(what: str, milliseconds: float) -> None:
    """Print a step."""
    print(f"{what:32} {milliseconds / 1_000:8.1f} s", flush=True)


async def run(dsn: str, args: argparse.Namespace) -> None:
    """Fill the database, index it and search."""
    await migrate(dsn)
    told("filling", await timed(lambda: fill(dsn, args.entries, args.all)))
    async with open_pool(dsn, size=4) as pool:
        store = PostgresStore(pool)
        for kind in ("ledger", "transcripts"):
            place = space(HEAVY, kind)
            told(f"first index of {kind}", await timed(lambda at=place: store.words.update(at)))
        told("index of all others", await timed(lambda: store.words.update(("users",))))
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            told("vacuum", await timed(lambda: connection.execute("VACUUM ANALYZE")))
        await searches(store, args)


async def searches(store: PostgresStore, args: argparse.Namespace) -> None:
    """Measure each kind of search, and reading what it searches."""
    words = Words(7)
    puts = ledger_puts(HEAVY, args.entries, Words(1))
    facts = [put.value["text"].replace("- ", "") for put in puts if put.value]
    asked = [words.query(text) for text in words.random.sample(facts, args.searches)]
    await measure(
        "memory_search",
        lambda q: pages.search(store, HEAVY, q),
        asked,
        (store, space(HEAVY, "ledger")),
        args.repeats,
    )
    said = [one.text for one in await transcripts.glance(store, HEAVY, "t0")]
    asked = [words.query(text) for text in words.random.choices(said, k=args.searches)]
    await measure(
        "session_search everywhere",
        lambda q: transcript_search.search_all(store, HEAVY, q),
        asked,
        (store, space(HEAVY, "transcripts")),
        args.repeats,
    )
    await measure(
        "session_search in a thread",
        lambda q: transcript_search.search_all(store, HEAVY, q, thread_id="t0"),
        asked,
        (store, space(HEAVY, "transcripts", "t0")),
        args.repeats,
    )


def main() -> None:
    """Run it as it was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--all", type=int, default=1_000_000)
    parser.add_argument("--searches", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dsn")
    args = parser.parse_args()
    if args.dsn:
        asyncio.run(run(args.dsn, args))
        return
    home = Path(mkdtemp(prefix="everlong-search-"))
    home.chmod(0o755)  # where root runs it, the server is somebody else
    try:
        with EmbeddedPostgres(home / "home", settings={"fsync": "off"}) as dsn:
            asyncio.run(run(dsn, args))
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
