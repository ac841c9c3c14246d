"""Node `consolidate`: rewrite MEMORY.md from what it says and the ledger's fresh entries."""

import logging

from langgraph.runtime import Runtime

from everlong.nodes.consolidation import consolidation
from everlong.nodes.context import Context
from everlong.nodes.replacement import with_requests
from everlong.nodes.retention import shorten
from everlong.nodes.run import run_of
from everlong.nodes.state import State, Update

log = logging.getLogger("everlong.memory")


async def consolidate(state: State, runtime: Runtime[Context]) -> Update:
    """Rewrite MEMORY.md; a failure leaves document and watermark as they were.

    Then it lets go of what is old. Reads `call`, `messages`, `unflushed`. Writes `call`.
    """
    run = run_of(state, runtime)
    try:
        requests = await consolidation(run)
    except Exception:
        log.exception("Consolidation failed; MEMORY.md and its watermark stay as they were")
        requests = []
    await shorten(run, state)
    return Update(call=with_requests(state.call, requests))
