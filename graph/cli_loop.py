"""An event loop in a thread of its own, so that the terminal's thread hears Ctrl-C."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Stopped(Exception):  # noqa: N818 - no error: a person stopped it
    """The work was cancelled by Ctrl-C, and has ended."""


class LoopThread:
    """Runs asynchronous work from a thread that may be interrupted; a context manager.

    The thread is a daemon: a person who presses Ctrl-C twice waits for nothing.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

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
            return ended.result()
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(cancel)
            return ended.result()


def _pass_on(ended: "Future[T]", task: "asyncio.Task[T]") -> None:
    """Tell the waiting thread how the work has ended."""
    if task.cancelled():
        ended.set_exception(Stopped())
    elif error := task.exception():
        ended.set_exception(error)
    else:
        ended.set_result(task.result())
