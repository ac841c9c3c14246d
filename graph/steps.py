"""What our nodes do one after the other, in a graph or a middleware that is not ours."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, ToolMessage

from everlong.graph.agent import Clock
from everlong.graph.exchange import replaced
from everlong.graph.foreign import Work
from everlong.graph.routes import has_oversized, has_records_to_keep, needs_compaction
from everlong.nodes.attempts import reported
from everlong.nodes.compact import compact
from everlong.nodes.consolidate import consolidate
from everlong.nodes.context import context_of
from everlong.nodes.evict import evict
from everlong.nodes.flush_memory import flush_memory
from everlong.nodes.forgetting import TOOL, after_tools
from everlong.nodes.meter import after_answer, counted, uncounted
from everlong.nodes.open_call import open_call
from everlong.nodes.rewriting import whole_history
from everlong.nodes.run import run_of
from everlong.nodes.state import Update
from everlong.nodes.toolbox import Toolbox
from everlong.nodes.usage import usage_of
from everlong.nodes.windows import name_of


async def opened(work: Work, toolbox: Toolbox, clock: Clock) -> Work:
    """Begin the call, where none of our nodes has in this run."""
    if work.has_begun:
        return work
    work = await without_returned(work)
    update = await open_call(
        work.state, work.runtime, toolbox=toolbox, clock=clock, may_be_silent=True
    )
    return work.with_update(update)


async def without_returned(work: Work) -> Work:
    """Leave out what a compaction has replaced, and a caller who sends a whole history again has.

    One new message is nothing of the kind; where there are more, the receipts know.
    """
    messages, run = work.state.messages, run_of(work.state, work.runtime)
    new = {one.id for one in uncounted(messages, work.state.meter)}
    if len(new) < 2 or run.store is None or not run.thread_id:  # noqa: PLR2004 - more than one
        return work
    last = work.state.compaction
    gone = new & await replaced(run.store, run.user_id, run.thread_id, last)
    if not gone:
        return work
    kept = [one for one in messages if one.id not in gone]
    return work.with_update(Update(messages=whole_history(kept)))


async def told(work: Work, *, may_wait: bool) -> Work:
    """Tell what is due: of the step before, or of this one, since no node of ours may follow."""
    run = run_of(work.state, work.runtime)
    return replace(work, state=await reported(run, work.state, work.runtime, may_wait=may_wait))


def refused(work: Work, overflow: Mapping[str, Any] | None) -> Work:
    """Note a provider's refusal for the compaction, and the window that it named.

    Raises:
        ContextOverflowError: it is the second one of the run.
    """
    if overflow is None:
        return work
    if work.state.call.get("overflowed"):
        raise ContextOverflowError(str(overflow.get("said", "")))
    state, limit = work.state, overflow.get("limit")
    name = name_of(context_of(work.runtime).model)
    return work.with_update(
        Update(
            call=state.call | {"overflow": dict(overflow), "overflowed": True},
            named_windows=state.named_windows | ({name: limit} if limit else {}),
        )
    )


async def forgotten(work: Work, toolbox: Toolbox) -> Work:
    """Strike at once what a call of `memory_forget` has forgotten."""
    state = work.state
    results = [
        one for one in uncounted(state.messages, state.meter) if isinstance(one, ToolMessage)
    ]
    if not any(one.name == TOOL for one in results):
        return work
    run = run_of(state, work.runtime)
    return work.with_update(await after_tools(run, state, results, toolbox))


async def evicted(work: Work, toolbox: Toolbox) -> Work:
    """Move oversized results away."""
    if not has_oversized(work.state, work.runtime):
        return work
    return work.with_update(await evict(work.state, work.runtime, toolbox=toolbox))


async def compacted(work: Work, toolbox: Toolbox) -> Work:
    """Compact where a trigger is reached, or a provider has refused."""
    if not needs_compaction(work.state, work.runtime):
        return work
    return work.with_update(await compact(work.state, work.runtime, toolbox=toolbox))


async def remembered(work: Work) -> Work:
    """Keep what the call has brought, and rewrite MEMORY.md where that is due."""
    if not has_records_to_keep(work.runtime):
        return work
    work = work.with_update(await flush_memory(work.state, work.runtime))
    if work.state.call.get("consolidate"):
        work = work.with_update(await consolidate(work.state, work.runtime))
    return work


def heard(work: Work) -> Work:
    """Take up what a provider has reported with the newest answer, which the meter lacks."""
    state = work.state
    new = uncounted(state.messages, state.meter)
    before = len(state.messages) - len(new)
    for place in range(len(state.messages) - 1, before - 1, -1):
        answer = state.messages[place]
        if isinstance(answer, AIMessage) and (usage := usage_of(answer)):
            meter = after_answer(
                counted(state.messages[:place], state.meter),
                answer,
                input_tokens=usage.input,
                fixed_tokens=state.call.get("fixed_tokens", 0),
            )
            return work.with_update(Update(meter=meter))
    return work
