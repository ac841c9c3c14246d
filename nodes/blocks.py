"""Kinds of content blocks, in the spellings of langchain-core and of the providers.

A call of a client's tool is for us to run. A server-side call was run by the provider: its result
is a block of an assistant message, too, and no tool message answers it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage

CALLS = frozenset(
    {
        "tool_use",
        "tool_call",
        "tool_call_chunk",
        "function_call",
        "custom_tool_call",
        "invalid_tool_call",
        "input_json_delta",
    }
)
"""Calls of a client's tools, which `tool_calls` and `invalid_tool_calls` hold as well."""
THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})

_SERVER_CALLS = frozenset({"server_tool_use", "server_tool_call", "mcp_tool_use"})
_RESULT = "_tool_result"
"""How Anthropic's and langchain-core's kinds of server-side results end."""
_CALLER_FIELDS = ("tool_use_id", "tool_call_id")
_APPROVAL, _APPROVED = "mcp_approval_request", "mcp_approval_response"


def blocks_of(message: BaseMessage) -> list[dict[str, Any]]:
    """Return the content blocks of `message` that are more than a string."""
    if isinstance(message.content, str):
        return []
    return [cast("dict[str, Any]", block) for block in message.content if isinstance(block, dict)]


def kind_of(block: Mapping[str, Any]) -> str:
    """Return the kind of a block; what has none is named by its first field, as Bedrock does."""
    return str(block.get("type") or next(iter(block), ""))


def is_thought(block: Any) -> bool:
    """Return whether a block holds reasoning, readable or not."""
    return isinstance(block, dict) and kind_of(cast("dict[str, Any]", block)) in THOUGHTS


def is_call(block: Any) -> bool:
    """Return whether a block is a call of a client's tool."""
    return isinstance(block, dict) and kind_of(cast("dict[str, Any]", block)) in CALLS


def server_call(block: Mapping[str, Any]) -> str:
    """Return the id of a call that the provider runs and answers in another block, else ''."""
    return str(block.get("id") or "") if kind_of(block) in _SERVER_CALLS else ""


def server_result(block: Mapping[str, Any]) -> str:
    """Return the id of the call that a block answers for the provider, else ''."""
    if not kind_of(block).endswith(_RESULT):
        return ""
    return next((str(block[name]) for name in _CALLER_FIELDS if block.get(name)), "")


def ties(messages: Sequence[BaseMessage]) -> list[tuple[int, int]]:
    """Return pairs of indices of different messages, of which the second answers the first.

    Anthropic's results of a call that a client's tool took part in come in a later message, and
    so does a person's word on one of OpenAI's MCP calls.
    """
    begun: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for index, message in enumerate(messages):
        for block in blocks_of(message):
            kind = kind_of(block)
            if own := server_call(block) or (str(block.get("id")) if kind == _APPROVAL else ""):
                begun[own] = index
            of = server_result(block)
            if kind == _APPROVED:
                of = str(block.get("approval_request_id"))
            if of in begun and begun[of] < index:
                found.append((begun[of], index))
    return found


def lonely(messages: Sequence[BaseMessage]) -> set[tuple[int, int]]:
    """Return the places of server-side blocks whose other half is missing; providers refuse them.

    A place is the index of a message and of its block. A call may still get its result as long as
    no user speaks: a paused turn goes on.
    """
    waiting: dict[str, tuple[int, int]] = {}
    found = set[tuple[int, int]]()
    for index, message in enumerate(messages):
        if message.type == "human":
            found |= set(waiting.values())
            waiting = {}
        if not isinstance(message, AIMessage) or isinstance(message.content, str):
            continue
        for at, block in enumerate(message.content):
            fields = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
            if own := server_call(fields):
                found |= {waiting[own]} if own in waiting else set()
                waiting[own] = (index, at)
            elif (of := server_result(fields)) and waiting.pop(of, None) is None:
                found.add((index, at))
    return found


def without_thoughts(message: AIMessage) -> AIMessage | None:
    """Return a message of an earlier turn without its reasoning; None where it cannot go.

    OpenAI pairs a reasoning item with the item after it, by their ids: these go along. An item
    of a call that OpenAI ran needs its id, and so its reasoning.
    """
    blocks = blocks_of(message)
    if not any(map(is_thought, blocks)):
        return message
    if any(
        not (is_thought(block) or is_call(block) or kind_of(block) == "text") for block in blocks
    ):
        return None
    kept = [_anonymous(block) for block in message.content if not is_thought(block)]
    return message.model_copy(update={"content": kept})


def _anonymous(block: Any) -> Any:
    """Return a block without its provider's item id; a call keeps the id that its result names."""
    if not isinstance(block, dict):
        return block
    fields = dict(cast("dict[str, Any]", block))
    if kind_of(fields) == "text" or "call_id" in fields:
        fields.pop("id", None)
    extras = fields.get("extras")
    if isinstance(extras, dict):
        named = cast("dict[str, Any]", extras).items()
        fields["extras"] = {name: value for name, value in named if name != "item_id"}
    return fields


def with_arguments(block: Any, by_id: Mapping[str | None, Any]) -> Any:
    """Return a block that repeats a call with the call's new arguments."""
    if not is_call(block):
        return block
    fields = cast("dict[str, Any]", block)
    own = fields.get("call_id") or fields.get("id")
    if own not in by_id:
        return fields
    text = json.dumps(by_id[own], ensure_ascii=False, default=str)
    new = {"input": by_id[own], "args": by_id[own], "arguments": text, "partial_json": text}
    return fields | {name: value for name, value in new.items() if name in fields}


def with_call_ids(
    content: str | list[Any], named: Sequence[tuple[Mapping[str, Any], str]]
) -> str | list[Any]:
    """Return `content` with the calls' ids in the blocks that repeat them.

    `named` holds each call as it was, in order, and the id that it has now.
    """
    if isinstance(content, str) or all(call["id"] == own for call, own in named):
        return content
    waiting: dict[tuple[Any, Any], list[str]] = {}
    for call, own in named:
        waiting.setdefault((call["id"] or None, call["name"]), []).append(own)

    def with_id(block: Any) -> Any:
        if not is_call(block):
            return block
        field = "call_id" if "call_id" in block else "id"
        ids = waiting.get((block.get(field) or None, block.get("name")))
        return {**block, field: ids.pop(0)} if ids else block

    return [with_id(block) for block in content]
