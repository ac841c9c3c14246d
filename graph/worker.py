"""Workers: who does the memory work that calls in the background mode leave behind (R50)."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore

from everlong.graph.agent import Clock
from everlong.graph.upkeep import Upkeep
from everlong.nodes.working import Finished, Hands, work_through
from everlong.stores import work, work_queue
from everlong.stores.work import Work
from everlong.stores.work_queue import worker_on

log = logging.getLogger("everlong.worker")

LOOK_SECONDS = 2.0
"""Between two looks for records of others; those of the same process wake a worker at once."""
UPKEEP_SECONDS = 0.2
"""Between two parts of a sweep; `LOOK_SECONDS` where no more is due."""
AWAY_SECONDS = 10.0
"""Before the next look where the store does not answer."""
SWEEP_EVERY = 1_000
"""Looks, between two sweeps of old records."""
CLOSE_SECONDS = 10.0
"""How long a closing agent waits for the records that it wrote; others are left to others."""


def hands_on(
    store: BaseStore,
    clock: Clock,
    *,
    model: BaseChatModel | str | None = None,
    lease_seconds: float = 0,
) -> Hands:
    """Return a worker of this process; `model` is for records whose own has no name."""
    worker = worker_on(store, has_model=model is not None, lease_seconds=lease_seconds)
    return Hands(worker=worker, clock=clock, model=model)


async def work_on(
    hands: Hands,
    user_id: str | None = None,
    *,
    tell: Callable[[Finished], None],
    upkeep: Upkeep | None = None,
) -> None:
    """Do records as they come, until this is cancelled; a store that is away is waited for.

    `upkeep` is done beside it, a little at a time.
    """
    sweeping = asyncio.create_task(_keep_up(upkeep)) if upkeep is not None else None
    try:
        await _do_as_they_come(hands, user_id, tell=tell)
    finally:
        if sweeping is not None:
            sweeping.cancel()
            await asyncio.wait([sweeping])


async def _keep_up(upkeep: Upkeep) -> None:
    while True:  # noqa: ASYNC110 - no event tells that more is due
        await asyncio.sleep(UPKEEP_SECONDS if await upkeep.step() else LOOK_SECONDS)


async def _do_as_they_come(
    hands: Hands, user_id: str | None, *, tell: Callable[[Finished], None]
) -> None:
    looks = 0
    with work.listening() as woken:
        while True:
            woken.clear()
            pause = LOOK_SECONDS
            try:
                if looks % SWEEP_EVERY == 0:
                    await work_queue.sweep(hands.worker.store)
                await work_through(hands, user_id, tell=tell)
            except Exception:
                log.exception(
                    "The records cannot be read; the next look is in %.0f s", AWAY_SECONDS
                )
                pause = AWAY_SECONDS
            looks += 1
            await _either(woken, pause)


async def _either(woken: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await woken.wait()


class BackgroundWorker:
    """The worker inside a process that runs an agent: begun when it is first needed."""

    def __init__(self, store: BaseStore, clock: Clock) -> None:
        self._hands = hands_on(store, clock)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, where it has not begun."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(work_on(self._hands, tell=lambda _: None))

    async def await_quiescence(self, timeout: float, user_id: str | None = None) -> None:  # noqa: ASYNC109 - the public name
        """Wait until no record is due: those that this process wrote, or a user's, whoever did.

        Raises:
            TimeoutError: some are left; it says which, and why.
        """
        self.start()
        left: Sequence[Work] | None = None
        try:
            async with asyncio.timeout(timeout):
                with work.listening() as woken:
                    while left := await self._due(user_id):
                        woken.clear()
                        await _either(woken, 1.0)
        except TimeoutError as error:
            raise TimeoutError(_left(left, timeout)) from error

    async def stop(self) -> None:
        """Do what this process has left, for a bounded time; the rest is any other worker's."""
        if self._task is None:
            return
        try:
            await self.await_quiescence(CLOSE_SECONDS)
        except TimeoutError as error:
            log.warning("%s; another worker goes on with it", error)
        except Exception:
            log.exception("The records cannot be read; another worker goes on with them")
        finally:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _due(self, user_id: str | None) -> list[Work]:
        of_process = work.process() if user_id is None else None
        store = self._hands.worker.store
        found = await work_queue.open_records(store, user_id, of_process=of_process)
        return [one for one in found if one.status == "due"]


def _left(left: Sequence[Work] | None, seconds: float) -> str:
    if left is None:
        return f"the records could not be read within {seconds:g} s"
    shown = "; ".join(one.place + (f" ({one.reason})" if one.reason else "") for one in left[:5])
    more = f"; and {len(left) - 5} more" if len(left) > 5 else ""  # noqa: PLR2004 - as shown
    noun = "record is" if len(left) == 1 else "records are"
    return f"{len(left)} {noun} left after {seconds:g} s: {shown}{more}"
