"""Node `flush_memory`: keep the transcript complete, and the user's facts in the ledger."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, messages_from_dict
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from everlong.nodes.archive import after, archive, numbered
from everlong.nodes.context import Context
from everlong.nodes.due import consolidation_gap_passed, flush_turn, turn_back
from everlong.nodes.facts import Flushed, flush
from everlong.nodes.forgetting import after_answer, in_state
from everlong.nodes.handing import hand_over, hand_over_consolidation, in_background
from everlong.nodes.replacement import with_requests
from everlong.nodes.run import Run, run_of
from everlong.nodes.state import State, Update
from everlong.stores import memory, transcripts

log = logging.getLogger("everlong.memory")

Archived = Mapping[str, Any] | None


async def flush_memory(state: State, runtime: Runtime[Context]) -> Update:
    """Append the call's messages to the transcript, then its facts to the ledger.

    In the background mode a record of what has to be flushed takes the place of the flush. Reads
    `messages` and the watermarks. Writes the watermarks and `call`, and strikes out of `messages`
    what the call has forgotten. A failure is logged; what it left undone is done after the next
    call, since its watermark stays.
    """
    run = run_of(state, runtime)
    update = await after_answer(run, state)
    state = in_state(state, update)
    archived: Archived = None
    try:
        archived = await archive(run, state)
    except Exception:
        log.exception("The transcript cannot be written; it is made up for after the next call")
    if archived is not None and archived is not state.archived:
        update["archived"] = dict(archived)
    flushed = await _flushed(run, state, archived)
    if flushed.read and not flushed.failed:
        update["flushed_through"] = str(state.messages[-1].id)
        if state.unflushed:
            update["unflushed"] = []
    if flushed.requests:
        update["call"] = with_requests(state.call, flushed.requests)
    if await _consolidates_now(run, state, flushed):
        update["call"] = update.get("call", state.call) | {"consolidate": True}
    return update


async def _flushed(run: Run, state: State, archived: Archived) -> Flushed:
    """Flush or hand over what no flush has read; a store that fails makes it wait."""
    store = run.memory
    if store is None:
        return Flushed()
    try:
        turn = await flush_turn(run, store)
        if turn is None:
            return Flushed()
        messages, numbers = await _to_flush(run, state, archived)
    except Exception:
        log.exception("The store cannot be read; the messages are flushed after the next call")
        return Flushed(failed=True)
    if in_background(run):
        flushed = await hand_over(run, messages, numbers)
    else:
        flushed = await flush(run, messages, remembered=str(state.recalled.get("text", "")))
    if flushed.failed:
        await _wait_for_next(run, store, turn)
    return flushed


async def _wait_for_next(run: Run, store: BaseStore, turn: str) -> None:
    try:
        await turn_back(run, store, turn)
    except Exception:
        log.exception("The turn to flush cannot be given back; the next flush waits for the gap")


async def _to_flush(
    run: Run, state: State, archived: Archived
) -> tuple[list[BaseMessage], dict[str, int] | None]:
    """Return what no flush has read, and where the transcript has it; None: not all of it."""
    new = after(state.messages, state.flushed_through)
    if new is None:
        # The watermark's message was edited away: this call's messages are new for sure.
        new = _since(state.messages, state.call.get("first", ""))
    missed, places = await _missed(run, state)
    if run.archive is None or not archived:
        return [*missed, *new], None
    return [*missed, *new], numbered(state.messages, archived) | places


def _since(messages: Sequence[BaseMessage], first: str) -> list[BaseMessage]:
    start = next((i for i, message in enumerate(messages) if message.id == first), 0)
    return list(messages[start:])


async def _missed(run: Run, state: State) -> tuple[list[BaseMessage], dict[str, int]]:
    """Return what left the history while the flush had failed, and where the transcript has it."""
    found: list[BaseMessage] = []
    places: dict[str, int] = {}
    for part in state.unflushed:
        if "messages" in part:
            found += messages_from_dict(part["messages"])
        elif run.archive is not None:
            entries = await transcripts.read(
                run.archive, run.user_id, run.thread_id, first=part["first"], limit=part["count"]
            )
            found += transcripts.messages_of(entries)
            places |= {entry.message_id: entry.number for entry in entries}
    return found, places


async def _consolidates_now(run: Run, state: State, flushed: Flushed) -> bool:
    """Tell whether this call consolidates; in the background mode a record has it done."""
    store = run.memory
    if store is None or not consolidation_gap_passed(run, state.recalled):
        return False
    if flushed.queued:
        return False  # whoever does the record looks
    if not flushed.facts and not await _has_fresh(run, store):
        return False
    if in_background(run):
        last = str(state.recalled.get("consolidated_at", ""))
        await hand_over_consolidation(run, store, last)
        return False
    return True


async def _has_fresh(run: Run, store: BaseStore) -> bool:
    try:
        return await memory.has_fresh(store, run.user_id)
    except Exception:
        log.exception("The ledger cannot be read; consolidation waits")
        return False
