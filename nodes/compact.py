"""Node `compact`: replace the older part of the history by one summary."""

import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime

from everlong.nodes.archive import archive
from everlong.nodes.budget import trigger_of
from everlong.nodes.context import Context
from everlong.nodes.facts import Flushed, flush
from everlong.nodes.lighten import lighten
from everlong.nodes.meter import counted, recounted, request_tokens, visible
from everlong.nodes.models import load
from everlong.nodes.plan import Plan, plan
from everlong.nodes.recall import recall
from everlong.nodes.replacement import not_flushed, replacement, untouched, with_requests
from everlong.nodes.request import request_messages
from everlong.nodes.run import Run, run_of
from everlong.nodes.state import State, Update
from everlong.nodes.summarise import Sent, Summarised, summarise
from everlong.nodes.thresholds import compaction_trigger, limits_for
from everlong.nodes.tokens import estimate_messages
from everlong.nodes.toolbox import Toolbox

log = logging.getLogger("everlong.compaction")


async def compact(state: State, runtime: Runtime[Context], *, toolbox: Toolbox) -> Update:
    """Replace the older part of the history by one summary, or leave it exactly as it is.

    Reads `messages`, `call`, `meter` and the watermarks. Writes them in one update, with the
    receipt in `compaction`. No failure but a cancel ends the call.
    """
    run = run_of(state, runtime)
    try:
        update = await _compacted(run, state, toolbox)
    except Exception as error:
        log.exception("Compaction failed; the history stays as it is")
        update = untouched(state, outcome="failed", reason=f"{type(error).__name__}: {error}")
    if "messages" in update and run.memory is not None:
        update = await _with_memory_read_again(run, state, update, toolbox)
    return update


async def _compacted(run: Run, state: State, toolbox: Toolbox) -> Update:
    """Shorten first what needs no model; then, where that is not enough, summarise."""
    trigger = compaction_trigger(run.context, state)
    if trigger is None:
        return Update()
    limits = limits_for(run.context, state)
    fixed = state.call.get("fixed_tokens", 0)
    meter = counted(state.messages, state.meter)
    archived = await archive(run, state)
    shorter = await lighten(run, state.messages, tokens=meter.get("tokens", 0))
    messages = _with(state.messages, shorter)
    if shorter:
        meter = recounted(messages)
    request = request_tokens(meter, fixed_tokens=fixed)
    lighter = Update(archived=archived, meter=meter)
    if shorter:
        lighter["messages"] = shorter
    if (
        shorter
        and trigger == "tokens"
        and not trigger_of(limits, messages=visible(messages), tokens=request)
    ):
        found = untouched(state, outcome="shortened", reason="old tool results", settled=False)
        return lighter | found
    planned = plan(
        messages,
        settings=run.context.compaction,
        trigger=trigger,
        limits=limits,
        request_tokens=request,
        fixed_tokens=fixed,
    )
    if not planned.split.is_cut:
        reason = planned.split.cut.reason
        found = untouched(state, outcome="nothing to replace", reason=reason, plan=planned)
        return lighter | found
    sent = await _sent(run, state, planned, toolbox)
    return lighter | await _replaced(run, state, planned, sent, archived)


async def _sent(run: Run, state: State, planned: Plan, toolbox: Toolbox) -> Sent | None:
    """Return the last request up to the cut; None where another model makes the summaries."""
    context = run.context
    if context.summary_model is not None and context.summary_model != context.model:
        return None
    names = toolbox.offered(context)
    replaced = [m for m in state.messages if m.type != "system"][: planned.split.cut.safe]
    messages = [*planned.split.system, *replaced]
    return Sent(
        model=toolbox.bind(await load(context.model), names),
        messages=request_messages(context, state.recalled, messages, names),
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
    flushed = await _flush_first(run, state, planned)
    if run.context.compaction.strategy == "window":
        summary = Summarised(by="window")
    else:
        summary = await summarise(run, planned, state.call.get("instructions", ""), sent)
    if summary.message is None and summary.by != "window":
        update = untouched(state, outcome="refused", reason=summary.refused, plan=planned)
        update["call"] = with_requests(
            update.get("call", state.call), [*flushed.requests, *summary.requests]
        )
    else:
        update = replacement(state, planned, summary, flushed, archived=archived)
        _log_complete(planned, has_summary=summary.message is not None)
    run.tell({"type": "compaction.finished", **update.get("compaction", {})})
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


async def _flush_first(run: Run, state: State, planned: Plan) -> Flushed:
    """Flush what is about to leave the history and no flush has read; a failure is recorded."""
    if not run.context.compaction.flush_before:
        return Flushed()
    remembered = str(state.recalled.get("text", ""))
    return await flush(run, not_flushed(state, planned), remembered=remembered)


async def _with_memory_read_again(
    run: Run, state: State, update: Update, toolbox: Toolbox
) -> Update:
    """Read MEMORY.md again: the request's prefix changes now anyway (R46)."""
    recalled = await recall(run)
    fixed = toolbox.fixed_tokens(run.context, recalled)
    call = update.get("call", state.call) | {
        "fixed_tokens": fixed,
        "memory_version": str(recalled.get("version", "")),
    }
    return update | Update(recalled=recalled, call=call)


def _with(messages: Sequence[BaseMessage], shorter: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with the shortened ones in their places."""
    by_id = {message.id: message for message in shorter}
    return [by_id.get(message.id, message) for message in messages]
