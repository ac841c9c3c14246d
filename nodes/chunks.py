"""A conversation in parts that a summariser's window holds. Pure."""

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage

from everlong.nodes.rendering import render_messages
from everlong.nodes.tokens import estimate_text

KEPT_SHARE = 0.9
"""Of what would just fit, since tokens are not spread evenly over a text."""


def chunks(messages: Sequence[BaseMessage], most_tokens: int) -> list[list[BaseMessage]]:
    """Split a conversation into parts of at most so many tokens each, as it is rendered.

    A message that is longer by itself keeps its head and its tail.
    """
    parts: list[list[BaseMessage]] = [[]]
    room = most_tokens
    for message in messages:
        rendered = render_messages([message])
        size = estimate_text(rendered)
        if size > room and parts[-1]:
            parts.append([])
            room = most_tokens
        parts[-1].append(message if size <= most_tokens else _cut(message, rendered, room / size))
        room -= size
    return parts


def _cut(message: BaseMessage, rendered: str, share: float) -> BaseMessage:
    """Return the message with so much of what is rendered of it: the first and the last half."""
    says = rendered.partition("\n")[2]
    half = int(len(says) * share * KEPT_SHARE / 2)
    gone = len(says) - 2 * half
    text = f"{says[:half]}\n... {gone} characters left out ...\n{says[len(says) - half :]}"
    calls: dict[str, object] = {"tool_calls": []} if isinstance(message, AIMessage) else {}
    return message.model_copy(update={"content": text, **calls})
