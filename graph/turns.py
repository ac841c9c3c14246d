"""What some servers leave to the graph: one run of a thread at a time, and each input once."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from everlong.graph.callers import Caller
from everlong.nodes.errors import ThreadBusyError
from everlong.stores.settings import settings

if TYPE_CHECKING:  # a graph on another checkpointer needs no driver
    from everlong.stores.plain_savers import PlainSaver


@asynccontextmanager
async def turn(caller: Caller, thread_id: str | None) -> AsyncGenerator[bool]:
    """Hold the thread while it is the run's turn; tell whether the run has begun before.

    A run that has begun before was started again because its process died: its input is in the
    thread, and perhaps that of later runs behind it. Inside another graph it is that one's turn.

    Raises:
        ThreadBusyError: another run holds the thread for too long.
    """
    saver = None if caller.is_inside else caller.saver
    async with alone(saver, thread_id) as found:
        run_id = _run_of(caller)
        yield bool(found and thread_id and run_id and await found.has_begun(thread_id, run_id))


@asynccontextmanager
async def alone(saver: Any, thread_id: str | None) -> AsyncGenerator["PlainSaver | None"]:
    """Hold a thread on a Postgres checkpointer that is not ours; else do nothing.

    With ours, the runner or the server sees to it that runs wait for each other.

    Raises:
        ThreadBusyError: another run holds the thread for too long.
    """
    found = _plain(saver)
    if found is None or thread_id is None:
        yield None
        return
    seconds = settings().thread_wait_seconds
    async with AsyncExitStack() as held:
        try:
            await held.enter_async_context(found.turn(thread_id, most_seconds=seconds))
        except TimeoutError as error:
            msg = (
                f"`thread_id`: expected {thread_id!r} to be free within {seconds:g} s; another run "
                "still holds it. Wait until that one ends, or cancel it; "
                "EVERLONG_THREAD_WAIT_SECONDS is how long a run waits."
            )
            raise ThreadBusyError(msg) from error
        yield found


def _plain(saver: Any) -> "PlainSaver | None":
    if getattr(saver, "conn", None) is None:
        return None
    from everlong.stores.plain_savers import plain_saver  # noqa: PLC0415 - Postgres' driver, with it

    return plain_saver(saver)


def _run_of(caller: Caller) -> str:
    """Return the run's id, where LangGraph would know it again: not where it forks the thread."""
    is_fork = bool(caller.config.get("configurable", {}).get("checkpoint_id"))
    return "" if is_fork else str(caller.config.get("metadata", {}).get("run_id") or "")
