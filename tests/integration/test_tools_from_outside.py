"""Tools that the settings name, in a graph server, in the chat and in the worked example."""

import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from langgraph_sdk import get_client

from cli_process import everlong
from everlong.nodes.errors import ToolsError
from everlong.stores.settings import settings
from fix_postgres import is_alive, wait_until
from http_thread import HttpThread, RunFailedError
from langgraph_server import LangGraphServer, make_project

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "mcp_tools"
TRIAL = {"command": sys.executable, "args": [str(ROOT / "tests" / "mcp_server.py")]}
TOOLS = '''
def lookup(order: str) -> str:
    """Look an order up."""
    return f"order {order} is on its way"
'''
WORKERS = 2


@pytest.fixture(scope="module")
def server(tmp_path_factory, server_dsn):
    """A server whose workers have a loop each; none of them may block its loop."""
    folder = make_project(tmp_path_factory.mktemp("tools"))
    (folder / "shop_tools.py").write_text(TOOLS, "utf-8")
    settings = {
        "DATABASE_URL": server_dsn,
        "EVERLONG_POOL_SIZE": "3",
        "EVERLONG_TOOLS": "shop_tools:lookup",
        "EVERLONG_MCP": json.dumps({"trial": TRIAL}),
        "EVERLONG_APPROVE_TOOLS": "trial_add",
        "BG_JOB_ISOLATED_LOOPS": "true",
    }
    with LangGraphServer(folder, workers=WORKERS, **settings) as running:
        yield running
    assert "BlockingError" not in running.log_text()


@pytest.fixture
async def client(server):
    async with get_client(url=server.url, api_key=None) as found:
        yield found


async def new(client, **more):
    context = {"user_id": "kim-tools@example.com", "memory": {"enabled": False}}
    return await HttpThread.new(client, context | more, "everlong")


async def test_a_server_has_the_tools_of_its_settings_and_one_process_of_each_mcp_server(client):
    first, second = [await new(client) for _ in range(WORKERS)]
    assert "order 881 is on its way" in await first.say('call lookup {"order": "881"}')
    said = await asyncio.gather(*(one.say("call trial_whoami") for one in (first, second)))
    pids = {re.search(r"\d+", one)[0] for one in said}
    assert len(pids) == 1
    assert "ended in the middle" in await first.say("call trial_die")
    again = re.search(r"\d+", await second.say("call trial_whoami"))[0]
    assert again not in pids
    assert is_alive(int(again))


async def test_no_client_runs_a_call_that_the_operator_has_people_look_at(client):
    thread = await new(client, approve_tools=[])
    await thread.say('call trial_add {"a": 2, "b": 3}')
    (asked,) = (await thread.state())["interrupts"]
    (request,) = asked["value"]["action_requests"]
    assert (request["name"], request["args"]) == ("trial_add", {"a": 2, "b": 3})
    assert "decisions" in asked["response_schema"]["properties"]
    await thread.run(command={"resume": {asked["id"]: {"decisions": [{"type": "approve"}]}}})
    assert (await thread.texts())[2] == "5"


async def test_a_wrong_answer_changes_nothing_and_the_right_one_is_heard_after_a_restart(server):
    async with get_client(url=server.url, api_key=None) as client:
        thread = await new(client)
        pid = int(re.search(r"\d+", await thread.say("call trial_whoami"))[0])
        await thread.say('call trial_add {"a": 2, "b": 3}')
        waiting = (await thread.state())["interrupts"]
        with pytest.raises(RunFailedError, match="approve"):
            await thread.run(command={"resume": {"decisions": [{"type": "perhaps"}]}})
        assert (await thread.state())["interrupts"] == waiting
    server.stop()
    assert not is_alive(pid)
    server.start()
    async with get_client(url=server.url, api_key=None) as client:
        thread.client = client
        assert (await thread.state())["interrupts"] == waiting
        await thread.run(command={"resume": {"decisions": [{"type": "approve"}]}})
        assert "5" in await thread.texts()


@pytest.mark.parametrize(
    "wrong",
    [
        {"EVERLONG_TOOLS": "nowhere.tools:TOOLS"},
        {"EVERLONG_MCP": '{"shop": {"command": "x", "env": {"KEY": "${NOT_SET}", "T": "sk-77"}}}'},
    ],
)
def test_a_server_says_at_its_start_which_setting_names_nothing(monkeypatch, wrong):
    (name,) = wrong
    monkeypatch.setenv(name, wrong[name])
    settings.cache_clear()
    spec = importlib.util.spec_from_file_location("agent_by_path", ROOT / "graph" / "agent.py")
    try:
        with pytest.raises(ToolsError, match=f"^`{name}") as refused:
            spec.loader.exec_module(importlib.util.module_from_spec(spec))
    finally:
        settings.cache_clear()
    assert "sk-77" not in str(refused.value)


def test_the_chat_has_the_tools_of_its_settings_and_asks(dsn):
    typed = 'call trial_whoami\ncall trial_add {"a": 2, "b": 3}\nperhaps\nno: not today\n'
    done = everlong(
        *("chat", "-u", "kim", "-t", "t1", "--dsn", dsn),
        given=typed,
        EVERLONG_MCP=json.dumps({"trial": TRIAL}),
        EVERLONG_APPROVE_TOOLS="*_add",
        EVERLONG_MEMORY__ENABLED="false",
    )
    (pid,) = re.findall(r"← (\d+)$", done.out, re.MULTILINE)
    asked = 'approval needed: The call trial_add({"a": 2, "b": 3}) waits for a person.'
    assert done.out.count(asked) == 2
    assert 'everlong: expected {"decisions": [{"type": "approve"}]}' in done.err
    assert "a person refused this call" in done.out
    assert "not today" in done.out
    wait_until(lambda: not is_alive(int(pid)))


def test_the_doctor_names_the_tools_and_the_server_that_does_not_start(dsn):
    servers = {"trial": TRIAL, "away": {"command": "no-such-command", "env": {"K": "sk-77"}}}
    done = everlong("doctor", "--dsn", dsn, EVERLONG_MCP=json.dumps(servers))
    assert done.code == 1
    assert re.search(r"✓ tools +0 of yours, \d+ of MCP servers: trial_add, ", done.out)
    assert "✗ mcp server  away does not start (FileNotFoundError" in done.out
    assert "sk-77" not in done.out + done.err


def test_the_worked_example_does_what_its_page_says(dsn):
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, str(EXAMPLE / "main.py")],
        env=os.environ | {"DATABASE_URL": dsn},  # noqa: TID251 - handed on to a process
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in (EXAMPLE / "README.md").read_text("utf-8")


def test_the_chat_of_the_examples_page_goes_as_it_says(dsn, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # noqa: TID251 - handed on
    page = (EXAMPLE / "README.md").read_text("utf-8")
    (exported,) = re.findall(r"^export (.*)$", page, re.MULTILINE)
    (chat,) = re.findall(r"^everlong (.*)$", page, re.MULTILINE)
    typed = re.findall(r"`(call .*?|yes)`", page)
    done = everlong(
        *(*chat.split(), "--dsn", dsn),
        given="\n".join(typed) + "\n",
        EVERLONG_MEMORY__ENABLED="false",
        **dict(one.split("=") for one in exported.split()),
    )
    assert "← crate: 3 in stock" in done.out
    assert "← 1 of crate reserved, 2 left" in done.out
