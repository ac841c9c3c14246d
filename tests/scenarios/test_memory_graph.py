"""The graph `memory`: a user's memory work without a conversation."""

import pytest

from background import PORT, Told, facts_of
from everlong.graph.memory import build_memory, graph
from everlong.nodes.context import Context
from everlong.nodes.errors import MissingUserError
from everlong.stores import memory, tombstones, work_queue
from scripted_model import ScriptedModel, kind_of

BACKGROUND = {"enabled": True, "flush_mode": "background"}


@pytest.fixture
def run(backend):
    compiled = build_memory().compile(store=backend.store)

    async def run_it(given=None, **context):
        return await compiled.ainvoke(given or {}, context=Context.model_validate(context))

    return run_it


def test_the_drawing_is_the_agreed_one(golden):
    golden("memory.mmd", graph.get_graph().draw_mermaid(with_styles=False))


async def test_it_does_the_users_work_and_nobody_elses(converse, run):
    model = Told().model(PORT)
    for user_id in ("kim", "eve"):
        talk = converse(model=model, memory=BACKGROUND, user_id=user_id, thread_id=user_id)
        await talk.say("Exports only through Shanghai.")
    came = await run(user_id="kim")
    assert {name: came[name] for name in ("done", "facts", "waiting", "failed")} == {
        "done": 1,
        "facts": 1,
        "waiting": 0,
        "failed": 0,
    }
    assert came["consolidated"] is True
    assert await facts_of(talk.store, "eve") == []
    assert (await run(user_id="kim"))["done"] == 0


@pytest.mark.parametrize(
    ("wish", "within_gap", "written"),
    [("due", False, True), ("due", True, False), ("now", True, True), ("no", False, False)],
)
async def test_it_consolidates_as_it_is_asked(converse, run, wish, within_gap, written):
    model = Told().model(PORT, "- Tea is liked.")
    on_request = {"consolidate": "on_request"}
    talk = converse(model=model, memory=BACKGROUND | on_request)
    await talk.say("Exports only through Shanghai.")
    if within_gap:
        await run({"consolidate": "now"}, user_id="kim", model=model, memory=on_request)
        await talk.say("Tea for me.")
    before = await memory.read(talk.store, "kim")
    came = await run({"consolidate": wish}, user_id="kim", model=model)
    assert came["done"] == 1
    assert came["consolidated"] == written == ((await memory.read(talk.store, "kim")) != before)


async def test_a_failure_is_told_and_tried_again_when_that_is_asked(converse, run, monkeypatch):
    monkeypatch.setattr(work_queue, "PAUSES_SECONDS", (0.0,) * 7)
    told = Told(fails=True)
    model = told.model(PORT)
    talk = converse(model=model, memory=BACKGROUND)
    await talk.say("Exports only through Shanghai.")
    came = await run(user_id="kim")
    assert (came["done"], came["failed"], came["problem"]) == (0, 1, "RuntimeError: 503 overloaded")
    told.fails = False
    assert (await run(user_id="kim"))["done"] == 0
    came = await run({"retry_failed": True}, user_id="kim")
    assert (came["done"], came["failed"], came["problem"]) == (1, 0, "")


async def test_a_consolidation_that_fails_is_told(converse, run):
    def script(messages):
        if kind_of(messages) == "consolidation":
            msg = "502"
            raise RuntimeError(msg)
        return Told().answer(messages, (PORT,))

    model = ScriptedModel(script=script)
    talk = converse(model=model, memory={"enabled": True, "consolidate": "on_request"})
    await talk.say("Exports only through Shanghai.")
    came = await run({"consolidate": "now"}, user_id="kim", model=model)
    assert (came["consolidated"], came["problem"]) == (False, "RuntimeError: 502")


async def test_nobody_is_no_user_and_memory_off_does_nothing(converse, run):
    talk = converse(model=Told().model(PORT), memory=BACKGROUND)
    await talk.say("Exports only through Shanghai.")
    with pytest.raises(MissingUserError):
        await run()
    assert (await run(user_id="kim", memory={"enabled": False}))["done"] == 0
    assert len(await work_queue.open_records(talk.store, "kim")) == 1


async def test_late_work_writes_nothing_for_a_user_who_was_forgotten(converse, run):
    talk = converse(model=Told().model(PORT), memory=BACKGROUND)
    await talk.say("Exports only through Shanghai.")
    await tombstones.mark_user(talk.store, "kim", at="2026-03-09T12:00:00Z")
    await run({"consolidate": "no"}, user_id="kim")
    assert await facts_of(talk.store) == []
    assert await memory.read(talk.store, "kim") is None
