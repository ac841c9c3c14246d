"""Where a compaction cuts: from the settings, and harder where the request would still not fit."""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from everlong.nodes.budget import Limits, Trigger
from everlong.nodes.context import Compaction
from everlong.nodes.tokens import estimate_message, estimate_messages
from everlong.nodes.transcript import Split, plain_cut_by_messages, plain_cut_by_tokens, split

SUMMARY_ALLOWANCE_TOKENS = 1_500


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a compaction is about to do."""

    trigger: Trigger
    limits: Limits
    split: Split
    total_messages: int
    """Non-system messages before."""
    total_tokens: int
    """Our estimate of the messages before."""
    request_tokens: int
    """The whole request before."""
    fixed_tokens: int
    min_gain: float
    """Share of the tokens that has to be freed, or the attempt has failed."""

    @property
    def fits(self) -> bool:
        """Whether the request may be sent as it is."""
        return self.trigger != "overflow" and self.request_tokens < self.limits.usable

    @property
    def kept_messages(self) -> int:
        """Messages that stay beside the summary."""
        return len(self.split.kept)


def plan(
    messages: Sequence[BaseMessage],
    *,
    settings: Compaction,
    trigger: Trigger,
    limits: Limits,
    request_tokens: int,
    fixed_tokens: int,
) -> Plan:
    """Plan a compaction of `messages`."""
    spoken = [message for message in messages if not isinstance(message, SystemMessage)]
    sizes = [estimate_message(message) for message in spoken]
    cut = _wished_cut(spoken, sizes, trigger=trigger, limits=limits)
    room = limits.usable - fixed_tokens - SUMMARY_ALLOWANCE_TOKENS
    if sum(sizes[cut:]) > room:
        cut = max(cut, plain_cut_by_tokens(spoken, max(room, 1), sizes))
    if settings.strategy == "window":
        cut = _at_a_user_message(spoken, cut)
    return Plan(
        trigger=trigger,
        limits=limits,
        split=split(messages, cut),
        total_messages=len(spoken),
        total_tokens=estimate_messages(messages),
        request_tokens=request_tokens,
        fixed_tokens=fixed_tokens,
        min_gain=settings.min_gain,
    )


def _at_a_user_message(spoken: Sequence[BaseMessage], cut: int) -> int:
    """Move a cut on to the next user message, where there is one (R26)."""
    asked = (i for i in range(cut, len(spoken)) if isinstance(spoken[i], HumanMessage))
    return next(asked, cut)


def _wished_cut(
    spoken: Sequence[BaseMessage], sizes: Sequence[int], *, trigger: Trigger, limits: Limits
) -> int:
    """Return where the settings cut: R4, as an index of the non-system messages."""
    by_messages = plain_cut_by_messages(spoken, limits.keep_messages)
    if not limits.keep_tokens:
        return by_messages
    by_tokens = plain_cut_by_tokens(spoken, limits.keep_tokens, sizes)
    return max(by_tokens, by_messages) if trigger == "messages" else by_tokens
