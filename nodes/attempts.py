"""Each attempt to compact leaves a record, and is told of once the thread's state holds it (R23).

The order, so that a crash in between leaves no lie: `compact` records the attempt, as `begun` where
the history is about to change, and leaves in `call` what has to be told; the state is written;
then the next node gives the record its outcome and tells. A record that cannot be written is
logged and tried again by the nodes that follow; it never undoes a compaction.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from langgraph.runtime import Runtime

from everlong.nodes.archive import places
from everlong.nodes.context import Context
from everlong.nodes.meter import counted, request_tokens, visible
from everlong.nodes.run import Run
from everlong.nodes.state import Call, State, Update
from everlong.nodes.thresholds import compaction_trigger
from everlong.nodes.windows import name_of
from everlong.nodes.written import is_written
from everlong.stores import compactions
from everlong.stores.compactions import BEGUN, MESSAGE_IDS

log = logging.getLogger("everlong.compaction")

FINISHED = "compaction.finished"
TOLD = "told"
CHANGING = ("done", "shortened")
"""Outcomes that come true only when the state is written."""
ONLY_RECORDED = (MESSAGE_IDS, "carried", "instructions")
LISTS = ("invented", "transcript")
MOST_LISTED = 20
"""Of what the receipt in the state may list; the record has all."""


def starting(run: Run, state: State) -> dict[str, Any]:
    """Return what an attempt starts from: its trigger, who asked, the sizes before."""
    trigger = compaction_trigger(run.context, state)
    meter = counted(state.messages, state.meter)
    asked = {"asked_by": run.user_id, "instructions": state.call.get("instructions", "")}
    return {
        "trigger": trigger or "",
        "messages_before": visible(state.messages),
        "tokens_before": meter.get("tokens", 0),
        "request_before": request_tokens(meter, fixed_tokens=state.call.get("fixed_tokens", 0)),
    } | (asked if trigger == "manual" else {})


async def noted(
    run: Run, state: State, update: Update, *, before: Mapping[str, Any], milliseconds: int
) -> Update:
    """Return the update of an attempt, its receipt made whole and recorded; the rest is to tell."""
    found = update.get("compaction")
    if found is None:
        return Update(call=state.call) | update
    receipt: dict[str, Any] = {
        **found,
        **before,
        **_after(state, update, found),
        **_cost(run, state, update, found),
        "milliseconds": milliseconds,
    }
    if receipt.get(MESSAGE_IDS):
        receipt["transcript"] = await _places(run, state, update, receipt[MESSAGE_IDS])
    changing = receipt["outcome"] in CHANGING
    await _record(run, receipt | ({"outcome": BEGUN} if changing else {}))
    small = {"invented": state.compaction.get("invented", [])} | _small(receipt)
    call = to_tell(update.get("call", state.call), {"type": FINISHED})
    return update | Update(compaction=small, call=call)


def to_tell(call: Call, *events: dict[str, Any]) -> Call:
    """Return the call with events that the next node has to tell."""
    return call | {"to_tell": [*call.get("to_tell", []), *events]}


def has_to_tell(state: State) -> bool:
    """Is there something that no node has told yet?"""
    return any(TOLD not in event for event in state.call.get("to_tell", []))


def only_to_tell(state: State) -> bool:
    """Was a compaction all that was asked for, and is what came of it left to tell?"""
    due = state.call.get("to_tell", [])
    attempted = any(event["type"] == FINISHED and TOLD not in event for event in due)
    return attempted and state.phase == "compact_only"


async def reported(
    run: Run, state: State, runtime: Runtime[Context], *, may_wait: bool = True
) -> State:
    """Tell what the last step did, now that the state holds it; return the state without that.

    Where the state is written only when the run ends, or the record cannot be, the record is left
    to the next node, and to the next call. Where no node may follow to tell it, it is told before
    (`may_wait`), and only the record is left.
    """
    due = state.call.get("to_tell", [])
    if not due:
        return state
    written = may_wait and await is_written(runtime)
    left: list[dict[str, Any]] = []
    for event in due:
        attempt = state.compaction if event["type"] == FINISHED else {}
        if attempt and not (written and await _complete(run, attempt)):
            left.append({"type": FINISHED, TOLD: True})
        if TOLD not in event:
            run.tell(event | _shown(attempt))
    rest = {name: value for name, value in state.call.items() if name != "to_tell"}
    return replace(state, call=to_tell(cast("Call", rest), *left) if left else cast("Call", rest))


async def confirmed(run: Run, state: State) -> None:
    """Give the record of an attempt its outcome where an earlier call could not.

    For the first node of a call: what the state holds then has been written. Nobody is told, since
    whoever followed that call has gone.
    """
    if any(event["type"] == FINISHED for event in state.call.get("to_tell", [])):
        await _complete(run, state.compaction)


async def _record(run: Run, receipt: Mapping[str, Any]) -> None:
    if run.store is None or not run.thread_id:
        return
    try:
        await compactions.record(run.store, run.user_id, run.thread_id, receipt)
    except Exception:
        log.exception("The record of a compaction cannot be written; it is tried again")


async def _complete(run: Run, receipt: Mapping[str, Any]) -> bool:
    """Return whether nothing is left to do."""
    if run.store is None or not run.thread_id:
        return True
    try:
        await compactions.complete(run.store, run.user_id, run.thread_id, receipt)
    except Exception:
        log.exception("The record of compaction %s cannot be completed", receipt.get("id"))
        return False
    return True


async def _places(run: Run, state: State, update: Update, ids: list[str]) -> list[list[int]]:
    """Return where the transcript holds the originals; nothing where it can't be read."""
    try:
        return await places(run, state.messages, ids, update.get("archived", state.archived))
    except Exception:
        log.exception("The transcript cannot be read; a receipt does not say where it has them")
        return []


def _after(state: State, update: Update, receipt: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes after the attempt; a history that was replaced has told its messages."""
    meter = update.get("meter") or counted(state.messages, state.meter)
    fixed = state.call.get("fixed_tokens", 0)
    sizes = {
        "tokens_after": meter.get("tokens", 0),
        "request_after": request_tokens(meter, fixed_tokens=fixed),
    }
    if receipt["outcome"] != "done":
        sizes["messages_after"] = visible(state.messages)
    return sizes


def _cost(run: Run, state: State, update: Update, receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Return which model was asked for a summary, and the tokens of all its requests."""
    context = run.context
    asked = receipt.get("by") in ("model", "digest") or receipt["outcome"] in ("refused", "failed")
    named = "plain_cut" in receipt and asked
    before = len(state.call.get("requests", []))
    requests = [
        one
        for one in update.get("call", state.call).get("requests", [])[before:]
        if one["kind"] == "summary"
    ]
    return {
        "model": name_of(context.summary_model or context.model) if named else "",
        "requests": len(requests),
        "usage": {
            kind: sum(one[kind] for one in requests) for kind in ("input", "cached", "output")
        },
    }


def _shown(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the receipt as an event tells it: figures, and nothing of what a summary says."""
    shown = {name: value for name, value in receipt.items() if name not in LISTS}
    return shown | ({"invented": len(receipt.get("invented", []))} if receipt else {})


def _small(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the receipt as the state keeps it: every checkpoint pays for its lists."""
    small = {name: value for name, value in receipt.items() if name not in ONLY_RECORDED}
    for name in LISTS:
        if name in small:
            small[name] = small[name][:MOST_LISTED]
    return small
