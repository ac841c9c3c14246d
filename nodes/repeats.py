"""How often a model asks for the same thing in a row. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from everlong.nodes.pruning import SHORTENED

_FIRST = {"line": (None, 1), "offset": (0, None)}
"""Arguments that mean the beginning, and are as if they were not there."""


def asked_before(messages: Sequence[BaseMessage], call_id: str | None) -> int:
    """Return how many calls of the same tool, directly before this one, asked for the very same.

    Only calls since the user last spoke count, whose results still stand whole in the history.
    """
    turn = _turn(messages)
    cut = {
        each.tool_call_id
        for each in turn
        if isinstance(each, ToolMessage) and SHORTENED in each.additional_kwargs
    }
    calls = [call for each in turn if isinstance(each, AIMessage) for call in each.tool_calls]
    own = next((at for at in reversed(range(len(calls))) if calls[at]["id"] == call_id), None)
    if own is None:
        return 0
    count = 0
    for call in reversed(calls[:own]):
        if call["name"] != calls[own]["name"]:
            continue
        if _wish(call) != _wish(calls[own]) or call["id"] in cut:
            break
        count += 1
    return count


def _turn(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return the messages since the user last spoke."""
    spoken = (at for at in reversed(range(len(messages))) if isinstance(messages[at], HumanMessage))
    return messages[next(spoken, 0) :]


def _wish(call: ToolCall) -> str:
    args: Mapping[str, Any] = call["args"]
    said = {name: value for name, value in args.items() if value not in _FIRST.get(name, ())}
    return json.dumps(said, sort_keys=True, default=str)
