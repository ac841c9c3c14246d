"""`everlong worker`: what it does, says and leaves; several at once; until it is told to end."""

import asyncio
import signal
import subprocess
from datetime import timedelta

import pytest
from langchain_core.messages import HumanMessage

from background import facts_of
from cli_process import COMMAND, everlong, piped
from everlong.graph.agent import utc_now
from everlong.nodes.working import now_of
from everlong.stores import work, work_queue
from everlong.stores.postgres import open_stores
from everlong.stores.spelling import spelled
from everlong.stores.work import Work

SAID = "Our exports go through Shanghai port only."


def chat(dsn, *lines, user_id="kim", thread="t1", **environment):
    given = {"EVERLONG_MEMORY__FLUSH_MODE": "background"} | environment
    words = ("chat", "--user", user_id, "--thread", thread, "--dsn", dsn)
    return everlong(*words, given="\n".join(lines) + "\n", **given)


async def leave(dsn, *users, model="offline", **more):
    """Leave records as calls of processes would that have ended."""
    async with open_stores(dsn, pool_size=2) as stores:
        for number, user_id in enumerate(users):
            instant = now_of(lambda n=number: utc_now() - timedelta(seconds=60 - n))
            ids = (f"m{number}",)
            settings = {
                "model": model,
                "memory_model": None,
                "time_zone": "UTC",
                "transcript": False,
                "compaction": {},
                "memory": {"flush_mode": "background"},
            }
            record = Work(
                key=work.key_of(instant, "t1", ids),
                user_id=user_id,
                thread_id="t1",
                instant=instant,
                ids=ids,
                messages=(spelled(HumanMessage(f"Remember: {SAID}", id=ids[0])),),
                settings=settings,
                **more,
            )
            await work.add(stores.store, record)


def test_a_chat_leaves_its_work_and_has_it_done_before_it_ends(dsn):
    done = chat(dsn, f"Remember that {SAID}")
    assert done.code == 0, done.err
    assert "memory: 2 messages left to a worker" in done.out + done.err
    shown = everlong("memory", "show", "--user", "kim", "--dsn", dsn)
    assert "Shanghai" in shown.out
    assert "0 records done, 0 waiting, 0 failed." in everlong("worker", "--once", "--dsn", dsn).out


async def test_the_command_does_what_is_there_and_says_what(dsn):
    await leave(dsn, "kim", "eve", "eve")
    one = await asyncio.to_thread(everlong, "worker", "--once", "--user", "kim", "--dsn", dsn)
    assert one.code == 0, one.err
    assert one.out.splitlines() == [
        "  kim / t1: 1 fact written to the ledger; MEMORY.md rewritten from 1 ledger entry",
        "1 record done, 0 waiting, 0 failed.",
    ]
    rest = await asyncio.to_thread(everlong, "worker", "--once", "--dsn", dsn)
    assert rest.out.splitlines()[-1] == "2 records done, 0 waiting, 0 failed."
    assert rest.out.count("eve / t1: ") == 2


async def test_what_has_failed_is_listed_by_the_command_and_by_the_doctor(dsn, monkeypatch):
    monkeypatch.setattr(work_queue, "PAUSES_SECONDS", (0.0,) * 7)
    await leave(dsn, "kim", model="nosuch:model")
    failing = await asyncio.to_thread(everlong, "worker", "--once", "--dsn", dsn)
    assert failing.code == 1
    assert "0 records done, 0 waiting, 1 failed." in failing.out
    assert "--retry-failed tries again (ModelUnavailableError: model 'nosuch:model'" in failing.out
    doctor = await asyncio.to_thread(everlong, "doctor", "--dsn", dsn)
    assert "memory work kim / t1: failed 8 times" in " ".join(doctor.out.split())
    assert "nothing is left to do" in doctor.out
    again = await asyncio.to_thread(everlong, "worker", "--once", "--retry-failed", "--dsn", dsn)
    assert "1 failed record will be tried again." in again.out


async def test_a_record_whose_model_is_gone_waits_for_a_worker_that_has_one(dsn, monkeypatch):
    monkeypatch.setattr(work_queue, "OWN_SECONDS", 0.0)
    await leave(dsn, "kim", model="object:1", unnamed=True, process="ended")
    without = await asyncio.to_thread(everlong, "worker", "--once", "--dsn", dsn)
    assert "0 records done, 1 waiting, 0 failed." in without.out
    assert "--model names one to use instead" in without.out
    named = await asyncio.to_thread(
        everlong, "worker", "--once", "--model", "offline", "--dsn", dsn
    )
    assert "1 record done, 0 waiting, 0 failed." in named.out


async def test_several_commands_at_once_do_each_record_once(dsn):
    await leave(dsn, *(f"user{n % 7}" for n in range(21)))
    running = [
        subprocess.Popen([*COMMAND, "worker", "--once", "--dsn", dsn], stdout=subprocess.PIPE)  # noqa: S603, ASYNC220 - our own command
        for _ in range(3)
    ]
    said = [(await asyncio.to_thread(one.communicate))[0].decode() for one in running]
    assert [one.returncode for one in running] == [0, 0, 0]
    assert (
        sum(
            text.count("written to the ledger") + text.count("nothing new to keep") for text in said
        )
        == 21
    )
    async with open_stores(dsn, pool_size=2) as stores:
        assert await work_queue.open_records(stores.store) == []
        for number in range(7):
            assert len(await facts_of(stores.store, f"user{number}")) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_the_command_works_on_until_it_is_told_to_end(dsn, tmp_path, number):
    with piped("worker", "--dsn", dsn, folder=tmp_path) as running:
        await asyncio.to_thread(running.until, lambda: "At work" in running.out)
        await leave(dsn, "kim")
        await asyncio.to_thread(running.until, lambda: "kim / t1: 1 fact" in running.out)
        running.process.send_signal(number)
        assert await asyncio.to_thread(running.process.wait, 20) == 0
        assert "Ended" in running.out


def test_memory_off_refuses_the_command(dsn):
    done = everlong("worker", "--once", "--dsn", dsn, EVERLONG_MEMORY__ENABLED="false")
    assert done.code == 1
    assert "EVERLONG_MEMORY__ENABLED" in done.err
