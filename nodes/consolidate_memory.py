"""Node `consolidate_memory`: rewrite MEMORY.md, where that is due or because it was asked for."""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from langgraph.runtime import Runtime

from everlong.nodes.context import Context, context_of, user_of
from everlong.nodes.memory_state import MemoryState, MemoryUpdate
from everlong.nodes.run import Run
from everlong.nodes.working import consolidated, now_of

log = logging.getLogger("everlong.memory")


async def consolidate_memory(
    state: MemoryState, runtime: Runtime[Context], *, clock: Callable[[], datetime]
) -> MemoryUpdate:
    """Consolidate the user's ledger; a failure leaves everything as it was, and is told.

    Reads `consolidate`. Writes `consolidated` and `problem`.
    """
    events: list[dict[str, Any]] = []

    def tell(event: dict[str, Any]) -> None:
        events.append(event)
        runtime.stream_writer(event)

    run = Run(
        context=context_of(runtime),
        user_id=user_of(runtime),
        thread_id="",
        store=runtime.store,
        instant=now_of(clock),
        tell=tell,
    )
    try:
        await consolidated(run, only_if_due=state.consolidate == "due")
    except Exception as error:
        log.exception("Consolidation failed; MEMORY.md and its watermark stay as they were")
        return MemoryUpdate(problem=f"{type(error).__name__}: {error}")
    return MemoryUpdate(consolidated=state.consolidated or bool(events))
