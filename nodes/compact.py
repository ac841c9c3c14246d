"""Node `compact`: replace the older part of the history by one summary."""

import logging
import time
from typing import Any

from langgraph.runtime import Runtime

from everlong.nodes.archive import archive, numbered
from everlong.nodes.attempts import noted, only_to_tell, reported, starting, to_tell
from everlong.nodes.context import Context
from everlong.nodes.facts import Flushed, flush
from everlong.nodes.forgetting import without_forgotten
from everlong.nodes.handing import hand_over, in_background
from everlong.nodes.injection import begun, folded
from everlong.nodes.models import load
from everlong.nodes.plan import Plan
from everlong.nodes.preparation import Prepared, prepare
from everlong.nodes.recall import recall
from everlong.nodes.replacement import (
    flushed_ahead,
    not_flushed,
    replacement,
    untouched,
    with_requests,
)
from everlong.nodes.request import request_messages
from everlong.nodes.run import Run, run_of
from everlong.nodes.state import Call, State, Update
from everlong.nodes.summarise import Sent, Summarised, summarise
from everlong.nodes.thresholds import compaction_trigger
from everlong.nodes.tokens import estimate_messages
from everlong.nodes.toolbox import Toolbox
from everlong.stores.amounts import amount

log = logging.getLogger("everlong.compaction")


async def compact(state: State, runtime: Runtime[Context], *, toolbox: Toolbox) -> Update:
    """Replace the older part of the history by one summary, or leave it exactly as it is.

    Reads `messages`, `call`, `meter` and the watermarks. Writes them in one update, with the
    receipt in `compaction`. No failure but a cancel ends the call. Where a compaction is all that
    was asked for, it is entered once more, to tell what came of it.
    """
    run = run_of(state, runtime)
    told = only_to_tell(state)
    state = await reported(run, state, runtime)
    if told:
        return Update(call=state.call)
    return await _attempted(run, state, toolbox)


async def _attempted(run: Run, state: State, toolbox: Toolbox) -> Update:
    began = time.perf_counter()
    before: dict[str, Any] = {}
    try:
        before = starting(run, state)
        update = await _compacted(run, state, toolbox)
    except Exception as error:
        log.exception("Compaction failed; the history stays as it is")
        update = untouched(state, outcome="failed", reason=f"{type(error).__name__}: {error}")
    update = await without_forgotten(run, update)
    if "messages" in update and run.memory is not None:
        update = await _with_memory_read_again(run, state, update, toolbox)
    milliseconds = round((time.perf_counter() - began) * 1_000)
    return await noted(run, state, update, before=before, milliseconds=milliseconds)


async def _compacted(run: Run, state: State, toolbox: Toolbox) -> Update:
    """Shorten first what needs no model; then, where that is not enough, summarise."""
    trigger = compaction_trigger(run.context, state)
    if trigger is None:
        return Update()
    archived = await archive(run, state)
    reader = toolbox.reader(run.context)
    ready = await prepare(run, state, trigger, reader=reader)
    update = Update(archived=archived, meter=ready.meter)
    if ready.shortened:
        update["messages"] = ready.shortened
    if ready.is_enough or not ready.plan.split.is_cut:
        update |= _without_summary(state, ready)
    else:
        sent = await _sent(run, state, ready.plan, toolbox)
        update |= await _replaced(run, state, ready.plan, sent, archived)
    if ready.too_long:
        update["compaction"] = update.get("compaction", {}) | {"too_long": ready.too_long}
    if ready.events:
        update["call"] = to_tell(update.get("call", state.call), *ready.events)
    return update


def _without_summary(state: State, ready: Prepared) -> Update:
    """Return the receipt of an attempt that needs no summary, or has nothing to replace."""
    planned, shortened = ready.plan, len(ready.shortened)
    if not shortened:
        reason = ready.too_long or "no change: nothing older than what stays is left to replace"
        return untouched(state, outcome="nothing to replace", reason=reason, plan=planned)
    little = planned.came_to_little(
        messages_after=planned.total_messages, tokens_after=ready.meter.get("tokens", 0)
    )
    enough = "no summary is needed" if ready.is_enough else "nothing older is left to replace"
    reason = f"{amount(shortened, 'message')} shortened; {ready.too_long or enough}"
    return untouched(state, outcome="shortened", reason=reason, plan=planned, settled=little)


