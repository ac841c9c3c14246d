"""Conversations in which the tools of the MCP server of the tests are called."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from everlong.nodes.tool_source import ToolSource
from scripted_model import ScriptedModel, calling

TRIAL = str(Path(__file__).with_name("mcp_server.py"))
SERVER: dict[str, Any] = {"command": sys.executable, "args": [TRIAL]}
MOST_SECONDS = 60


def results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def said(*rounds: Sequence[tuple[str, Mapping[str, Any]]]) -> ScriptedModel:
    """Return a model that calls these tools of the server `t`, round by round, and is done."""
    script: list[Any] = [
        calling(*((f"t_{name}", args) for name, args in calls), prefix=f"c{number}")
        for number, calls in enumerate(rounds)
    ]
    return ScriptedModel(script=[*script, "Done."])


async def told(
    converse: Callable[..., Any],
    source: ToolSource,
    *rounds: Sequence[tuple[str, Mapping[str, Any]]],
    **more: Any,
) -> list[ToolMessage]:
    """Return what the model is told in a conversation of these calls."""
    talk = converse(model=said(*rounds), tools=source, **more)
    async with asyncio.timeout(MOST_SECONDS):
        assert await talk.say("go") == "Done."
    return results(await talk.messages())


@asynccontextmanager
async def serving(**server: Any) -> AsyncGenerator[ToolSource]:
    """Yield the tools of a server `t`, which ends with this; `server` is beside the usual one."""
    source = ToolSource((), mcp={"t": {**SERVER, **server}})
    try:
        yield source
    finally:
        await source.close()
