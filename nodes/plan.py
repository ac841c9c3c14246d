"""Where a compaction cuts: from the settings, and harder where the request would still not fit."""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from everlong.nodes.budget import Limits, Trigger
from everlong.nodes.context import Compaction
from everlong.nodes.tokens import estimate_messages, tail_size
from everlong.nodes.transcript import Split, plain_cut, plain_cut_by_tokens, split

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
    sizes = [tail_size(message) for message in spoken]
    cut = plain_cut(
        spoken,
        keep_messages=limits.keep_messages,
        budget=limits.keep_tokens,
        sizes=sizes,
        counted=trigger == "messages",
    )
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
