"""No kill, cancel or failing store makes the record of an attempt untrue, or the call end."""

import asyncio
from collections.abc import Iterable

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore, Op, PutOp, Result

from failing_store import FailingStore
from orders import IDS, ROUNDS, SMALL, answering, only_record, records
from scripted_model import ScriptedModel


class KilledError(BaseException):
    """Stands for the end of the process: nothing catches it."""


class CompactionsFail(BaseStore):
    """A store whose records of compactions fail, or end the process, when one is written or read.

    `on` is what to raise, by kind of operation: `put` before, `put done` after it, `get` before.
    """

    def __init__(self, inner: BaseStore, **on: BaseException) -> None:
        self.inner = inner
        self.on = on

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        raise NotImplementedError

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        kinds = {
            "put" if isinstance(op, PutOp) else "get"
            for op in given
            if "compactions" in getattr(op, "namespace", ())
        }
        for kind in kinds & set(self.on):
            raise self.on[kind]
        done = await self.inner.abatch(given)
        if "put" in kinds and "put_done" in self.on:
            raise self.on["put_done"]
        return done


async def test_a_cancel_leaves_no_record_and_the_history(converse):
    talk = converse(model=answering(), summary_model=ScriptedModel(script=[60.0]), compaction=SMALL)
    await talk.seed(ROUNDS)
    running = asyncio.create_task(talk.say("and now?"))
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await records(talk) == []
    assert [message.id for message in await talk.messages()][:10] == IDS
    assert "compaction.finished" not in talk.event_types()


async def killed(talk, backend, **fails):
    """Kill a call where a write or a read of its compaction's record fails; mend the store."""
    await talk.seed(ROUNDS)
    talk.use_store(CompactionsFail(backend.store, **fails))
    with pytest.raises(KilledError):
        await talk.say("and now?")
    talk.use_store(backend.store)


async def test_a_kill_before_the_state_is_written_leaves_no_lie(backend, converse):
    talk = converse(model=answering(), compaction=SMALL)
    await killed(talk, backend, put_done=KilledError())
    assert (await only_record(talk))["outcome"] == "begun"
    assert [message.id for message in await talk.messages()][:10] == IDS
    assert "compaction.finished" not in talk.event_types()
    await talk.send(None)
    assert (await only_record(talk))["outcome"] == "done"
    assert len(await talk.messages()) == 4


async def test_a_kill_before_the_state_is_written_stays_begun_where_the_user_goes_on(
    backend, converse
):
    talk = converse(model=answering(), compaction=SMALL)
    await killed(talk, backend, put_done=KilledError())
    talk.context = talk.context.model_copy(
        update={"compaction": talk.context.compaction.model_copy(update={"enabled": False})}
    )
    await talk.say("never mind")
    assert (await only_record(talk))["outcome"] == "begun"
    assert "compaction" not in await talk.values()


@pytest.mark.parametrize("goes_on", ["resumed", "new message"])
async def test_a_kill_after_the_state_is_written_is_made_up_for(backend, converse, goes_on):
    talk = converse(model=answering(), compaction=SMALL)
    await killed(talk, backend, get=KilledError())
    assert (await only_record(talk))["outcome"] == "begun"
    assert (await talk.values())["compaction"]["outcome"] == "done"
    await (talk.send(None) if goes_on == "resumed" else talk.say("hello?"))
    record = await only_record(talk)
    assert (record["outcome"], len(record["message_ids"])) == ("done", 9)
    assert talk.event_types().count("compaction.finished") == (goes_on == "resumed")


async def test_a_record_that_cannot_be_written_ends_no_call_and_undoes_nothing(
    backend, converse, caplog
):
    talk = converse(model=answering(), compaction=SMALL)
    await talk.seed(ROUNDS)
    talk.use_store(CompactionsFail(backend.store, put=OSError("full"), get=OSError("full")))
    assert await talk.say("and now?") == "ok"
    assert len(await talk.messages()) == 4
    assert (await talk.values())["compaction"]["outcome"] == "done"
    assert talk.event_types() == ["compaction.started", "compaction.finished"]
    assert "record of a compaction cannot be written" in caplog.text
    assert "full" in caplog.text


async def test_a_record_that_could_not_be_written_is_written_by_the_next_node(backend, converse):
    talk = converse(model=answering(), compaction=SMALL)
    await talk.seed(ROUNDS)
    store = CompactionsFail(backend.store, put=OSError("full"))
    original = store.abatch

    async def abatch(ops: Iterable[Op]) -> list[Result]:
        try:
            return await original(ops)
        except OSError:
            store.on.clear()
            raise

    store.abatch = abatch  # fails once
    talk.use_store(store)
    await talk.say("and now?")
    record = await only_record(talk)
    assert (record["outcome"], record["transcript"]) == ("done", [[0, 8]])


async def test_a_transcript_that_cannot_be_written_is_a_failed_attempt(backend, converse):
    talk = converse(model=answering(), compaction=SMALL)
    failing = FailingStore(backend.store)
    talk.use_store(failing)
    await talk.seed(ROUNDS)
    failing.fail_writes = OSError("disk full")
    assert await talk.say("next") == "ok"
    (finished,) = [one for one in talk.events if one["type"] == "compaction.finished"]
    assert (finished["outcome"], finished["trigger"]) == ("failed", "messages")
    assert "disk full" in finished["reason"]
    assert await records(talk) == []
    failing.fail_writes = None
    await talk.say("and next")
    assert [one["outcome"] for one in await records(talk)] == ["failed", "done"]


async def test_a_run_without_a_thread_compacts_and_keeps_no_record(backend, converse):
    talk = converse(model=answering(), compaction=SMALL)
    graph = talk.graph.builder.compile(store=backend.store)
    given = {"messages": [*ROUNDS, HumanMessage("and now?")]}
    answer = await graph.ainvoke(given, context=talk.context)
    assert len(answer["messages"]) == 4
    assert await records(talk) == []
