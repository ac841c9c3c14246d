"""A process killed inside any node: the next one goes on, and no finished tool runs again."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest
from dying_process import ASKED, THREAD, context, script, tools_noting_in
from langchain_core.messages import ToolMessage

from everlong.graph.runtime import open_agent
from everlong.stores import ledger, transcripts
from invariants import check_state
from scripted_model import ScriptedModel

HERE = Path(__file__).parent


async def killed(dsn: str, node: str, notes: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / "dying_process.py"),
        dsn,
        node,
        str(notes),
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        _, errors = await process.communicate()
    assert process.returncode == -signal.SIGKILL, errors.decode()


@pytest.mark.parametrize(
    "node",
    ["open_call", "tools", "evict", "compact", "reason", "flush_memory", "consolidate"],
)
async def test_a_call_killed_inside_a_node_goes_on_in_another_process(dsn, tmp_path, node):
    notes = tmp_path / "booked.txt"
    await killed(dsn, node, notes)
    async with open_agent(tools=tools_noting_in(notes), dsn=dsn) as agent:
        model = ScriptedModel(script=script())
        await agent.ainvoke(None, THREAD, context=context(model))
        values = (await agent.aget_state(THREAD)).values
        messages = values["messages"]
        check_state(messages)
        assert notes.read_text() == "booked 12\n"
        assert messages[-1].text == "Booked, receipt 881."
        result, key = [message for message in messages if isinstance(message, ToolMessage)]
        assert "large_tool_results/" in result.text
        assert key.text == "the key"
        entries = await transcripts.read(agent.store, "kim", "t1")
        texts = [entry.text for entry in entries]
        assert texts.count(ASKED) == 1
        assert texts[-1] == "Booked, receipt 881."
        assert len({entry.key for entry in await ledger.entries(agent.store, "kim")}) == len(
            await ledger.entries(agent.store, "kim")
        )
        again = {"messages": [{"role": "user", "content": "thanks"}]}
        await agent.ainvoke(again, THREAD, context=context(ScriptedModel(script=script())))
        check_state((await agent.aget_state(THREAD)).values["messages"])
