"""What `everlong worker` does: the memory work that calls in the background mode have left."""

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel

from everlong.graph.agent import utc_now
from everlong.graph.cli_events import line_of
from everlong.graph.cli_open import opened_stores
from everlong.graph.cli_settings import context_for
from everlong.graph.sweeping import Broom
from everlong.graph.terminal import put, put_error
from everlong.graph.upkeep import Upkeep
from everlong.graph.worker import hands_on, work_on
from everlong.nodes.context import Context
from everlong.nodes.models import load
from everlong.nodes.working import Finished, Hands, work_through
from everlong.stores import diagnosis, work_queue
from everlong.stores.amounts import amount
from everlong.stores.work import Work
from everlong.stores.work_queue import MOST_TRIES

MOST_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a person wants of a worker."""

    once: bool
    """Do what is there now, and end."""
    retry_failed: bool
    user_id: str | None


async def worker(wanted: Wanted, *, model: str | None, dsn: str | None) -> int:
    """Do records as they come until Ctrl-C, or once those that are there; 1 where one failed."""
    context = context_for(None, model)
    if not context.memory.enabled:
        put_error("memory is switched off (EVERLONG_MEMORY__ENABLED); nothing was done.")
        return 1
    own = _own_model(context, model)
    if own is not None:
        await load(own)
    async with opened_stores(dsn) as (_, stores):
        if wanted.retry_failed:
            again = await work_queue.retry_failed(stores.store, wanted.user_id)
            put(f"{amount(again, 'failed record')} will be tried again.")
        hands = hands_on(stores.store, utc_now, model=own)
        if wanted.once:
            return await _once(hands, wanted.user_id)
        upkeep = Upkeep(Broom(stores=stores, context=context, clock=utc_now))
        return await _until_stopped(hands, wanted.user_id, upkeep)


async def _once(hands: Hands, user_id: str | None) -> int:
    finished: list[Finished] = []

    def tell(one: Finished) -> None:
        finished.append(one)
        _show(one)

    await work_through(hands, user_id, tell=tell)
    left = await work_queue.open_records(hands.worker.store, user_id)
    done = sum(one.outcome == "done" for one in finished)
    waiting = [one for one in left if one.status == "due"]
    failed = [one for one in left if one.status == "failed"]
    put(
        f"{amount(done, 'record')} done, {len(waiting)} waiting, {len(failed)} failed.",
        style="" if left else "dim",
    )
    for one in [*waiting, *failed][:MOST_SHOWN]:
        put(f": {_state(one)}", lead=f"  {one.place}", indent="    ")
    return 1 if failed else 0


async def _until_stopped(hands: Hands, user_id: str | None, upkeep: Upkeep) -> int:
    of_all = upkeep if user_id is None else None
    working = asyncio.ensure_future(work_on(hands, user_id, tell=_show, upkeep=of_all))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, working.cancel)
    put("At work; Ctrl-C ends it.", style="dim")
    try:
        await asyncio.wait([working])
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    if not working.cancelled():
        working.result()
    put("Ended; what is left is any other worker's.", style="dim")
    return 0


def _own_model(context: Context, model: str | None) -> BaseChatModel | str | None:
    """Return the model that somebody chose; the default one is no choice for others' records."""
    if model or {"model", "memory_model"} & context.model_fields_set:
        return context.memory_model or context.model
    return None


def _show(finished: Finished) -> None:
    """Print what came of a record."""
    if finished.outcome == "done":
        told = [line_of(event).removeprefix("memory: ") for event in finished.events]
        text = "; ".join(told) or "nothing to do"
    else:
        text = _state(finished.work)
    put(f": {text}", lead=f"  {finished.work.place}", indent="    ")


def _state(work: Work) -> str:
    if work.status == "failed":
        return f"failed {MOST_TRIES} times; --retry-failed tries again ({work.reason})"
    if work.reason:
        return f"failed, try {work.tries} of {MOST_TRIES}; tried again later ({work.reason})"
    if work.by:
        return "in the hands of another worker"
    if work.unnamed:
        return "its model is an object of another process; --model names one to use instead"
    return "due"


async def work_findings(dsn: str) -> tuple[str, Sequence[str]]:
    """Return how many records are open, in a line, and what is wrong with those that failed."""
    left = await diagnosis.open_work(dsn)
    failed = [one for one in left if one.status == "failed"]
    due = len(left) - len(failed)
    said = f"{amount(due, 'record')} waiting for a worker" if due else "nothing is left to do"
    return said, [f"{one.place}: {_state(one)}" for one in failed]
