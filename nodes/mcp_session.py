"""The session with one MCP server: begun when it is needed, begun again when it has ended."""

import asyncio
import logging
import time
from typing import Any, cast

from anyio import ClosedResourceError
from langchain_core.tools import ToolException
from mcp import ClientSession, McpError
from mcp.types import CONNECTION_CLOSED, CallToolResult, Tool

from everlong.nodes.mcp_config import McpConnection
from everlong.nodes.mcp_live import NOT_SENT, LiveSession
from everlong.nodes.mcp_transport import opened, tools_of

log = logging.getLogger("everlong.mcp")

START_SECONDS = 30.0
"""How long a server may take until it has told its tools."""
PING_SECONDS = 5.0
"""How long a server that has not answered a call may take to show that it is alive."""
AWAY_SECONDS = 30.0
"""Before a server is tried again that did not start."""
CLOSE_SECONDS = 6.0
SHOWN_CHARS = 300
IDLE_SECONDS = 30.0
"""After so long without a call a server on HTTP, whose end nobody tells, has to show the same."""
UNKNOWN_SESSION = 32600
"""What the client makes of an HTTP server that has forgotten the session: it was started anew."""
DIED = (
    "The MCP server {name!r} ended in the middle of this call; whether it had an effect is not "
    "known. The next call starts it again."
)
AWAY = "The MCP server {name!r} cannot be reached ({why}); nothing was done. Try again later."


