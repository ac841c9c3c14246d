"""Windows, thresholds and tails: when to compact, and how much stays (R1-R5)."""

import logging
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from everlong.nodes.context import Compaction

log = logging.getLogger("everlong.compaction")

Trigger = Literal["messages", "tokens", "overflow", "manual"]

TRIGGERS: tuple[Literal["messages", "tokens"], ...] = ("messages", "tokens")
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
    """Most tokens of a whole request: window less reserve, a higher trigger, or the fallback."""
    trigger_messages: int
    """Compact from so many non-system messages on; 0: off."""
    trigger_tokens: int
    """Compact from so many tokens of the whole request on; 0: no history can help."""
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
    trigger = _trigger_tokens(compaction, window, usable)
    return Limits(
        window=window,
        usable=max(usable, trigger),
        trigger_messages=compaction.trigger_messages,
        trigger_tokens=trigger,
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


def _trigger_tokens(compaction: Compaction, window: int | None, usable: int) -> int:
    """Return the token trigger: the setting's, where the window leaves it any use."""
    trigger = compaction.trigger_tokens
    if window is None or trigger < window:
        return trigger or usable
    _warn_once(
        f"`trigger_tokens` {trigger} is not below the window of {window} tokens: compaction starts "
        f"at {usable} instead"
    )
    return usable


def believing(limits: Limits, named: int | None, compaction: Compaction) -> Limits:
    """Return the limits with the window that a provider's refusal named, where it is smaller."""
    if not named or (limits.window and limits.window <= named):
        return limits
    return limits_of(compaction.model_copy(update={"window_tokens": named}), named)


def at_most(limits: Limits, usable: int) -> Limits:
    """Return the limits for requests of at most so many tokens."""
    usable = max(min(limits.usable, usable), 1)
    return replace(
        limits,
        usable=usable,
        trigger_tokens=min(limits.trigger_tokens, usable),
        keep_tokens=min(limits.keep_tokens, usable),
    )


def above_fixed(limits: Limits, fixed_tokens: int) -> Limits:
    """Return the limits with a token trigger that a history can be under.

    Where a request's fixed parts alone reach it, the most that fits takes its place; where they
    reach that, too, no compaction can help.
    """
    if fixed_tokens < limits.trigger_tokens:
        return limits
    instead = limits.usable if fixed_tokens < limits.usable else 0
    then = f"compaction starts at {instead} tokens instead" if instead else "compaction cannot help"
    _warn_once(
        f"the fixed parts of a request (system prompt, rules, memory, tools) take about "
        f"{_rounded(fixed_tokens)} tokens, and compaction was to start at {limits.trigger_tokens}: "
        f"{then}. Shorten them, offer fewer tools, or raise `trigger_tokens` or `window_tokens`"
    )
    return replace(limits, trigger_tokens=instead)


def _rounded(tokens: int) -> int:
    """Round to two digits, so that a warning that is given once stays the same text."""
    return int(float(f"{tokens:.1e}"))


def trigger_of(limits: Limits, *, messages: int, tokens: int) -> Trigger | None:
    """Return which threshold is reached, if any: messages without system, tokens of the request."""
    return next((one for one in TRIGGERS if _reached(limits, one, messages, tokens)), None)


def _reached(limits: Limits, trigger: Trigger, messages: int, tokens: int) -> bool:
    threshold, size = _measured(limits, trigger, messages, tokens)
    return 0 < threshold <= size


def _measured(limits: Limits, trigger: Trigger, messages: int, tokens: int) -> tuple[int, int]:
    if trigger == "messages":
        return limits.trigger_messages, messages
    return limits.trigger_tokens, tokens


def trigger_after(
    limits: Limits, *, messages: int, tokens: int, new_messages: int, new_tokens: int
) -> Trigger | None:
    """Return which threshold is reached after an attempt that came to nothing (R22).

    Only one by a tenth of which the history has grown since: by `new_messages`, `new_tokens`.
    """
    for trigger in TRIGGERS:
        threshold, grown = _measured(limits, trigger, new_messages, new_tokens)
        if grown >= math.ceil(threshold * GROWTH_SHARE) and _reached(
            limits, trigger, messages, tokens
        ):
            return trigger
    return None


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
