"""A21: two sessions of one user write memory at once; both flush modes."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.exceptions import ContextOverflowError

from everlong.graph.worker import hands_on
from everlong.nodes.working import work_through
from everlong.stores import ledger
from everlong.stores.entries import render_day
from everlong.stores.namespaces import ROOT, label
from everlong.stores.records import all_items
from given import case
from scripted_model import ScriptedModel, kind_of

GIVEN = case("A21")
ROUNDS = GIVEN["steps"][0]
SAID = {one["thread"]: one["human"] for one in ROUNDS["parallel"]}
MODES = ["inline", "background"]


@pytest.fixture(params=MODES)
def settings(request):
    return {"enabled": True, "flush_mode": request.param, "consolidate": "on_request"}


def keeping(*facts, more=lambda _: ""):
    """A model that returns, one a line, each fact of its input."""

    def script(messages):
        text = messages[-1].text
        if kind_of(messages) == "flush":
            said = text.split("<conversation>")[1]
            return "\n".join(f"- {one}" for one in facts if one in said) or more(text) or "NO_REPLY"
        return "SUMMARY" if kind_of(messages) == "summary" else "Confirmed."

    return ScriptedModel(script=script)


def refusing_once(script):
    """Have the next question refused for its length."""
    left = [ContextOverflowError("prompt is too long")]

    def refusing(messages):
        if kind_of(messages) == "answer" and left:
            raise left.pop()
        return script(messages)

    return refusing


def u1(converse, thread, **more):
    return converse(user_id="u1", thread_id=thread, **more)


async def work_left(talk):
    await work_through(hands_on(talk.store, talk.clock), tell=lambda _: None)


async def lines(store):
    return [fact.text for entry in await ledger.entries(store, "u1") for fact in entry.facts]


def read_of(model):
    return [
        one[-1].text.split("<conversation>")[1] for one in model.requests if kind_of(one) == "flush"
    ]


async def test_twenty_parallel_rounds_lose_no_fact_and_store_none_twice(converse, settings):
    """1, 2: each fact once in the day's ledger; a turn without a new fact writes nothing."""
    model = keeping(*SAID.values())
    talks = {thread: u1(converse, thread, model=model, memory=settings) for thread in SAID}
    for _ in range(ROUNDS["repeat"]):
        await asyncio.gather(*(talks[thread].say(text) for thread, text in SAID.items()))
    store = talks["A"].store
    await asyncio.gather(*(work_left(talks["A"]) for _ in range(3)))
    assert sorted(await lines(store)) == sorted(SAID.values())
    (day,) = await ledger.days(store, "u1")
    before = render_day(await ledger.entries(store, "u1", day))
    await talks["A"].say(GIVEN["steps"][1]["human"])
    await work_left(talks["A"])
    assert render_day(await ledger.entries(store, "u1", day)) == before
    assert len(read_of(model)) == 2 * ROUNDS["repeat"] + 1


@pytest.mark.parametrize("kind", [one["force"] for one in GIVEN["steps"] if "force" in one])
async def test_what_each_compaction_removes_is_flushed_once_before(converse, settings, kind):
    """3: the flush sees the messages, not the summary; nothing is left out."""
    model = keeping()
    plain = model.script
    compacting = {"trigger_messages": 7 if kind == "automatic compaction" else 0}
    talk = u1(
        converse,
        "A",
        model=model,
        memory=settings | {"flush": "never"},
        compaction=compacting | {"keep_messages": 2},
    )
    said = [f"fact number {n}" for n in range(3)]
    await talk.say(*said)
    if kind == "provider overflow":
        model.script = refusing_once(plain)
    if kind == "manual compaction":
        await talk.compact()
    else:
        await talk.say("the last one")
    gone = [one for one in said if one not in [m.text for m in await talk.messages()]]
    assert gone
    await work_left(talk)
    read = read_of(model)
    assert [sum(text.count(one) for text in read) for one in gone] == [1] * len(gone)
    assert not any("SUMMARY" in text for text in read)
    talk.context = talk.context.model_copy(
        update={"memory": talk.context.memory.model_copy(update={"flush": "always"})}
    )
    await talk.say("and on")
    await work_left(talk)
    read = read_of(model)
    assert [sum(text.count(one) for text in read) for one in said] == [1] * 3
    assert not any("SUMMARY" in text for text in read)


async def test_the_throttle_holds_though_the_graph_is_new_in_each_request(converse, settings):
    """4: so many requests in ten seconds, with a gap of two minutes, cost one flush."""
    step = next(one for one in GIVEN["steps"] if one.get("rebuild_graph_each_request"))
    now = [datetime(2026, 3, 9, 12, tzinfo=UTC)]
    model, talk = keeping(), None
    for number in range(step["requests_in_10_s"]):
        talk = u1(
            converse,
            f"thread-{number % 2}",
            model=model,
            memory=settings | {"flush": step["gap_s"] / 60},
            clock=lambda: now[0],
        )
        await talk.say(f"request {number}")
        now[0] += timedelta(seconds=10 / step["requests_in_10_s"])
    await work_left(talk)
    assert len(read_of(model)) == 1


async def test_memory_off_writes_no_ledger_line_on_any_path(converse, settings):
    """5: plain, compacting by itself, on request, on overflow, asked to consolidate, on again."""
    step = GIVEN["steps"][-1]
    assert step["settings"] == {"memory_enabled": False}
    model = keeping(step["human"])
    off = u1(
        converse,
        "A",
        model=model,
        memory=settings | {"enabled": False},
        compaction={"trigger_messages": 6, "keep_messages": 2},
    )
    await off.say(step["human"], "two", "three", "four")
    model.script = refusing_once(model.script)
    await off.say("five")
    await off.compact()
    await off.send({"request": {"consolidate": True}})
    await work_left(off)
    on = u1(converse, "A", model=model, memory=settings)
    await on.say("hello again")
    await work_left(on)
    assert await lines(on.store) == []
    kept = await all_items(on.store, (ROOT, label("u1")))
    assert not {item.namespace[2] for item in kept} & {"ledger", "memory"}


async def test_a_model_that_returns_the_whole_day_again_adds_nothing_old(converse, settings):
    """Vary: old lines come back with each answer, in any form of a list."""
    whole: list[str] = []

    def day(_):
        return "\n".join(f"{mark} {one}" for mark, one in zip("-*•-", whole, strict=False))

    model = keeping(*SAID.values(), more=day)
    talk = u1(converse, "A", model=model, memory=settings)
    for text in (*SAID.values(), "hello again", "and again"):
        await talk.say(text)
        await work_left(talk)
        whole[:] = [*await lines(talk.store)]
    assert sorted(await lines(talk.store)) == sorted(SAID.values())


async def test_a_value_that_changes_and_changes_back_is_no_old_line(converse, settings):
    homes = ["The user lives in Oslo.", "The user lives in Bergen.", "The user lives in Oslo."]
    model, now = keeping(*homes[:2]), [datetime(2026, 3, 9, 12, tzinfo=UTC)]
    talk = u1(converse, "A", model=model, memory=settings, clock=lambda: now[0])
    for text in homes:
        now[0] += timedelta(minutes=1)
        await talk.say(text)
        await work_left(talk)
    assert await lines(talk.store) == homes