async def _sent(run: Run, state: State, planned: Plan, toolbox: Toolbox) -> Sent | None:
    """Return the last request up to the cut; None where it is not known, or not for this model."""
    context = run.context
    own = context.summary_model is not None and context.summary_model != context.model
    if own or not toolbox.sends:
        return None
    names = toolbox.offered(context)
    replaced = [m for m in state.messages if m.type != "system"][: planned.split.cut.safe]
    messages = [*planned.split.system, *replaced]
    return Sent(
        model=toolbox.bind(await load(context.model), names),
        messages=request_messages(context, state.injected, messages, names),
        tokens=planned.fixed_tokens + estimate_messages(messages),
    )


async def _replaced(
    run: Run, state: State, planned: Plan, sent: Sent | None, archived: dict[str, Any]
) -> Update:
    log.info(
        "Compaction triggered: total=%d msgs / %d tokens, cutoff=%d, keeping=%d msgs",
        planned.total_messages,
        planned.total_tokens,
        planned.split.cut.safe,
        planned.kept_messages,
    )
    sizes = {"messages": planned.total_messages, "tokens": planned.total_tokens}
    run.tell({"type": "compaction.started", "trigger": planned.trigger, **sizes})
    flushed = await _flush_first(run, state, planned, archived)
    if run.context.compaction.strategy == "window":
        summary = Summarised(by="window")
    else:
        summary = await summarise(
            run,
            planned,
            state.call.get("instructions", ""),
            sent,
            doubtful=state.compaction.get("invented", ()),
            given_up="" if planned.trigger == "overflow" else state.call.get("given_up", ""),
        )
    if summary.message is None and summary.by != "window":
        outcome = "failed" if summary.failed else "refused"
        update = untouched(state, outcome=outcome, reason=summary.refused, plan=planned)
        update["call"] = with_requests(
            update.get("call", state.call), [*flushed.requests, *summary.requests]
        )
        if flushed.read:
            update["flushed_through"] = flushed_ahead(state, planned)
    else:
        update = replacement(state, planned, summary, flushed, archived=archived)
        _log_complete(planned, has_summary=summary.message is not None)
    if summary.refused:
        update["call"] = update.get("call", state.call) | Call(given_up=summary.refused)
    return update


def _log_complete(planned: Plan, *, has_summary: bool) -> None:
    total = planned.kept_messages + has_summary
    log.info(
        "Compaction complete: %d msgs → %d summary + %d tail = %d total",
        planned.total_messages,
        has_summary,
        planned.kept_messages,
        total,
    )
    log.info("Compacted to %d messages before reasoning", total)


async def _flush_first(run: Run, state: State, planned: Plan, archived: dict[str, Any]) -> Flushed:
    """Flush what is about to leave the history and no flush has read; a failure is recorded."""
    if not run.context.compaction.flush_before:
        return Flushed()
    if in_background(run):
        numbers = numbered(state.messages, archived) if run.archive and archived else None
        return await hand_over(run, not_flushed(state, planned), numbers)
    remembered = str(state.recalled.get("text", ""))
    return await flush(run, not_flushed(state, planned), remembered=remembered)


async def _with_memory_read_again(
    run: Run, state: State, update: Update, toolbox: Toolbox
) -> Update:
    """Read MEMORY.md again: the request's prefix changes now anyway (R46)."""
    recalled = await recall(run)
    injected = begun(recalled) if recalled else folded(state.injected)
    fixed = toolbox.fixed_tokens(run.context, injected)
    call = update.get("call", state.call) | {
        "fixed_tokens": fixed,
        "memory_version": str(recalled.get("version", "")),
    }
    return update | Update(recalled=recalled, injected=injected, call=call)
