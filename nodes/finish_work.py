"""Node `finish_work`: do the records that the user's calls have left (R50)."""

from collections.abc import Callable
from datetime import datetime

from langgraph.runtime import Runtime

from everlong.nodes.context import Context, context_of, user_of
from everlong.nodes.memory_state import MemoryState, MemoryUpdate
from everlong.nodes.working import Finished, Hands, work_through
from everlong.stores import work_queue
from everlong.stores.work_queue import worker_on

REWRITTEN = "memory.consolidated"


async def finish_work(
    state: MemoryState, runtime: Runtime[Context], *, clock: Callable[[], datetime]
) -> MemoryUpdate:
    """Do all of the user's records that are free, and tell what each wrote.

    Reads `retry_failed`. Writes what came of it. Without a store, or with memory off, nothing.

    Raises:
        MissingUserError: nobody says whose memory it is.
    """
    context, user_id, store = context_of(runtime), user_of(runtime), runtime.store
    if store is None or not context.memory.enabled:
        return MemoryUpdate(done=0, facts=0, waiting=0, failed=0, consolidated=False, problem="")
    if state.retry_failed:
        await work_queue.retry_failed(store, user_id)
    own = (context.memory_model or context.model) if _has_model(context) else None
    finished: list[Finished] = []

    def tell(one: Finished) -> None:
        finished.append(one)
        for event in one.events:
            runtime.stream_writer(event)

    hands = Hands(worker=worker_on(store, has_model=own is not None), clock=clock, model=own)
    await work_through(hands, user_id, tell=tell)
    left = await work_queue.open_records(store, user_id)
    events = [event for one in finished for event in one.events]
    return MemoryUpdate(
        done=sum(one.outcome == "done" for one in finished),
        facts=sum(event.get("facts", 0) for event in events),
        waiting=sum(one.status == "due" for one in left),
        failed=sum(one.status == "failed" for one in left),
        consolidated=any(event["type"] == REWRITTEN for event in events),
        problem=next((one.reason for one in reversed(left) if one.reason), ""),
    )


def _has_model(context: Context) -> bool:
    """Whether somebody chose a model: the default one is no choice for another's records."""
    return bool({"model", "memory_model"} & context.model_fields_set)
