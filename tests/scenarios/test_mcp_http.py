"""Tools of an MCP server on HTTP, which may be started anew or be gone."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from langchain_core.tools import ToolException

from everlong.nodes import mcp_session
from everlong.nodes.tool_source import ToolSource
from fix_postgres import wait_until

TRIAL = Path(__file__).parents[1] / "mcp_server.py"


class Server:
    """The server, which can be killed and started again at its port."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    def start(self) -> None:
        command = [sys.executable, str(TRIAL), "http", str(self.port)]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # noqa: S603 - ours
        wait_until(self.answers)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def server():
    found = Server()
    yield found
    found.kill()


async def test_a_server_that_was_started_anew_is_met_again_and_one_that_is_gone_is_told(
    server, monkeypatch, caplog
):
    monkeypatch.setattr(mcp_session, "PING_SECONDS", 0.5)
    monkeypatch.setattr(mcp_session, "AWAY_SECONDS", 0.0)
    url = f"http://127.0.0.1:{server.port}/mcp"
    given = {"t": {"type": "http", "url": url, "headers": {"Authorization": "Bearer sk-77-x"}}}
    source = ToolSource((), mcp=given)

    async def add() -> str:
        box = await source.toolbox()
        return await box.node.tools_by_name["t_add"].ainvoke({"a": 1, "b": 2})

    try:
        assert await add() == "3"
        box = await source.toolbox()
        await box.node.tools_by_name["t_learn"].ainvoke({"name": "owl"})
        async with asyncio.timeout(5):
            while "t_owl" not in (await source.toolbox()).own:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)
        server.kill()
        server.start()
        assert await asyncio.gather(add(), add()) == ["3", "3"]
        server.kill()
        monkeypatch.setattr(mcp_session, "IDLE_SECONDS", 0.0)
        with pytest.raises(ToolException, match=r"'t' cannot be reached .*nothing was done"):
            await add()
        server.start()
        assert await add() == "3"
    finally:
        await source.close()
    assert "sk-77-x" not in caplog.text
