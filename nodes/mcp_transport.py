"""How an MCP server is reached, and what it says, by langchain-mcp-adapters and its client.

Imported only where a server is named: it takes a second, and needs an extra.
"""

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from langchain_core.tools import BaseTool
from langchain_mcp_adapters.sessions import Connection, create_session
from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
from mcp import ClientSession, StdioServerParameters
from mcp.client.session import MessageHandlerFnT
from mcp.client.stdio import stdio_client
from mcp.types import (
    CallToolResult,
    PaginatedRequestParams,
    ServerNotification,
    Tool,
    ToolListChangedNotification,
)

from everlong.nodes.mcp_config import McpConnection
from everlong.stores.text import clean, clean_text

log = logging.getLogger("everlong.mcp")

READ_SECONDS = 86_400.0
"""How long a call may be silent on HTTP; how long it may take, `EVERLONG_TOOL_SECONDS` says."""
MOST_PAGES = 100

Call = Callable[[str, dict[str, Any]], Awaitable[CallToolResult]]


@asynccontextmanager
async def opened(
    connection: McpConnection, tools_changed: Callable[[], None]
) -> AsyncGenerator[ClientSession]:
    """Open a session; for stdio, with a process of its own.

    `tools_changed` is called when the server says that it offers others.
    """

    async def heard(message: Any) -> None:
        if isinstance(message, ServerNotification) and isinstance(
            message.root, ToolListChangedNotification
        ):
            tools_changed()

    given: dict[str, Any] = {
        "transport": connection.transport,
        "url": connection.url,
        "headers": dict(connection.headers),
        "sse_read_timeout": READ_SECONDS,
        "session_kwargs": {"message_handler": heard},
    }
    is_stdio = connection.transport == "stdio"
    opening = _process(connection, heard) if is_stdio else create_session(cast("Connection", given))
    async with opening as session:
        yield session


@asynccontextmanager
async def _process(
    connection: McpConnection, heard: MessageHandlerFnT
) -> AsyncGenerator[ClientSession]:
    """Start the server; what it says on standard error is shown where we are logged at DEBUG."""
    server = StdioServerParameters(
        command=connection.command,
        args=list(connection.args),
        env=None if connection.env is None else dict(connection.env),
        cwd=connection.cwd,
        encoding_error_handler="replace",
    )
    to_stderr = log.isEnabledFor(logging.DEBUG) and sys.__stderr__
    with await asyncio.to_thread(Path(os.devnull).open, "w") as nowhere:
        async with (
            stdio_client(server, errlog=to_stderr or nowhere) as (reading, writing),
            ClientSession(reading, writing, message_handler=heard) as session,
        ):
            yield session


async def tools_of(session: ClientSession) -> tuple[Tool, ...]:
    """Return all the tools that a server offers, in its order."""
    found: list[Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        found += page.tools
        cursor = page.nextCursor
        if not cursor:
            break
    return tuple(found)


class McpTool(BaseTool):
    """A tool of an MCP server, under the name that it has in the graph."""

    converted: Any
    """What langchain-mcp-adapters makes of it."""

    async def _arun(self, /, **arguments: Any) -> Any:
        content, artifact = await self.converted.coroutine(arguments=arguments)
        return content_of(content, artifact)

    def _run(self, /, **arguments: Any) -> Any:
        msg = f"{self.name}: expected `ainvoke`; a tool of an MCP server runs asynchronously"
        raise NotImplementedError(msg)


def as_tool(tool: Tool, name: str, call: Call) -> BaseTool:
    """Return what the graph offers for a server's tool; `call` calls it there."""

    async def routed(request: Any, handler: Any) -> CallToolResult:  # noqa: ARG001 - their name
        return await call(tool.name, request.args["arguments"])

    return McpTool(
        name=name,
        description=clean_text(tool.description or tool.name),
        args_schema={"properties": {}} | clean(tool.inputSchema),
        converted=convert_mcp_tool_to_langchain_tool(
            None,
            tool,
            connection=cast("Connection", {"transport": "stdio"}),  # not opened: `routed` answers
            tool_interceptors=[routed],
            handle_tool_errors=False,
        ),
    )


def content_of(blocks: list[Any], artifact: Any) -> str | list[Any]:
    """Return a result as it goes into a message: text as text, which every provider takes.

    What a server gives in two forms, as text and as an object, is kept once. Files, and pictures
    by their address, are only named: a provider that refuses one would refuse the thread for ever.
    """
    if not blocks and artifact:
        return json.dumps(artifact["structured_content"], ensure_ascii=False)
    shown = [_shown(block) for block in blocks]
    if all(block["type"] == "text" for block in shown):
        return "\n\n".join(block["text"] for block in shown)
    return shown


def _shown(block: dict[str, Any]) -> dict[str, Any]:
    kind, inline = block["type"], block.get("base64")
    if kind == "text" or (kind == "image" and inline):
        return {name: value for name, value in block.items() if name != "id"}
    what = f"{len(inline) * 3 // 4:,} bytes, not shown" if inline else block.get("url")
    mime = block.get("mime_type")
    return {"type": "text", "text": f"[{kind}: {what}{f', {mime}' if mime else ''}]"}
