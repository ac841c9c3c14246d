"""Where a graph's tools come from: given with it, named by a setting, offered by MCP servers."""

import asyncio
import logging
from collections.abc import Iterable, Sequence

from langchain_core.tools import BaseTool

from everlong.nodes.guidance import READ_STORED
from everlong.nodes.mcp_config import Given, McpConnection, servers_in
from everlong.nodes.mcp_servers import McpServers
from everlong.nodes.tool_paths import Tool, tools_at
from everlong.nodes.toolbox import MEMORY, READING, SESSIONS, Toolbox
from everlong.stores.settings import settings

log = logging.getLogger("everlong.tools")

OURS = frozenset({READ_STORED, *(tool.name for tool in (*READING, *MEMORY, *SESSIONS))})


class ToolSource:
    """The tools of one graph, as they are at any time; None: what the process's settings name.

    Nothing is imported, read or started before it is needed, or `check` is called.
    """

    def __init__(self, tools: Sequence[Tool] | None = None, mcp: Given | None = None) -> None:
        self._tools = tools
        self._mcp = mcp
        self._known: tuple[Toolbox, McpServers] | None = None
        self._offered: tuple[BaseTool, ...] = ()
        self._box: Toolbox | None = None

    def check(self) -> tuple[Toolbox, McpServers]:
        """Import the tools, and read where MCP servers are; none of these is started.

        Raises:
            ToolsError: what a setting names cannot be had.
            ValueError: two of the given tools have one name.
        """
        if self._known is None:
            if self._tools is None:
                self._tools = tools_at(settings().tools, "EVERLONG_TOOLS")
            box = Toolbox(self._tools)
            for name in sorted(OURS & box.own):
                log.warning("A tool of yours takes the place of everlong's own %r", name)
            self._known = box, McpServers(self._connections())
        return self._known

    async def toolbox(self) -> Toolbox:
        """Return the tools as they are now; the same object as long as they are the same.

        Raises:
            Exception: as `check`.
        """
        box, servers = self._known or await asyncio.to_thread(self.check)
        if not servers.connections:
            return box
        offered = await servers.tools()
        if self._box is None or not _same(offered, self._offered):
            more = _unlike({*box.own, *OURS}, offered)
            self._box, self._offered = Toolbox([*(self._tools or ()), *more]), offered
        return self._box

    async def problems(self) -> dict[str, str]:
        """Return which MCP servers cannot be had, and why, after a try.

        Raises:
            Exception: as `check`.
        """
        _, servers = self._known or await asyncio.to_thread(self.check)
        return await servers.problems()

    async def close(self) -> None:
        """Leave the MCP servers; those that were started end."""
        if self._known is not None:
            await self._known[1].close()

    def _connections(self) -> Sequence[McpConnection]:
        if self._mcp is not None:
            return servers_in(self._mcp, "mcp")
        given = settings().mcp
        return servers_in(given, "EVERLONG_MCP") if given else ()


def _same(one: Sequence[BaseTool], other: Sequence[BaseTool]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def _unlike(known: set[str], offered: Iterable[BaseTool]) -> list[BaseTool]:
    """Return the tools whose names nobody has yet: no server takes the place of another tool."""
    found: list[BaseTool] = []
    for tool in offered:
        if tool.name in known:
            log.error(
                "The tool %r of an MCP server is left out: there is one of this name. "
                "Give the server another name in the settings.",
                tool.name,
            )
        else:
            known.add(tool.name)
            found.append(tool)
    return found
