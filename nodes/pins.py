"""Pinned messages (R19): how much may be pinned, and which mark is one too many. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from everlong.nodes.budget import UNKNOWN_WINDOW_TRIGGER_TOKENS
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.tokens import estimate_messages
from everlong.nodes.transcript import conversation, is_pinned, pinned_indices

PIN = "pin"
"""Key in `additional_kwargs` of a message that survives every compaction word for word."""
WINDOW_SHARE = 4
"""All that is pinned is at most one part in so many of the window."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A mark that was taken off."""

    message_id: str
    tokens: int
    """What would have been pinned in all."""


def most_pinned_tokens(window: int | None) -> int:
    """Return how many tokens may be pinned: a quarter of the window, where it is known."""
    return (window or UNKNOWN_WINDOW_TRIGGER_TOKENS) // WINDOW_SHARE


def pinned_messages(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the pinned messages with their tool partners, in their order."""
    talk = conversation(messages)
    return [talk[index] for index in sorted(pinned_indices(talk))]


def pinned_tokens(messages: Sequence[BaseMessage]) -> int:
    """Return how many tokens the pinned messages and their tool partners have."""
    return estimate_messages(pinned_messages(messages))


def refuse_too_many(tokens: int, most_tokens: int) -> None:
    """Refuse to pin so much.

    Raises:
        InvalidInputError: it is more than may be pinned.
    """
    if tokens > most_tokens:
        msg = (
            f"`pin`: expected at most {most_tokens:,} pinned tokens in all, a quarter of the "
            f"window; got {tokens:,}. Unpin something, or say it again in fewer words and pin that."
        )
        raise InvalidInputError(msg)


def marked(message: BaseMessage) -> BaseMessage:
    """Return the message with a pin."""
    return message.model_copy(
        update={"additional_kwargs": {**message.additional_kwargs, PIN: True}}
    )


def unmarked(message: BaseMessage) -> BaseMessage:
    """Return the message without a pin."""
    kept = {name: value for name, value in message.additional_kwargs.items() if name != PIN}
    return message.model_copy(update={"additional_kwargs": kept})


def within(
    old: Sequence[BaseMessage], new: Sequence[BaseMessage], most_tokens: int
) -> tuple[list[BaseMessage], list[Refused]]:
    """Return the new messages, and which of them lost a mark that would pin too much.

    The marks are taken in order, so an earlier one goes before a later one.
    """
    wanted = [index for index, message in enumerate(new) if is_pinned(message)]
    kept = [unmarked(m) if index in wanted else m for index, m in enumerate(new)]
    refused: list[Refused] = []
    for index in wanted:
        tried = [*kept[:index], new[index], *kept[index + 1 :]]
        tokens = pinned_tokens([*old, *tried])
        if tokens <= most_tokens:
            kept = tried
        else:
            refused.append(Refused(message_id=str(new[index].id), tokens=tokens))
    return kept, refused
