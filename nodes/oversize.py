"""Which tool results are too long for the history, and how much of a text one result may show."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

from langchain_core.messages import BaseMessage, ToolMessage

from everlong.nodes.budget import limits_of
from everlong.nodes.context import Context
from everlong.nodes.meter import uncounted
from everlong.nodes.pruning import EVICTED
from everlong.nodes.result_text import size_of
from everlong.nodes.state import State
from everlong.nodes.thresholds import window_for
from everlong.nodes.windows import name_of

WAITING = "waits_for_preview"
"""Key in the record of a result that moved, and that `evict` has not told of yet."""
CHARS_PER_TOKEN = 3
WINDOW_SHARE = 0.25
PAGE_CHARS = 20_000

Windows = Mapping[str, int]
"""`State.named_windows`."""


def window_of(context: Context, named: Windows) -> int | None:
    """Return the window in tokens, as small as the settings or a provider say; None: unknown."""
    known = [size for size in (window_for(context), named.get(name_of(context.model))) if size]
    return min(known, default=None)


def eviction_limits(
    context: Context, named: Windows | None = None, tool: str | None = None
) -> tuple[int, int]:
    """Return the characters over which a result moves, and those of the preview (R30).

    Both are smaller where a quarter of the window is smaller. `tool` may have a limit of its own.
    """
    eviction, window = context.eviction, window_of(context, named or {})
    chosen = own_limit(eviction.tool_chars, tool) or eviction.over_chars
    quarter = int(window * CHARS_PER_TOKEN * WINDOW_SHARE) if window else chosen
    over = min(chosen, max(quarter, 1))
    return over, min(eviction.preview_chars, max(over // 4, 1))


def own_limit(limits: Mapping[str, int], tool: str | None) -> int | None:
    """Return the limit that is set for a tool: by its name, else by the first pattern it fits."""
    if not limits or not tool:
        return None
    fitting = (chars for pattern, chars in limits.items() if fnmatchcase(tool, pattern))
    return limits.get(tool, next(fitting, None))


def page_limits(context: Context, named: Windows) -> tuple[int, int | None]:
    """Return the most characters and tokens that a tool of ours shows of a stored text.

    Half of what would be moved away, and a quarter of what a request may hold.
    """
    window = window_of(context, named)
    over, _ = eviction_limits(context, named)
    usable = limits_of(context.compaction, window).usable if window else 0
    tokens = max(int(usable * WINDOW_SHARE), 1) if usable else None
    return max(min(PAGE_CHARS, over // 2), 1), tokens


def is_oversized(context: Context, named: Windows, message: BaseMessage) -> bool:
    """Tell a tool result whose text is longer than the limit; a preview is none."""
    eviction = context.eviction
    if not isinstance(message, ToolMessage) or not eviction.enabled:
        return False
    over, _ = eviction_limits(context, named, message.name)
    is_exempt = message.name in eviction.exempt_tools
    if is_exempt or own_limit(eviction.tool_chars, message.name) == 0 or size_of(message) <= over:
        return False
    return not is_preview(message)


def evictable(context: Context, state: State) -> list[ToolMessage]:
    """Return the tool results that are over the limit, or moved and not told of yet.

    A call begins with a look at all of them: a store may have failed before, and a smaller window
    has a lower limit. Then only new ones are looked at.
    """
    begins = not state.call.get("tool_rounds")
    among = state.messages if begins else uncounted(state.messages, state.meter)
    results = [message for message in among if isinstance(message, ToolMessage)]
    named = state.named_windows
    return [one for one in results if waits(one) or is_oversized(context, named, one)]


def waits(result: BaseMessage) -> bool:
    """Tell a result that moved, and that `evict` has not told of yet."""
    return WAITING in _record(result)


def is_preview(result: BaseMessage) -> bool:
    """Tell a result that stands for a longer text, and says where that is."""
    path, chars = (_record(result).get(name) for name in ("path", "chars"))
    if not isinstance(path, str) or not isinstance(chars, int):
        return False
    return path in result.text and len(result.text) < chars


def _record(result: BaseMessage) -> Mapping[str, Any]:
    """Return the note of ours; whoever sent the message may have made it up."""
    record: Any = result.additional_kwargs.get(EVICTED)
    return cast("dict[str, Any]", record) if isinstance(record, dict) else {}
