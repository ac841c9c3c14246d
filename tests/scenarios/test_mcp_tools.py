"""What MCP servers offer and return, and what they are told: names, files, users, new tools."""

import asyncio
import sys
from contextlib import suppress

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from conftest import Backend
from everlong.nodes import mcp_session
from everlong.nodes.mcp_servers import NAME_CHARS, tool_name
from mcp_talks import TRIAL, results, said, serving, told

ALONE = """
import os, pathlib, sys, time
pids = pathlib.Path("pids")
before = pids.read_text().split() if pids.exists() else []
alive = [pid for pid in before if pathlib.Path("/proc", pid).exists()]
pids.write_text(" ".join([*before, str(os.getpid())]))
if alive:
    pathlib.Path("two").touch()
print("a line that is no message", flush=True)
time.sleep(1)
sys.argv = [sys.argv[1]]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
"""


@pytest.fixture
def backend():
    """Where the thread is kept makes no difference here."""
    return Backend(InMemorySaver(), InMemoryStore())


async def test_tools_that_a_server_adds_are_offered_at_the_next_request(converse):
    model = said([("learn", {"name": "owl"})], [("owl", {})])
    async with serving() as source:
        talk = converse(model=model, tools=source)
        await talk.say("go")
        box = await source.toolbox()
        assert await source.toolbox() is box
    assert results(await talk.messages())[1].text == "I am owl"
    assert "t_owl" not in model.tools[0]
    assert "t_owl" in model.tools[1]


async def test_a_tool_whose_schema_no_provider_takes_is_left_out_and_the_others_stay(
    converse, caplog
):
    model = said([("learn_badly", {})], [("add", {"a": 1, "b": 2})])
    async with serving() as source:
        talk = converse(model=model, tools=source)
        await talk.say("go")
    assert [one.text for one in results(await talk.messages())] == ["learnt", "3"]
    assert "t_broken" not in model.tools[1]
    (left_out,) = [one for one in caplog.records if "is left out" in one.message]
    assert "'broken' of MCP server 't'" in left_out.message


async def test_a_server_hears_whose_call_it_is_where_its_settings_say_so(converse):
    async with serving(sendUser=True) as source:
        (result,) = await told(converse, source, [("for_whom", {})])
    assert result.text == "kim"


async def test_files_are_named_and_never_stand_where_a_provider_may_refuse_them(converse):
    async with serving() as source:
        (result,) = await told(converse, source, [("files", {})])
    assert result.content.split("\n\n") == [
        "[image: https://example.test/a.png, image/png]",
        "the text",
        "[file: 3 bytes, not shown, application/pdf]",
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [("find_" + "x" * 70 + "a", "find_" + "x" * 70 + "b"), ("查询", "更新"), ("a/b", "a/c")],
)
def test_names_are_what_providers_take_and_stay_apart(one, other):
    names = [tool_name("crm", one), tool_name("crm", other)]
    assert len(set(names)) == 2
    for name in names:
        assert name.startswith("crm_")
        assert len(name) <= NAME_CHARS
        assert all(letter.isascii() and (letter.isalnum() or letter in "_-") for letter in name)
    assert tool_name("crm", "find.one/now") == "crm_find_one_now"


async def test_there_are_never_two_processes_of_a_server_whatever_is_cancelled_or_hangs(
    converse, given, monkeypatch, tmp_path
):
    given(EVERLONG_TOOL_SECONDS='{"t_block": 0.3}')
    monkeypatch.setattr(mcp_session, "PING_SECONDS", 0.3)
    server = {"command": sys.executable, "args": ["-c", ALONE, TRIAL], "cwd": str(tmp_path)}
    async with serving(**server) as source:
        with suppress(TimeoutError):
            await asyncio.wait_for(source.toolbox(), 0.5)
        calls = [("block", {})], [("add", {"a": 1, "b": 1})]
        blocked, added = await told(converse, source, *calls)
    assert "no answer within 0.3 seconds" in blocked.text
    assert added.text == "2"
    assert len((tmp_path / "pids").read_text().split()) == 3
    assert not (tmp_path / "two").exists()
