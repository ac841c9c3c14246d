"""An event loop in a thread of its own, for what outlives the loop that asks for it."""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
END_SECONDS = 10.0
"""How long the end of the process waits for what is closed then."""


class OwnLoop:
    """Runs work of many loops in one loop: it begins with the first work, in a daemon thread.

    `ending` is done at the end of the process, where nobody has closed the loop before.
    """

    def __init__(self, name: str, ending: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._name = name
        self._ending = ending
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beginning = threading.Lock()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end; where the caller is cancelled, the work is, too."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    async def close(self) -> None:
        """Do `ending`, and end the loop; the next work begins another one."""
        with self._beginning:
            loop, self._loop = self._loop, None
        if loop is not None:
            atexit.unregister(self._close_at_exit)
            ended = asyncio.run_coroutine_threadsafe(self._ending(), loop)
            try:
                await asyncio.wrap_future(ended)
            finally:
                loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._beginning:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_run, args=(self._loop,), name=self._name, daemon=True
                ).start()
                atexit.register(self._close_at_exit)
            return self._loop

    def _close_at_exit(self) -> None:
        loop = self._loop
        if loop is not None and loop.is_running():
            with suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self._ending(), loop).result(END_SECONDS)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
