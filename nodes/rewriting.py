"""How a node writes a whole new history (LangGraph's `add_messages`) out of the user's stream."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES

Written = BaseMessage | dict[str, Any]


def whole_history(messages: Sequence[Written]) -> list[Written]:
    """Return the update that puts `messages`, in this order, in the place of the history."""
    return [{"type": "remove", "content": "", "id": REMOVE_ALL_MESSAGES}, *messages]


def unstreamed(message: BaseMessage) -> dict[str, Any]:
    """Return the message as plain data.

    LangGraph streams each message object that a node returns and no one has seen; a summary is
    no answer to the user.
    """
    return {
        "type": message.type,
        "content": message.content,
        "name": message.name,
        "id": message.id,
    }
