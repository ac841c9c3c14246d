"""What a message may not hold, since no store can."""

from typing import TypeVar

from langchain_core.messages import BaseMessage

from everlong.stores.text import clean

Message = TypeVar("Message", bound=BaseMessage)


def without_faults(message: Message) -> Message:
    """Return `message` without characters that no store holds: NUL, lone surrogates."""
    names = ("content", "name", "tool_calls", "invalid_tool_calls")
    fields = {name: getattr(message, name) for name in names if hasattr(message, name)}
    cleaned = {name: clean(value) for name, value in fields.items()}
    if all(cleaned[name] is value for name, value in fields.items()):
        return message
    return message.model_copy(update=cleaned)