class McpSession:
    """One server and what it offers; everything here runs in one loop."""

    def __init__(self, connection: McpConnection) -> None:
        self.connection = connection
        self.tools: tuple[Tool, ...] = ()
        """What it told when it was last started; also while it is away."""
        self.problem = ""
        """Why it is away; empty where it is not."""
        self._free_at = 0.0
        self._starting = asyncio.Lock()
        self._live: LiveSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_doubtful = False
        self._has_changed = False
        self._used_at = 0.0

    @property
    def is_due(self) -> bool:
        """Whether a start is worth a try: it had none, failed a while ago, or offers others."""
        is_free = self._live is None and not self.tools and time.monotonic() >= self._free_at
        is_tried_again = bool(self.problem) and self._starting.locked()
        return (is_free and not is_tried_again) or self._has_changed

    async def start(self) -> None:
        """Begin the session, where it has not begun; after a failure not for a while.

        Where it has begun, ask for the tools again if the server has said that they changed.

        Raises:
            ToolException: the server cannot be had; the text says why.
        """
        async with self._starting:
            if self._live is not None and self._live.is_open:
                if self._has_changed:
                    await self._look_again(self._live.session)
                return
            if time.monotonic() < self._free_at:
                raise ToolException(self._away())
            try:
                self._has_changed = False
                self._live, self.tools = await self._begun()
            except Exception as error:
                self._live = None
                self.problem = self._words(error)
                self._free_at = time.monotonic() + AWAY_SECONDS
                log.error("MCP server %r does not start: %s", self._name, self.problem)  # noqa: TRY400 - a traceback may show a secret
                raise ToolException(self._away()) from error
            self.problem, self._is_doubtful = "", False

    async def call(
        self, name: str, arguments: dict[str, Any], meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        """Call a tool; where the session had ended before, once more in another one.

        `meta` goes with the call, beside what the model says.

        Raises:
            ToolException: the server refused, ended, or cannot be had; the text is for the model.
        """
        live = await self._ready()
        try:
            return await self._called(live, name, arguments, meta)
        except NOT_SENT:
            self._lose(live)
        live = await self._ready()
        try:
            return await self._called(live, name, arguments, meta)
        except NOT_SENT as error:
            self._lose(live)
            raise ToolException(self._away()) from error

    async def close(self) -> None:
        """End the session, and the process of a server that was started for it."""
        if self._live is not None:
            self._lose(self._live, at_once=True)
        if tasks := list(self._tasks):
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _called(
        self, live: LiveSession, name: str, arguments: dict[str, Any], meta: dict[str, Any] | None
    ) -> CallToolResult:
        try:
            return await live.call(name, arguments, meta)
        except asyncio.CancelledError:
            self._is_doubtful = True  # it may have taken too long
            raise
        except McpError as error:
            if error.error.code == UNKNOWN_SESSION:
                raise ClosedResourceError from error
            if error.error.code != CONNECTION_CLOSED:
                raise ToolException(self._words(error)) from error
            self._lose(live, at_once=True)
            log.warning("MCP server %r ended in the middle of a call", self._name)
            raise ToolException(DIED.format(name=self._name)) from error

    async def _ready(self) -> LiveSession:
        """Return a session that is alive as far as is known; begin one where it is not."""
        live, idle = self._live, time.monotonic() - self._used_at
        self._used_at += idle
        on_http = self.connection.transport != "stdio"
        if live is not None and (self._is_doubtful or (on_http and idle > IDLE_SECONDS)):
            self._is_doubtful = False
            try:
                async with asyncio.timeout(PING_SECONDS):
                    await live.session.send_ping()
            except (TimeoutError, McpError, *NOT_SENT):
                log.warning("MCP server %r does not answer; starting it again", self._name)
                self._lose(live, at_once=True)
        await self.start()
        if self._live is None:
            raise ToolException(self._away())
        return self._live

    async def _begun(self) -> tuple[LiveSession, tuple[Tool, ...]]:
        if self._tasks and self.connection.transport == "stdio":  # one process, never two
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        live = LiveSession(asyncio.get_running_loop().create_future())
        live.task = asyncio.create_task(self._hold(live))
        self._tasks.add(live.task)
        live.task.add_done_callback(self._tasks.discard)
        try:
            async with asyncio.timeout(START_SECONDS):
                _, tools = await live.ready
        except BaseException as error:  # a cancel, too: nothing else would end what was begun
            live.task.cancel()
            if not isinstance(error, TimeoutError):
                raise
            msg = f"it told no tools within {START_SECONDS:g} s"
            raise TimeoutError(msg) from None
        return live, tools

    async def _look_again(self, session: ClientSession) -> None:
        """Ask what is offered now; a server that does not tell keeps offering what it did."""
        self._has_changed = False
        try:
            async with asyncio.timeout(PING_SECONDS):
                self.tools = await tools_of(session)
        except (TimeoutError, McpError, *NOT_SENT) as error:
            log.warning("MCP server %r does not tell its tools: %s", self._name, self._words(error))

    def _note_change(self) -> None:
        self._has_changed = True

    async def _hold(self, live: LiveSession) -> None:
        """Keep a session open until it shall end: the task that opened it has to close it."""
        try:
            async with opened(self.connection, self._note_change) as session:
                await session.initialize()
                live.ready.set_result((session, await tools_of(session)))
                await live.ending.wait()
        except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - whoever waits is told
            if not live.ready.done():
                live.ready.set_exception(error)
            else:
                log.debug(
                    "The session with MCP server %r ended: %s", self._name, self._words(error)
                )
        finally:
            live.ready.cancel()  # where it was not told: nobody waits on for what will not come

    def _lose(self, live: LiveSession, *, at_once: bool = False) -> None:
        """Have the next call begin another session; calls of this one end first, or `at_once`."""
        live.lose(at_once=at_once)
        if self._live is live:
            self._live = None

    @property
    def _name(self) -> str:
        return self.connection.name

    def _away(self) -> str:
        return AWAY.format(name=self._name, why=self.problem or "its connection was closed")

    def _words(self, error: BaseException) -> str:
        """Say what went wrong, without what only the settings know."""
        if isinstance(error, BaseExceptionGroup):
            group = cast("Any", error)
            return self._words(group.exceptions[0])
        name = type(error).__name__
        said = f"{name}: {error}" if str(error) else name
        return self.connection.without_secrets(said)[:SHOWN_CHARS]
