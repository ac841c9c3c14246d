"""Do the records that calls have left (R50): flush, then consolidation where that is due."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, cast

from langchain_core.language_models import BaseChatModel

from everlong.nodes.consolidation import consolidation
from everlong.nodes.context import Context
from everlong.nodes.due import consolidation_gap_passed
from everlong.nodes.facts import flush
from everlong.nodes.live_models import held
from everlong.nodes.recall import recall
from everlong.nodes.retention import archive_entries
from everlong.nodes.run import Run
from everlong.stores import memory, tombstones, work, work_queue
from everlong.stores.work import Work
from everlong.stores.work_queue import Worker

log = logging.getLogger("everlong.worker")

HANDS = 4
"""Records of different users that a worker has in hand at once."""
RENEWALS = 3
"""In the time that a claim holds."""

Outcome = Literal["done", "waits", "failed"]


@dataclass(frozen=True, kw_only=True)
class Finished:
    """What came of a record in somebody's hands."""

    work: Work
    outcome: Outcome
    """`waits`: it is tried again after `work.free_at` seconds."""
    events: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Hands:
    """Who does records, and with what."""

    worker: Worker
    clock: Callable[[], datetime]
    model: BaseChatModel | str | None = None
    """For records whose own model has no name and is not held here."""


class WorkFailedError(Exception):
    """A record could not be done; it says why."""


class ClaimLostError(Exception):
    """The record is somebody else's by now, or gone with its user."""


async def work_through(
    hands: Hands, user_id: str | None = None, *, tell: Callable[[Finished], None]
) -> None:
    """Do all records that are free now, of one user or of all, and tell of each.

    What was claimed and not ended when this is cancelled is given back.

    Raises:
        Exception: the store's, which cannot be read; the first one, where several hands meet it.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(1 if user_id is not None else HANDS):
                group.create_task(_one_by_one(hands, user_id, tell))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _one_by_one(hands: Hands, user_id: str | None, tell: Callable[[Finished], None]) -> None:
    while (claimed := await work_queue.claim(hands.worker, user_id)) is not None:
        if (finished := await _finished(hands, claimed)) is not None:
            tell(finished)


async def _finished(hands: Hands, claimed: Work) -> Finished | None:
    """Do a record and settle it; None where it is not ours any more."""
    events: list[dict[str, Any]] = []
    try:
        async with _held(hands.worker, claimed):
            await _do(hands, claimed, events)
    except asyncio.CancelledError:
        await asyncio.shield(_given_back(hands.worker, claimed))
        raise
    except ClaimLostError:
        log.warning("The work of %s is not ours any more; it is left", claimed.place)
        return None
    except Exception as error:
        said = str(error) if isinstance(error, WorkFailedError) else _words(error)
        log.log(logging.DEBUG, "Where it comes from:", exc_info=error)
        try:
            after = await work_queue.failed(hands.worker, claimed, said)
        except LookupError:
            return None
        outcome: Outcome = "failed" if after.status == "failed" else "waits"
        _log_failure(after, outcome)
        return Finished(work=after, outcome=outcome, events=tuple(events))
    if not await work_queue.done(hands.worker, claimed):
        return None
    log.info("The work of %s is done", claimed.place)
    return Finished(work=claimed, outcome="done", events=tuple(events))


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _log_failure(after: Work, outcome: Outcome) -> None:
    if outcome == "failed":
        log.error("The work of %s has failed for good: %s", after.place, after.reason)
    else:
        log.warning(
            "The work of %s failed (try %d of %d) and is tried again in %.0f s: %s",
            after.place,
            after.tries,
            work_queue.MOST_TRIES,
            after.free_at,
            after.reason,
        )


async def _given_back(worker: Worker, claimed: Work) -> None:
    with suppress(Exception):  # then the claim runs out
        await work_queue.release(worker, claimed)


@asynccontextmanager
async def _held(worker: Worker, claimed: Work) -> AsyncGenerator[None]:
    """Keep the claim while the block runs; the block ends where the claim is lost.

    Raises:
        ClaimLostError: it was.
    """
    doing = cast("asyncio.Task[Any]", asyncio.current_task())
    lost = False

    async def keep() -> None:
        nonlocal lost
        while True:
            await asyncio.sleep(worker.lease_seconds / RENEWALS)
            with suppress(Exception):  # a database that is away for a moment; else it runs out
                if not await work_queue.renew(worker, claimed):
                    lost = True
                    doing.cancel()
                    return

    keeping = asyncio.create_task(keep())
    try:
        yield
    except asyncio.CancelledError:
        if lost and not doing.uncancel():
            raise ClaimLostError from None
        raise
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])


async def _do(hands: Hands, claimed: Work, events: list[dict[str, Any]]) -> None:
    """Flush, note that, and consolidate where it is due.

    Raises:
        WorkFailedError: the flush failed, or there is no model.
        Exception: the store's, or the model's.
    """
    if claimed.tries > work_queue.MOST_TRIES:
        msg = f"whoever was at it has ended {claimed.tries - 1} times"
        raise WorkFailedError(msg)
    run = _run(hands, claimed, events.append)
    if run.memory is None or await tombstones.user_is_marked(run.memory, run.user_id):
        return
    recalled = await recall(run)
    if claimed.ids:
        messages = await work.messages_of(hands.worker.store, claimed)
        flushed = await flush(run, messages, remembered=str(recalled.get("text", "")))
        if flushed.failed:
            raise WorkFailedError(flushed.reason)
        if not await work_queue.flushed(hands.worker, claimed):
            raise ClaimLostError
    await consolidated(replace(run, instant=now_of(hands.clock)), only_if_due=True)


async def consolidated(run: Run, *, only_if_due: bool) -> None:
    """Rewrite MEMORY.md from fresh entries, `only_if_due` by the user's settings; then tidy up.

    Raises:
        Exception: the store's, or the model's.
    """
    store = run.memory
    if store is None:
        return
    if only_if_due:
        if not consolidation_gap_passed(run, await recall(run)):
            return
        if not await memory.has_fresh(store, run.user_id):
            return
    await consolidation(run)
    await archive_entries(run)


def now_of(clock: Callable[[], datetime]) -> str:
    """Return the clock's instant as calls note it."""
    instant = clock().astimezone(UTC).isoformat(timespec="milliseconds")
    return instant.replace("+00:00", "Z")


def _run(hands: Hands, claimed: Work, tell: Callable[[dict[str, Any]], None]) -> Run:
    settings = claimed.settings
    named = str(settings["model"])
    model = held(named) or hands.model
    if model is None:
        msg = "its model was an object of a process that has ended; give the worker a model"
        raise WorkFailedError(msg)
    own = settings["memory_model"] is not None
    models = {"model": model, "memory_model": model if own else None}
    context = Context.model_validate(settings | models | {"user_id": claimed.user_id})
    return Run(
        context=context,
        user_id=claimed.user_id,
        thread_id=claimed.thread_id,
        store=hands.worker.store,
        instant=claimed.instant,
        first=claimed.first,
        tell=tell,
    )
