"""What is remembered of kim in a database, and `everlong memory` on it."""

import asyncio
import json

from langchain_core.messages import HumanMessage

from cli_process import everlong
from everlong.stores import ledger, memory, transcripts
from everlong.stores.entries import Fact
from everlong.stores.postgres import open_stores

NOON = "2026-03-08T12:00:00Z"
LATER = "2026-03-09T12:00:00Z"
SHANGHAI = "Exports go through Shanghai port only, customer code ALPHA"
ASKED = "Our exports go through Shanghai port only, customer code ALPHA, please note it."
KIM = ("--user", "kim")


def with_store(dsn, work):
    """Run `work` on the database's store."""

    async def run():
        async with open_stores(dsn, pool_size=2) as stores:
            return await work(stores.store)

    return asyncio.run(run())


async def add(store, *facts, kind="flush", instant=NOON, user="kim"):
    sources = [fact.text for fact in facts]  # as if they had been read for it
    return await ledger.append(
        *(store, user, kind, facts), instant=instant, zone="UTC", thread_id="t1", sources=sources
    )


async def write(store, text, *consumed, instant=NOON):
    base = await memory.read(store, "kim")
    return await memory.write(
        *(store, "kim"),
        text=text,
        base=base,
        consumed=consumed,
        instant=instant,
        by="consolidation",
        origins={f"- {fact.text}": [fact.key] for entry in consumed for fact in entry.facts},
    )


async def seed(store):
    """Leave two versions of kim's MEMORY.md, and the words behind them."""
    said = [HumanMessage(ASKED, id="m0"), HumanMessage("Tea, not coffee.", id="m1")]
    await transcripts.append(store, "kim", "t1", said, first=0, instant=NOON)
    port = await add(store, Fact(SHANGHAI, ("m0",)))
    await write(store, f"# Trade\n\n- {SHANGHAI}", port)
    tea = await add(store, Fact("Drinks tea", ("m1",)), instant=LATER)
    await write(store, f"# Trade\n\n- {SHANGHAI}\n\n# Else\n\n- Drinks tea", tea, instant=LATER)


def on(dsn, *words, given="", **environment):
    command, *rest = words
    return everlong("memory", command, *KIM, "--dsn", dsn, *rest, given=given, **environment)


def data(dsn, *words):
    done = on(dsn, *words, "--json")
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def versions(dsn):
    return [one["version"] for one in data(dsn, "history")]


def shown(dsn):
    return on(dsn, "show").out.rstrip("\n")
