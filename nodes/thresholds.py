"""The questions about size that forks and nodes ask: what is over which limit."""

from everlong.nodes.budget import (
    Limits,
    Trigger,
    above_fixed,
    at_most,
    believing,
    limits_of,
    note_unknown_window,
    trigger_after,
    trigger_of,
)
from everlong.nodes.context import Context
from everlong.nodes.meter import counted, request_tokens, visible
from everlong.nodes.models import window
from everlong.nodes.state import State
from everlong.nodes.windows import name_of

OVERFLOW_SHARE = 0.35
"""Of a refused request's history that may be sent again, where the provider names no limit."""
LEAST_ESTIMATE_SHARE = 0.3


def window_for(context: Context) -> int | None:
    """Return the model's context window in tokens: the setting's, else the model's, else None."""
    return context.compaction.window_tokens or window(context.model)


def limits_for(context: Context, state: State) -> Limits:
    """Return the limits of this call: settings, the model's window, and what a provider named."""
    settings, found = context.compaction, window_for(context)
    if found is None and not settings.trigger_tokens:
        note_unknown_window(name_of(context.model))
    named = state.named_windows.get(name_of(context.model))
    limits = believing(limits_of(settings, found), named, settings)
    overflow = state.call.get("overflow")
    if overflow and not overflow.get("limit"):
        fixed, tokens = state.call.get("fixed_tokens", 0), tokens_of_request(state)
        return at_most(limits, fixed + int(max(tokens - fixed, 0) * OVERFLOW_SHARE))
    return limits


def tokens_of_request(state: State) -> int:
    """Return the size of the next request in tokens: fixed parts and history."""
    meter = counted(state.messages, state.meter)
    return request_tokens(meter, fixed_tokens=state.call.get("fixed_tokens", 0))


def estimate_share(state: State) -> float:
    """Return what part of the next request's true size our estimate of it is; at most 1.

    The truth is what the provider reported of it, or counted when it refused.
    """
    fixed = state.call.get("fixed_tokens", 0)
    meter = counted(state.messages, state.meter)
    estimated = meter.get("tokens", 0) + fixed
    refused = (state.call.get("overflow") or {}).get("requested") or 0
    true = max(request_tokens(meter, fixed_tokens=fixed), refused, 1)
    return min(max(estimated / true, LEAST_ESTIMATE_SHARE), 1.0)


def compaction_trigger(context: Context, state: State) -> Trigger | None:
    """Return why the history has to be compacted now; None when it has not."""
    if state.phase == "compact_only":
        return "manual"
    if state.call.get("overflow"):
        return "overflow"
    if not context.compaction.enabled:
        return None
    limits = limits_for(context, state)
    messages, tokens = visible(state.messages), tokens_of_request(state)
    if trigger_of(limits, messages=messages, tokens=tokens) is None:
        return None
    limits = above_fixed(limits, state.call.get("fixed_tokens", 0))
    if state.call.get("settled") or state.compaction.get("settled"):
        return _trigger_again(limits, state, messages=messages, tokens=tokens)
    return trigger_of(limits, messages=messages, tokens=tokens)


def _trigger_again(limits: Limits, state: State, *, messages: int, tokens: int) -> Trigger | None:
    """Return why to compact after an attempt that came to nothing (R22).

    One of this call is not repeated, nor one of an earlier call before the history has grown. But
    a request that has outgrown the window since then is not sent to be refused.
    """
    last = state.compaction
    history = counted(state.messages, state.meter).get("tokens", 0)
    new_tokens = history - int(last.get("tokens_after", 0))
    if limits.trigger_tokens and limits.window and tokens > limits.window and new_tokens > 0:
        return "tokens"
    if state.call.get("settled"):
        return None
    return trigger_after(
        limits,
        messages=messages,
        tokens=tokens,
        new_messages=messages - int(last.get("messages_after", 0)),
        new_tokens=new_tokens,
    )
