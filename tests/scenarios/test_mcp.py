"""Tools of MCP servers over stdio: results, errors, deaths and hangs; the conversation goes on."""

import asyncio
import os
import shutil
import signal
import sys
import time
from contextlib import suppress

import pytest
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conftest import Backend
from everlong.nodes import mcp_servers, mcp_session
from everlong.nodes.mcp_config import servers_in
from everlong.nodes.tool_source import ToolSource
from everlong.stores import files
from fix_postgres import is_alive, wait_until
from mcp_talks import SERVER, TRIAL, results, said, told
from scripted_model import ScriptedModel


@pytest.fixture
def backend():
    """Where the thread is kept makes no difference here."""
    return Backend(InMemorySaver(), InMemoryStore())


@pytest.fixture(scope="module")
def source():
    """The tools of one server, named `t`, for all tests here: each leaves it in order."""
    found = ToolSource((), mcp={"t": SERVER})
    yield found
    asyncio.run(found.close())


async def test_a_tool_answers_and_the_model_was_told_of_it(converse, source):
    model = said([("add", {"a": 2, "b": 3})], [("strange_name_here", {})])
    talk = converse(model=model, tools=source)
    await talk.say("go")
    added, strange = results(await talk.messages())
    assert (added.text, added.status, added.name) == ("5", "success", "t_add")
    assert added.artifact is None
    assert strange.text == "strange"
    assert {"t_add", "t_strange_name_here"} <= set(model.tools[0])


def test_one_process_serves_all_loops_from_the_first_call_to_the_close():
    source = ToolSource((), mcp={"t": SERVER})

    async def pid() -> str:
        box = await source.toolbox()
        return await box.node.tools_by_name["t_whoami"].ainvoke({})

    source.check()
    assert not source._known[1]._sessions
    (found,) = {asyncio.run(pid()) for _ in range(3)}
    asyncio.run(source.close())
    wait_until(lambda: not is_alive(int(found)))


async def test_errors_and_wrong_arguments_are_told_to_the_model(converse, source):
    failed, wrong = await told(converse, source, [("boom", {"order": "881"}), ("add", {"a": "x"})])
    assert failed.status == wrong.status == "error"
    assert "there is no order 881" in failed.text
    assert "Field required" in wrong.text


async def test_odd_characters_pictures_and_sounds_come_as_far_as_they_can(converse, source):
    odd, picture, sound, taken = await told(
        converse,
        source,
        [("odd", {}), ("picture", {}), ("sound", {})],
        [("takes", {"config": "a", "runtime": "b", "callbacks": "c"})],
    )
    assert odd.text == "a\ufffdb\u2028 夜莺 🦉"
    assert [block["type"] for block in picture.content] == ["text", "image"]
    assert "id" not in picture.content[1]
    assert sound.status == "error"
    assert "udio" in sound.text
    assert taken.text == "a b c"


async def test_a_server_hears_of_no_user_where_its_settings_do_not_say_so(converse, source):
    (result,) = await told(converse, source, [("for_whom", {})])
    assert result.text == "None"


async def test_a_huge_result_is_moved_and_read_back(converse, source):
    talk = converse(model=said([("huge", {"characters": 300_000})]), tools=source)
    await talk.say("go")
    (result,) = results(await talk.messages())
    path = result.additional_kwargs["everlong_evicted"]["path"]
    assert len(result.text) < 4_000
    assert await files.read_text(talk.store, "kim", path) == "heron " * 50_000


async def test_a_tool_may_have_a_limit_of_its_own_or_none(converse, source):
    huge = [("huge", {"characters": 6_000})]
    small, whole = (
        {"tool_chars": {"t_*": 2_000}},
        {"tool_chars": {"t_huge": 0}, "over_chars": 1_000},
    )
    (moved,) = await told(converse, source, huge, eviction=small)
    assert "everlong_evicted" in moved.additional_kwargs
    assert len(moved.text) < 1_000
    (stays,) = await told(converse, source, huge, eviction=whole, thread_id="thread-2")
    assert stays.text == "heron " * 1_000


async def test_a_server_that_dies_in_the_middle_of_a_call_is_told_and_started_again(
    converse, source, caplog
):
    died, added = await told(converse, source, [("die", {})], [("add", {"a": 1, "b": 1})])
    assert died.status == "error"
    assert "ended in the middle of this call; whether it had an effect is not known" in died.text
    assert added.text == "2"
    assert "MCP server 't' ended in the middle of a call" in caplog.text


async def test_siblings_of_a_call_that_kills_the_server_get_results_too(converse, source):
    outcomes = await told(
        converse, source, [("hang", {}), ("die", {}), ("hang", {})], [("add", {"a": 1, "b": 1})]
    )
    assert [one.status for one in outcomes] == ["error", "error", "error", "success"]


async def test_a_server_that_died_while_nobody_asked_is_started_without_a_word(converse, source):
    (first,) = await told(converse, source, [("whoami", {})])
    os.kill(int(first.text), signal.SIGKILL)
    wait_until(lambda: not is_alive(int(first.text)))
    await asyncio.sleep(0.1)
    (again,) = await told(converse, source, [("whoami", {})], thread_id="thread-2")
    assert again.status == "success"
    assert again.text != first.text


async def test_a_call_that_hangs_is_given_up_and_others_go_on(converse, source, given):
    given(EVERLONG_TOOL_SECONDS='{"t_hang": 0.5}')
    hung, added = await told(converse, source, [("hang", {})], [("add", {"a": 1, "b": 1})])
    assert hung.status == "error"
    assert "t_hang has given no answer within 0.5 seconds" in hung.text
    assert added.text == "2"


