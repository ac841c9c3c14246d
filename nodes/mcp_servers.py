"""The MCP servers of a process: one session with each, however many loops call."""

import asyncio
import hashlib
import logging
import re
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.runtime import get_runtime

from everlong.nodes.context import user_of
from everlong.nodes.mcp_config import McpConnection
from everlong.nodes.own_loop import OwnLoop

if TYPE_CHECKING:
    from everlong.nodes.mcp_session import McpSession

log = logging.getLogger("everlong.mcp")

NAME_CHARS = 64
"""What providers allow."""
HASH_CHARS = 8
SHOWN_CHARS = 300
AGAIN_SECONDS = 2.0
"""How long a call waits for a server that did not start before; it may find it the next time."""
USER = "everlong/user_id"
"""Under what name `_meta` of a call says whose it is."""
_ODD = re.compile(r"[^a-zA-Z0-9_-]")


class McpServers:
    """Starts servers when their tools are first asked for, and closes them at the end.

    They live in a loop of their own: a server process that runs graphs in several loops has one
    session with each, and a caller that is cancelled ends its own call only.
    """

    def __init__(self, connections: Sequence[McpConnection]) -> None:
        self.connections = connections
        self._sessions: list[McpSession] = []
        self._tools: dict[str, tuple[Any, tuple[BaseTool, ...]]] = {}
        self._trying: set[asyncio.Task[None]] = set()
        self._loop = OwnLoop("everlong-mcp", self._close)

    async def tools(self) -> tuple[BaseTool, ...]:
        """Return what the servers offer, in their order; one that is away offers what it last did.

        One that does not start is logged, and offers nothing until a later call finds it.
        """
        if self.connections and (not self._sessions or any(one.is_due for one in self._sessions)):
            await self._loop.run(self._start())
        return tuple(tool for one in self._sessions for tool in self._tools_of(one))

    async def problems(self) -> dict[str, str]:
        """Return why servers are away, by name, after a try to start them."""
        await self.tools()
        return {one.connection.name: one.problem for one in self._sessions if one.problem}

    async def close(self) -> None:
        """End all sessions and the processes that were started for them."""
        await self._loop.close()

    def _tools_of(self, session: "McpSession") -> tuple[BaseTool, ...]:
        """Return a server's tools; the same objects as long as it offers the same."""
        name = session.connection.name
        known, made = self._tools.get(name, (None, ()))
        if known is not session.tools:
            made = tuple(self._made(session))
            self._tools[name] = session.tools, made
        return made

    def _made(self, session: "McpSession") -> list[BaseTool]:
        from everlong.nodes.mcp_transport import as_tool  # noqa: PLC0415 - needs the extra

        async def call(name: str, arguments: dict[str, Any]) -> Any:
            meta = {USER: user_of(get_runtime())} if session.connection.sends_user else None
            return await self._loop.run(session.call(name, arguments, meta))

        server, found = session.connection.name, list[BaseTool]()
        for tool in session.tools:
            try:
                made = as_tool(tool, tool_name(server, tool.name), call)
                convert_to_openai_tool(made)  # a request does so, for all tools at once
            except Exception as error:  # noqa: BLE001 - whatever a schema of others brings about
                why = f"{type(error).__name__}: {error}"[:SHOWN_CHARS]
                log.error("The tool %r of MCP server %r is left out: %s", tool.name, server, why)  # noqa: TRY400 - the schema is theirs
                continue
            found.append(made)
        return found

    async def _start(self) -> None:
        if not self._sessions:
            session = await asyncio.to_thread(_session_class)
            self._sessions = self._sessions or [session(one) for one in self.connections]
        due = [one for one in self._sessions if one.is_due]
        new = [_tried(one.start()) for one in due if not one.problem]
        again = [asyncio.create_task(_tried(one.start())) for one in due if one.problem]
        self._trying.update(again)
        for task in again:
            task.add_done_callback(self._trying.discard)
        await asyncio.gather(*new)
        if again:
            await asyncio.wait(again, timeout=AGAIN_SECONDS)

    async def _close(self) -> None:
        sessions, self._sessions = self._sessions, []
        for task in self._trying:
            task.cancel()
        await asyncio.gather(*(one.close() for one in sessions))


async def _tried(start: Coroutine[Any, Any, None]) -> None:
    try:
        await start
    except ToolException as error:  # no traceback: it may show a secret
        log.debug("The tools of an MCP server are missing in this call: %s", error)


def _session_class() -> "type[McpSession]":
    from everlong.nodes.mcp_session import McpSession  # noqa: PLC0415 - takes a second, in a thread

    return McpSession


def tool_name(server: str, tool: str) -> str:
    """Return what a server's tool is called in the graph, as providers allow it.

    A hash tells names apart that are too long or hold letters that none may have.
    """
    whole = f"{server}_{tool}"
    name = _ODD.sub("_", whole)
    if whole.isascii() and len(name) <= NAME_CHARS:
        return name
    mark = hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:HASH_CHARS]
    return f"{name[: NAME_CHARS - HASH_CHARS - 1]}_{mark}"
