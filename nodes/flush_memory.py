"""Node `flush_memory`: keep the transcript complete, and the user's facts in the ledger."""

import logging
from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime

from everlong.nodes.archive import after, archive
from everlong.nodes.context import Context
from everlong.nodes.due import consolidation_gap_passed, flush_due
from everlong.nodes.facts import Flushed, flush
from everlong.nodes.replacement import with_requests
from everlong.nodes.run import Run, run_of
from everlong.nodes.state import State, Update
from everlong.stores import memory, transcripts

log = logging.getLogger("everlong.memory")


async def flush_memory(state: State, runtime: Runtime[Context]) -> Update:
    """Append the call's messages to the transcript, then its facts to the ledger.

    Reads `messages` and the watermarks. Writes the watermarks and `call`. A failure is logged; what
    it left undone is done after the next call, since its watermark stays.
    """
    run = run_of(state, runtime)
    update = Update()
    try:
        archived = await archive(run, state)
    except Exception:
        log.exception("The transcript cannot be written; it is made up for after the next call")
    else:
        if archived is not state.archived:
            update["archived"] = archived
    flushed = await _flush(run, state)
    if flushed.read and not flushed.failed:
        update["flushed_through"] = str(state.messages[-1].id)
        if state.unflushed:
            update["unflushed"] = []
    if flushed.requests:
        update["call"] = with_requests(state.call, flushed.requests)
    if await _consolidation_due(run, state, flushed):
        update["call"] = update.get("call", state.call) | {"consolidate": True}
    return update


async def _flush(run: Run, state: State) -> Flushed:
    store = run.memory
    if store is None or not await flush_due(run, store):
        return Flushed()
    new = after(state.messages, state.flushed_through)
    if (
        new is None
    ):  # the watermark's message was edited away: this call's messages are new for sure
        new = _since(state.messages, state.call.get("first", ""))
    missed = await _missed(run, state)
    remembered = str(state.recalled.get("text", ""))
    return await flush(run, [*missed, *new], remembered=remembered)


def _since(messages: Sequence[BaseMessage], first: str) -> list[BaseMessage]:
    start = next((i for i, message in enumerate(messages) if message.id == first), 0)
    return list(messages[start:])


async def _missed(run: Run, state: State) -> list[BaseMessage]:
    """Return from the transcript what left the history while the flush had failed."""
    found: list[BaseMessage] = []
    store = run.archive
    if store is None:
        return found
    for part in state.unflushed:
        entries = await transcripts.read(
            store, run.user_id, run.thread_id, first=part["first"], limit=part["count"]
        )
        found += transcripts.messages_of(entries)
    return found


async def _consolidation_due(run: Run, state: State, flushed: Flushed) -> bool:
    """Tell whether the gap has passed and the ledger holds what MEMORY.md does not."""
    store = run.memory
    if store is None or not consolidation_gap_passed(run, state.recalled):
        return False
    if flushed.facts:
        return True
    try:
        return bool(await memory.fresh_entries(store, run.user_id))
    except Exception:
        log.exception("The ledger cannot be read; consolidation waits")
        return False
