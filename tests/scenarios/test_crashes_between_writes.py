"""A crash between any two writes: the next run goes on, and ends where it would have ended."""

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage
from langgraph.store.base import PutOp

from background import facts_of
from everlong.graph.agent import build
from everlong.graph.worker import hands_on
from everlong.nodes.context import Context
from everlong.nodes.working import work_through
from everlong.stores import memory, transcripts, work_queue
from everlong.stores.postgres import open_stores
from everlong.stores.records import all_items
from power_cut import CutSaver, CutStore, Power
from scripted_model import ScriptedModel, calling, kind_of

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
DESK = "My desk is 3F-07."
SAID = ["My badge number is 5512.", f"Please remember: {DESK}", "My locker is L-881.", "Thanks."]
FACTS = {"badge number is": "- Badge number is 5512.", "desk is": f"- {DESK}"}
FACTS["locker is"] = "- Locker is L-881."
LEASE_SECONDS = 0.001


def script(messages):
    """Answer by what is asked; the same again gets the same id."""
    last, kind = messages[-1], kind_of(messages)
    if kind == "flush":
        said = last.text.split("<conversation>")[1]
        return "\n".join(line for sign, line in FACTS.items() if sign in said) or "NO_REPLY"
    if kind == "consolidation":
        lines = last.text.partition("<document>")[2].splitlines()
        return "\n".join(["# Known", *dict.fromkeys(one for one in lines if one[:2] == "- ")])
    if kind == "summary":
        return "They spoke of a badge, a desk and a locker."
    if last.type == "human" and "remember" in last.text:
        saving = calling(("memory_save", {"content": DESK}), prefix=f"c-{last.id}")
        return saving.model_copy(update={"id": f"saving-{last.id}"})
    return AIMessage("Noted.", id=f"answer-{last.id}")


@dataclass(kw_only=True)
class Life:
    """A conversation of four calls, the third of which compacts, on stores that lose power once."""

    mode: str
    transcript: bool = True
    resumes: bool = True
    """After the cut the call goes on; else the user's next one comes."""
    cut: int = 0
    hiccup: Exception | None = None
    """The store raises it instead, once."""

    def __post_init__(self):
        self.power = Power(self.cut, self.hiccup)
        self.store = CutStore(self.power)
        self.saver = CutSaver(Power() if self.hiccup else self.power)
        self.now = NOON
        builder = build(clock=lambda: self.now)
        self.graph = builder.compile(checkpointer=self.saver, store=self.store)
        self.config: Any = {"configurable": {"thread_id": "t"}}
        self.context = Context.model_validate(
            {
                "user_id": "kim",
                "model": ScriptedModel(script=script),
                "transcript": self.transcript,
                "memory": {"flush_mode": self.mode, "consolidate_every_minutes": 20},
                "compaction": {"trigger_messages": 7, "keep_messages": 2},
            }
        )

    async def run(self):
        for number, text in enumerate([*SAID, *([] if self.resumes else ["Bye."])]):
            self.now = NOON + timedelta(minutes=25 * number)
            await self.in_spite_of_a_cut(lambda n=number, t=text: self.call(n, t))
            await self.in_spite_of_a_cut(self.work)
        return self

    async def in_spite_of_a_cut(self, do):
        if await self.power.until_cut(do):
            time.sleep(2 * LEASE_SECONDS)  # noqa: ASYNC251 - until the dead worker's claim runs out
            assert not await self.power.until_cut(do)

    async def call(self, number, text):
        state = await self.graph.aget_state(self.config)
        is_in = (state.metadata or {}).get("source") != "input"
        is_known = is_in and f"m{number}" in [one.id for one in state.values.get("messages", [])]
        if is_known and not self.resumes:
            return
        said = {"messages": [{"role": "user", "content": text, "id": f"m{number}"}]}
        given = None if is_known else said
        await self.graph.ainvoke(given, self.config, context=self.context, durability="sync")

    async def work(self):
        hands = hands_on(self.store, lambda: self.now, lease_seconds=LEASE_SECONDS)
        try:
            await work_through(hands, tell=lambda _: None)
        except* OSError:  # the worker looks again
            time.sleep(2 * LEASE_SECONDS)  # noqa: ASYNC251
            await work_through(hands, tell=lambda _: None)

    async def left(self):
        """Return what the conversation has left behind, as anyone reads it."""
        values = (await self.graph.aget_state(self.config)).values
        document = await memory.read(self.store, "kim")
        entries = await transcripts.read(self.store, "kim", "t")
        numbers = [one.number for one in entries]
        assert numbers == list(range(len(entries)))
        ids = [one.message_id for one in entries]
        return {
            "facts": sorted(await facts_of(self.store)),
            "document": sorted(document.text.splitlines()) if document else None,
            "fresh": await memory.fresh_entries(self.store, "kim"),
            "unflushed": values.get("unflushed", []),
            "open": await work_queue.open_records(self.store),
            "transcript": ids if self.resumes else sorted(set(ids)) == sorted(ids),
            "history": [one.name or one.id for one in values["messages"]] if self.resumes else None,
        }


async def check_each_cut(**given):
    whole = await Life(**given).run()
    wanted = await whole.left()
    assert wanted["facts"] == sorted(line[2:] for line in FACTS.values())
    assert wanted["document"] == sorted(["# Known", *FACTS.values()])
    assert whole.power.writes > 15
    for cut in range(1, whole.power.writes + 1):
        left = await (await Life(**given, cut=cut).run()).left()
        assert left == wanted, f"cut before write {cut} of {whole.power.writes}"


@pytest.mark.parametrize(
    ("mode", "transcript"), [("inline", True), ("background", True), ("background", False)]
)
async def test_a_call_that_is_resumed_ends_as_it_would_have(mode, transcript):
    await check_each_cut(mode=mode, transcript=transcript)


@pytest.mark.parametrize("mode", ["inline", "background"])
async def test_where_the_next_call_comes_instead_no_fact_is_lost_or_stored_twice(mode):
    await check_each_cut(mode=mode, resumes=False)


@pytest.mark.parametrize("mode", ["inline", "background"])
async def test_a_write_that_fails_once_is_made_up_for_by_the_next_call(mode, monkeypatch):
    monkeypatch.setattr(work_queue, "PAUSES_SECONDS", (0.0,) * 7)
    await check_each_cut(mode=mode, resumes=False, hiccup=OSError("the store is down"))


async def test_a_batch_on_postgres_is_written_whole_or_not_at_all(dsn):
    """What the cuts above take for granted: a crash inside a batch leaves nothing of it."""
    place, words = ("users", "kim", "ledger"), list("abcdefghij")
    unstorable = "".join(random.Random(1).choices(words, k=50_000))  # noqa: S311 - longer than an index row
    async with open_stores(dsn, pool_size=2) as stores:
        await stores.store.aput(place, "old", {"n": 1})
        puts = [PutOp(place, "old", None), PutOp(place, "new", {"n": 2})]
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            await stores.store.abatch([*puts, PutOp(place, unstorable, {"n": 3})])
        assert [item.key for item in await all_items(stores.store, place)] == ["old"]
