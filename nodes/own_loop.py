"""An event loop in a thread of its own, for what outlives the loop that asks for it."""

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
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
        self._ended: Future[None] | None = None
        self._beginning = threading.Lock()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end; where the caller is cancelled, the work is, too."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    async def close(self) -> None:
        """Do `ending`, and end the loop; the next work begins another one.

        Where the caller is cancelled, it goes on to its end, and the end of the process waits.
        """
        with self._beginning:
            loop, self._loop = self._loop, None
        if loop is not None:
            self._ended = asyncio.run_coroutine_threadsafe(self._ending(), loop)
            self._ended.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))
            await asyncio.shield(asyncio.wrap_future(self._ended))

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._beginning:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(
                    target=_run, args=(self._loop,), name=self._name, daemon=True
                ).start()
                atexit.unregister(self._close_at_exit)  # once, however often it begins
                atexit.register(self._close_at_exit)
            return self._loop

    def _close_at_exit(self) -> None:
        loop, ended = self._loop, self._ended
        if loop is not None and loop.is_running():
            ended = asyncio.run_coroutine_threadsafe(self._ending(), loop)
        if ended is not None:
            with suppress(Exception):  # whoever closed it was told
                ended.result(END_SECONDS)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
