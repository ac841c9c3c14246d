"""Windows, thresholds and tails: when to compact, and how much stays (R1-R5)."""

import logging
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from everlong.nodes.context import Compaction

log = logging.getLogger("everlong.compaction")

Trigger = Literal["messages", "tokens", "overflow", "manual"]

UNKNOWN_WINDOW_TRIGGER_TOKENS = 160_000
TAIL_SHARE = 0.25
TAIL_TOKENS = (2_000, 8_000)
GROWTH_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the settings and the window come to, in messages and tokens."""

    window: int | None
    """The model's context window; None: unknown."""
    usable: int
    """Most tokens of a whole request: window less reserve, or the fallback."""
    trigger_messages: int
    """Compact from so many non-system messages on; 0: off."""
    trigger_tokens: int
    """Compact from so many tokens of the whole request on."""
    keep_messages: int
    """Most messages of the tail."""
    keep_tokens: int
    """Token budget of the tail; 0: the tail is counted in messages."""


def limits_of(compaction: Compaction, window: int | None) -> Limits:
    """Derive the limits for a model with this window."""
    window = compaction.window_tokens or window
    usable = UNKNOWN_WINDOW_TRIGGER_TOKENS if window is None else _usable(window, compaction)
    keep_tokens = compaction.keep_tokens
    if keep_tokens < 0:
        low, high = TAIL_TOKENS
        keep_tokens = 0 if window is None else min(max(int(usable * TAIL_SHARE), low), high)
    return Limits(
        window=window,
        usable=usable,
        trigger_messages=compaction.trigger_messages,
        trigger_tokens=compaction.trigger_tokens or usable,
        keep_messages=compaction.keep_messages,
        keep_tokens=keep_tokens,
    )


def _usable(window: int, compaction: Compaction) -> int:
    usable = window - compaction.reserve_tokens
    if usable > 0:
        return usable
    _warn_once(
        f"`reserve_tokens` {compaction.reserve_tokens} leaves nothing of a window of {window} "
        f"tokens: half the window, {window // 2}, is used instead"
    )
    return max(window // 2, 1)


def believing(limits: Limits, named: int | None) -> Limits:
    """Return the limits with the window that a provider's refusal named."""
    if not named or (limits.window and limits.window <= named):
        return limits
    reserve = (limits.window - limits.usable) if limits.window else 0
    usable = named - reserve if named > reserve else named // 2
    return replace(
        limits,
        window=named,
        usable=usable,
        trigger_tokens=min(limits.trigger_tokens, usable),
        keep_tokens=min(limits.keep_tokens, usable) if limits.keep_tokens else 0,
    )


def trigger_of(limits: Limits, *, messages: int, tokens: int) -> Trigger | None:
    """Return which threshold is reached, if any: messages without system, tokens of the request."""
    if limits.trigger_messages and messages >= limits.trigger_messages:
        return "messages"
    if tokens >= limits.trigger_tokens:
        return "tokens"
    return None


def grown_enough(limits: Limits, *, messages: int, tokens: int) -> bool:
    """Tell whether a history has grown, by so much, since an attempt that came to nothing (R22)."""
    by_messages = math.ceil(limits.trigger_messages * GROWTH_SHARE)
    by_tokens = math.ceil(limits.trigger_tokens * GROWTH_SHARE)
    return tokens >= by_tokens or bool(by_messages and messages >= by_messages)


def warn_of_frequent_compaction(compaction: Compaction) -> None:
    """Name, once, settings that compact in every plain round or at every request (R5)."""
    trigger, keep = compaction.trigger_messages, compaction.keep_messages
    if not trigger or not compaction.enabled or keep + 3 < trigger:
        return
    how_often = "at every request" if keep + 1 >= trigger else "in every plain round"
    _warn_once(
        f"`keep_messages` {keep} with `trigger_messages` {trigger} compacts {how_often}; "
        f"raise `trigger_messages` to at least {keep + 4}"
    )


def note_unknown_window(name: str) -> None:
    """Say, once for each model, that its window is unknown and what follows from it."""
    _warn_once(
        f"the context window of {name!r} is unknown: compaction starts at "
        f"{UNKNOWN_WINDOW_TRIGGER_TOKENS} tokens and keeps a number of messages; set "
        "`compaction.window_tokens` to the model's window"
    )


@cache
def _warn_once(text: str) -> None:
    log.warning(text)