async def test_a_server_that_answers_nobody_is_started_again_and_who_waits_is_told(
    converse, source, given, monkeypatch
):
    given(EVERLONG_TOOL_SECONDS='{"t_block": 0.5}')
    monkeypatch.setattr(mcp_session, "PING_SECONDS", 0.5)
    hanging = converse(model=said([("hang", {})]), tools=source, thread_id="thread-2")
    waiting = asyncio.create_task(hanging.say("go"))
    before, blocked, after = await told(
        converse, source, [("whoami", {})], [("block", {})], [("whoami", {})]
    )
    assert blocked.status == "error"
    assert after.status == "success"
    assert after.text != before.text
    async with asyncio.timeout(30):
        await waiting
    (lost,) = results(await hanging.messages())
    assert "ended in the middle of this call" in lost.text


async def test_a_session_is_lost_once_and_a_server_that_is_away_is_not_tried_at_each_call(caplog):
    session = mcp_session.McpSession(servers_in({"t": SERVER}, "mcp")[0])
    try:
        first = await session._ready()
        session._lose(first)
        second = await session._ready()
        session._lose(first)
        assert await session._ready() is second
        assert first is not second
    finally:
        await session.close()
    away = mcp_session.McpSession(servers_in({"a": {"command": "no-such-command"}}, "mcp")[0])
    for _ in range(2):
        with pytest.raises(ToolException, match="'a' cannot be reached"):
            await away.call("add", {})
    assert caplog.text.count("does not start") == 1


async def test_a_server_that_does_not_start_costs_its_tools_and_not_the_conversation(
    converse, caplog
):
    away = {"command": "no-such-command", "env": {"KEY": "sk-very-secret"}}
    ends = {"command": sys.executable, "args": ["-c", "raise SystemExit(3)"]}
    source = ToolSource((), mcp={"away": away, "ends": ends, "t": SERVER})
    try:
        (added,) = await told(converse, source, [("add", {"a": 1, "b": 1})])
        assert added.text == "2"
        assert sorted(await source.problems()) == ["away", "ends"]
    finally:
        await source.close()
    assert "MCP server 'away' does not start: FileNotFoundError" in caplog.text
    assert "MCP server 'ends' does not start" in caplog.text
    assert "sk-very-secret" not in caplog.text


async def test_a_server_that_was_away_is_found_when_it_is_there(
    converse, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(mcp_session, "AWAY_SECONDS", 0.2)
    script = tmp_path / "server.py"
    source = ToolSource((), mcp={"t": {"command": sys.executable, "args": [str(script)]}})
    try:
        model = ScriptedModel(script=["no tools", "tools"])
        talk = converse(model=model, tools=source)
        await talk.say("one")
        shutil.copy(TRIAL, script)
        await asyncio.sleep(0.3)
        await talk.say("two")
    finally:
        await source.close()
    assert "t_add" not in model.tools[0]
    assert "t_add" in model.tools[1]
    assert "does not start" in caplog.text


async def test_a_start_that_takes_too_long_is_given_up(converse, monkeypatch, caplog):
    monkeypatch.setattr(mcp_session, "START_SECONDS", 0.5)
    monkeypatch.setattr(mcp_session, "AWAY_SECONDS", 0.0)
    silent = {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]}
    source = ToolSource((), mcp={"silent": silent})
    began = time.monotonic()
    try:
        async with asyncio.timeout(20):
            with suppress(TimeoutError):
                await asyncio.wait_for(source.toolbox(), 0.2)
            problems = await source.problems()
            monkeypatch.setattr(mcp_session, "START_SECONDS", 600.0)
            monkeypatch.setattr(mcp_servers, "AGAIN_SECONDS", 1.0)
            await source.toolbox()  # tries it again
            tried = time.monotonic()
            await source.toolbox()
            waited = time.monotonic() - tried
    finally:
        await source.close()
    assert problems == {"silent": "TimeoutError: it told no tools within 0.5 s"}
    assert time.monotonic() - began < 12
    assert waited < 0.8  # nobody else waits for it


async def test_a_name_that_is_taken_is_left_out_and_told(converse, caplog):
    @tool
    def t_add(a: int, b: int) -> str:
        """Add in a way of its own."""
        return f"{a} and {b}"

    source = ToolSource([t_add], mcp={"t": SERVER, "memory": SERVER})
    try:
        (added,) = await told(converse, source, [("add", {"a": 1, "b": 1})])
    finally:
        await source.close()
    assert added.text == "1 and 1"
    assert "The tool 't_add' of an MCP server is left out" in caplog.text


async def test_what_the_settings_give_a_server_is_all_of_ours_that_it_sees(converse, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("TRIAL_SOURCE", "k-1")
    server = SERVER | {"env": {"TRIAL_KEY": "${TRIAL_SOURCE}"}}
    source = ToolSource((), mcp={"t": server})
    try:
        (result,) = await told(converse, source, [("secret", {})])
    finally:
        await source.close()
    assert result.text == "k-1 None"


async def test_a_cancelled_call_leaves_the_server_to_others(converse, source):
    talk = converse(model=said([("hang", {"seconds": 599})]), tools=source)
    await source.toolbox()
    (session,) = source._known[1]._sessions
    saying = asyncio.create_task(talk.say("go"))
    async with asyncio.timeout(10):
        while session._live is None or not session._live.calls:  # noqa: ASYNC110 - in another loop
            await asyncio.sleep(0.01)
    saying.cancel()
    with suppress(asyncio.CancelledError):
        await saying
    added, stopped = await told(
        *(converse, source, [("add", {"a": 1, "b": 1})], [("given_up", {})]), thread_id="thread-2"
    )
    assert added.text == "2"
    assert "599" in stopped.text  # the server was told that nobody waits
