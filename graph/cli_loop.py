"""An event loop in a thread of its own, so that the terminal's thread hears Ctrl-C."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from typing import Any, Self, TypeVar

T = TypeVar("T")
LOOK_SECONDS = 0.1
END_SECONDS = 3
"""How long to wait at the end for what was cancelled."""


class Stopped(Exception):  # noqa: N818 - no error: a person stopped it
    """The work was cancelled by Ctrl-C, and has ended."""


class LoopThread:
    """Runs asynchronous work from a thread that may be interrupted; a context manager.

    The thread is a daemon: what does not end when it is cancelled keeps nobody from leaving.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if not self._thread.is_alive():
            return
        ending = asyncio.run_coroutine_threadsafe(_end_all(), self._loop)
        with suppress(TimeoutError):
            ending.result(END_SECONDS)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(END_SECONDS)
            self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end; Ctrl-C cancels the work and waits for its end, a second one does not.

        Raises:
            Stopped: it was cancelled.
            KeyboardInterrupt: at the second Ctrl-C.
        """
        ended: Future[T] = Future()
        begun: list[asyncio.Task[T]] = []

        def begin() -> None:
            begun.append(self._loop.create_task(work))
            begun[0].add_done_callback(partial(_pass_on, ended))

        def cancel() -> None:
            begun[0].cancel()

        self._loop.call_soon_threadsafe(begin)
        try:
            return self._awaited(ended)
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(cancel)
            return self._awaited(ended)

    def _awaited(self, ended: "Future[T]") -> T:
        """Wait for the result, looking up now and then: a lock may sleep through a signal."""
        while not ended.done():
            if not self._thread.is_alive():
                msg = "expected the event loop to run; got its end"
                raise RuntimeError(msg)
            wait([ended], timeout=LOOK_SECONDS)
        return ended.result()


def _pass_on(ended: "Future[T]", task: "asyncio.Task[T]") -> None:
    """Tell the waiting thread how the work has ended."""
    if task.cancelled():
        ended.set_exception(Stopped())
    elif error := task.exception():
        ended.set_exception(error)
    else:
        ended.set_result(task.result())


async def _end_all() -> None:
    """Cancel what still runs, and wait for its end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
