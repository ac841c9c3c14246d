"""One session with an MCP server, from its beginning to its end, and the calls in it."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from anyio import BrokenResourceError, ClosedResourceError
from mcp import ClientSession, McpError
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolResult,
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
    ErrorData,
    Tool,
)

NOT_SENT = (ClosedResourceError, BrokenResourceError)
"""The session had ended before: the server never saw the call."""


@dataclass
class LiveSession:
    """A session that was begun, and the task that holds it open."""

    ready: "asyncio.Future[tuple[ClientSession, tuple[Tool, ...]]]"
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None
    calls: int = 0
    is_lost: bool = False
    telling: "set[asyncio.Task[None]]" = field(default_factory=set["asyncio.Task[None]"])
    """What tells the server that nobody waits any more for a call."""

    @property
    def session(self) -> ClientSession:
        """The client's, once it is ready."""
        return self.ready.result()[0]

    @property
    def is_open(self) -> bool:
        """Whether the task still holds it."""
        return self.task is not None and not self.task.done()

    def lose(self, *, at_once: bool) -> None:
        """End it: `at_once`, else after the calls that are in it."""
        self.is_lost = True
        if at_once or not self.calls:
            self.ending.set()

    async def call(
        self, name: str, arguments: dict[str, Any], meta: dict[str, Any] | None
    ) -> CallToolResult:
        """Wait for an answer; where the caller is cancelled, tell the server so.

        Raises:
            McpError: the server refused; `CONNECTION_CLOSED` where it ended.
        """
        self.calls += 1
        numbers: list[int] = []
        call = partial(self.session.call_tool, name, arguments, meta=meta)
        asking = asyncio.create_task(_numbered(self.session, call, numbers))
        ended = cast("asyncio.Task[None]", self.task)
        try:
            await asyncio.wait([asking, ended], return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():  # no answer comes after the end
                raise McpError(ErrorData(code=CONNECTION_CLOSED, message="the session ended"))
            return asking.result()
        except asyncio.CancelledError:
            self._give_up(numbers)
            raise
        finally:
            asking.cancel()
            self.calls -= 1
            if self.is_lost and not self.calls:
                self.ending.set()

    def _give_up(self, numbers: list[int]) -> None:
        for number in numbers:
            task = asyncio.create_task(_tell_cancelled(self.session, number))
            self.telling.add(task)
            task.add_done_callback(self.telling.discard)


async def _numbered(
    session: ClientSession,
    call: Callable[[], Coroutine[Any, Any, CallToolResult]],
    numbers: list[int],
) -> CallToolResult:
    """Make a call, and note the number that the session gives it first thing."""
    numbers.append(session._request_id)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - nothing else tells it
    return await call()


async def _tell_cancelled(session: ClientSession, number: int) -> None:
    told = CancelledNotification(params=CancelledNotificationParams(requestId=number))
    with suppress(*NOT_SENT):
        await session.send_notification(ClientNotification(told))
