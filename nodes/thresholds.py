"""The questions about size that forks and nodes ask: what is over which limit."""

from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage

from everlong.nodes.budget import (
    Limits,
    Trigger,
    believing,
    grown_enough,
    limits_of,
    note_unknown_window,
    trigger_of,
)
from everlong.nodes.context import Context
from everlong.nodes.meter import counted, request_tokens, uncounted, visible
from everlong.nodes.models import window
from everlong.nodes.pruning import EVICTED
from everlong.nodes.state import State
from everlong.nodes.windows import name_of

WAITING = "waits_for_preview"
"""Key in the record of an evicted result that is stored and has no preview yet."""
OVERFLOW_SHARE = 0.8
CHARS_PER_TOKEN = 3


def window_for(context: Context) -> int | None:
    """Return the model's context window in tokens: the setting's, else the model's, else None."""
    return context.compaction.window_tokens or window(context.model)


def limits_for(context: Context, state: State) -> Limits:
    """Return the limits of this call: settings, the model's window, and what a provider named."""
    found = window_for(context)
    if found is None and not context.compaction.trigger_tokens:
        note_unknown_window(name_of(context.model))
    limits = limits_of(context.compaction, found)
    limits = believing(limits, state.named_windows.get(name_of(context.model)))
    overflow = state.call.get("overflow")
    if overflow and not overflow.get("limit"):
        return believing(limits, int(tokens_of_request(state) * OVERFLOW_SHARE))
    return limits


def tokens_of_request(state: State) -> int:
    """Return the size of the next request in tokens: fixed parts and history."""
    meter = counted(state.messages, state.meter)
    return request_tokens(meter, fixed_tokens=state.call.get("fixed_tokens", 0))


def compaction_trigger(context: Context, state: State) -> Trigger | None:
    """Return why the history has to be compacted now; None when it has not.

    An attempt of this call that came to nothing is not repeated but on overflow, nor one of an
    earlier call before the history has grown (R22).
    """
    if state.phase == "compact_only":
        return "manual"
    if state.call.get("overflow"):
        return "overflow"
    if not context.compaction.enabled or state.call.get("settled"):
        return None
    limits = limits_for(context, state)
    messages, tokens = visible(state.messages), tokens_of_request(state)
    trigger = trigger_of(limits, messages=messages, tokens=tokens)
    last = state.compaction
    if trigger is None or not last.get("settled"):
        return trigger
    since = {
        "messages": messages - int(last.get("messages_after", 0)),
        "tokens": tokens - int(last.get("request_after", 0)),
    }
    return trigger if grown_enough(limits, **since) else None


def eviction_limits(context: Context) -> tuple[int, int]:
    """Return the characters over which a result moves, and those of the preview (R30).

    Both are smaller where a quarter of the window is smaller.
    """
    eviction, found = context.eviction, window_for(context)
    quarter = found * CHARS_PER_TOKEN // 4 if found else eviction.over_chars
    over = min(eviction.over_chars, quarter)
    return over, min(eviction.preview_chars, max(over // 4, 1))


def is_oversized(context: Context, message: BaseMessage) -> bool:
    """Tell a tool result whose text is longer than the limit."""
    eviction = context.eviction
    if not isinstance(message, ToolMessage) or not eviction.enabled:
        return False
    over, _ = eviction_limits(context)
    return message.name not in eviction.exempt_tools and len(message.text) > over


def evictable(context: Context, state: State) -> list[ToolMessage]:
    """Return the new tool results that are over the limit, or stored without a preview yet."""
    new = uncounted(state.messages, state.meter)
    results = [message for message in new if isinstance(message, ToolMessage)]
    return [one for one in results if _waits(one) or is_oversized(context, one)]


def _waits(result: ToolMessage) -> bool:
    record: Any = result.additional_kwargs.get(EVICTED)
    return isinstance(record, dict) and WAITING in record
