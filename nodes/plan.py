"""Where a compaction cuts: from the settings, and harder where the request would still not fit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from langchain_core.messages import BaseMessage, HumanMessage

from everlong.nodes.budget import Limits, Trigger
from everlong.nodes.context import Compaction
from everlong.nodes.tokens import estimate_message, estimate_messages, tail_size
from everlong.nodes.transcript import (
    Cut,
    Split,
    conversation,
    open_question,
    pinned_indices,
    plain_cut,
    safe_cut,
    split,
)

SUMMARY_ALLOWANCE_TOKENS = 1_500
SUMMARY_SHARE = 0.25
"""Of what the fixed parts leave, where that is less."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a compaction is about to do."""

    trigger: Trigger
    limits: Limits
    split: Split
    total_messages: int
    """Non-system messages before."""
    total_tokens: int
    """Our estimate of the messages before anything was shortened."""
    request_tokens: int
    """The whole request, with what was shortened."""
    fixed_tokens: int
    history_room: int
    """Tokens that a request has for messages other than the system's, as we estimate them."""
    min_gain: float
    """Share of the tokens that has to be freed, or the attempt has failed."""

    @property
    def fits(self) -> bool:
        """Whether the request may be sent as it is."""
        return self.trigger != "overflow" and self.request_tokens < self.limits.usable

    @property
    def is_bound(self) -> bool:
        """Whether there is a limit for sure: a window that someone knows, or a refusal."""
        return self.trigger == "overflow" or self.limits.window is not None

    @property
    def kept_messages(self) -> int:
        """Messages that stay beside the summary."""
        return len(self.split.kept)

    @property
    def kept_room(self) -> int:
        """Tokens that a request has for what stays beside a summary."""
        return self.history_room - _allowance(self.history_room)

    @property
    def summary_room(self) -> int:
        """Tokens that what stays leaves for the summary."""
        return self.history_room - estimate_messages(self.split.kept)

    def holding(self, shortened: Mapping[str | None, BaseMessage]) -> "Plan":
        """Return the plan with shortened messages, by id, among those that stay."""
        parts = {
            name: tuple(shortened.get(one.id, one) for one in getattr(self.split, name))
            for name in ("pinned", "question", "tail")
        }
        return replace(self, split=replace(self.split, **parts))

    def came_to_little(self, *, messages_after: int, tokens_after: int) -> bool:
        """Tell whether an attempt freed too little, or left the request over its token trigger.

        What counts is what triggered: messages or tokens.
        """
        freed = self.total_tokens - tokens_after >= self.min_gain * self.total_tokens
        if self.trigger == "messages":
            gone = self.total_messages - messages_after
            freed = freed or gone >= self.min_gain * self.total_messages
        trigger = self.limits.trigger_tokens
        is_over = self.fixed_tokens < trigger <= tokens_after + self.fixed_tokens
        return is_over or not freed


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What a compaction starts from, in tokens."""

    total: int
    """Our estimate of the messages before anything was shortened."""
    request: int
    """The whole request, with what was shortened."""
    fixed: int
    """The request's fixed parts."""
    estimate_share: float = 1.0
    """What part of the true size our estimates are."""

    def free(self, limits: Limits, system: Iterable[BaseMessage]) -> int:
        """Return what a request has left for messages other than the system's, as we estimate."""
        usable = int(limits.usable * self.estimate_share)
        return usable - self.fixed - estimate_messages(system)


def plan(
    messages: Sequence[BaseMessage],
    *,
    settings: Compaction,
    trigger: Trigger,
    limits: Limits,
    sizes: Sizes,
) -> Plan:
    """Plan a compaction of `messages`."""
    spoken = conversation(messages)
    wish = plain_cut(
        spoken,
        keep_messages=limits.keep_messages,
        budget=limits.keep_tokens,
        sizes=[tail_size(message) for message in spoken],
        counted=trigger == "messages",
    )
    free = sizes.free(limits, (m for m in messages if m.type == "system"))
    cut = fits = fitting_cut(spoken, wish, free - _allowance(free))
    if settings.strategy == "window":
        cut = _at_a_user_message(spoken, cut)
    why = "so that the request fits" if fits != wish else "to begin at a user message"
    return Plan(
        trigger=trigger,
        limits=limits,
        split=_split(messages, wish, cut, why),
        total_messages=len(spoken),
        total_tokens=sizes.total,
        request_tokens=sizes.request,
        fixed_tokens=sizes.fixed,
        history_room=free,
        min_gain=settings.min_gain,
    )


def _allowance(free: int) -> int:
    """Return the tokens that are held back for a summary."""
    return min(SUMMARY_ALLOWANCE_TOKENS, max(int(free * SUMMARY_SHARE), 0))


def fitting_cut(spoken: Sequence[BaseMessage], wish: int, most_tokens: int) -> int:
    """Return where to cut so that what stays fits: at `wish`, or as little later as may be.

    Pinned messages and the open question stay wherever they are. Where nothing fits, the newest
    message stays, with its call and that one's other results.
    """
    sizes = [estimate_message(message) for message in spoken]
    asked = open_question(spoken)
    stay = pinned_indices(spoken) | (set[int]() if asked is None else {asked})
    before = accumulate((size * (i in stay) for i, size in enumerate(sizes)), initial=0)
    within = accumulate(sizes, initial=0)
    total = sum(sizes)
    kept = [some + total - all_ for some, all_ in zip(before, within, strict=True)]
    first = safe_cut(spoken, wish).safe
    if kept[first] <= most_tokens:
        return wish
    last = max(len(spoken) - 1, 0)
    later = (cut for cut in range(first, last + 1) if kept[cut] <= most_tokens)
    legal = (cut for cut in later if safe_cut(spoken, cut).safe == cut)
    return next(legal, max(safe_cut(spoken, last).safe, first))


def _split(messages: Sequence[BaseMessage], wish: int, cut: int, why: str) -> Split:
    parts = split(messages, cut)
    if cut == wish:
        return parts
    reason = f"cut at {parts.cut.safe} instead of {wish}, {why}"
    return replace(parts, cut=Cut(wish, parts.cut.safe, reason))


def _at_a_user_message(spoken: Sequence[BaseMessage], cut: int) -> int:
    """Move a cut on to the next user message, where there is one (R26)."""
    asked = (i for i in range(cut, len(spoken)) if isinstance(spoken[i], HumanMessage))
    return next(asked, cut)
