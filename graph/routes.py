"""The questions at the forks of the graph; pure functions of state and runtime."""

from typing import Literal

from langgraph.runtime import Runtime

from everlong.nodes.attempts import has_to_tell
from everlong.nodes.context import Context, context_of
from everlong.nodes.oversize import evictable
from everlong.nodes.state import State
from everlong.nodes.thresholds import compaction_trigger
from everlong.nodes.transcript import call_ids


def has_oversized(state: State, runtime: Runtime[Context]) -> bool:
    """Is a tool result over its limit?"""
    return runtime.store is not None and bool(evictable(context_of(runtime), state))


def needs_compaction(state: State, runtime: Runtime[Context]) -> bool:
    """Is a threshold reached, did the provider say "too long", or did a person ask?"""
    return compaction_trigger(context_of(runtime), state) is not None


def wants_tools(state: State) -> bool:
    """Did the model call tools?"""
    return bool(call_ids(state.messages[-1]))


def has_records_to_keep(runtime: Runtime[Context]) -> bool:
    """Is there a transcript or a memory to write to?"""
    context = context_of(runtime)
    return runtime.store is not None and (context.transcript or context.memory.enabled)


def after_open_call(
    state: State, runtime: Runtime[Context]
) -> Literal["evict", "compact", "reason", "tools", "consolidate"]:
    """Consolidate where only that was asked for, run calls that are open, else look further."""
    if state.phase == "consolidate_only":
        return "consolidate"
    if state.phase == "answer" and wants_tools(state):
        return "tools"
    return before_reasoning(state, runtime)


def before_reasoning(
    state: State, runtime: Runtime[Context]
) -> Literal["evict", "compact", "reason"]:
    """Leave `open_call` or `tools` by what the history needs first."""
    if has_oversized(state, runtime):
        return "evict"
    return after_evict(state, runtime)


def after_evict(state: State, runtime: Runtime[Context]) -> Literal["compact", "reason"]:
    """Leave `evict` by what the history needs next."""
    return "compact" if needs_compaction(state, runtime) else "reason"


def after_compact(state: State) -> Literal["compact", "reason", "__end__"]:
    """End where only a compaction was asked for, when what came of it has been told."""
    if state.phase != "compact_only":
        return "reason"
    return "compact" if has_to_tell(state) else "__end__"


def after_reason(
    state: State, runtime: Runtime[Context]
) -> Literal["compact", "tools", "flush_memory", "__end__"]:
    """Recover from an overflow, run the model's calls, or keep what the call has brought."""
    if state.call.get("overflow"):
        return "compact"
    if wants_tools(state):
        return "tools"
    return "flush_memory" if has_records_to_keep(runtime) else "__end__"


def after_flush(state: State) -> Literal["consolidate", "__end__"]:
    """Consolidate when the ledger is fresh and the gap has passed."""
    return "consolidate" if state.call.get("consolidate") else "__end__"
