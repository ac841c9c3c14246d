"""One message by itself, as a thread may keep it: nothing empty, an id for every call."""

from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.blocks import is_thought, with_arguments, with_call_ids
from everlong.nodes.transcript import calls_tools

NO_OUTPUT = "(no output)"

_CARRIED = frozenset({"audio", "refusal", "function_call"})
"""What OpenAI's older format says beside the content."""


def tidy(message: BaseMessage, gone: Collection[int] = ()) -> BaseMessage:
    """Return `message` without empty text and the blocks of `gone`, by index.

    An empty result says that there is no output. A user message is never made empty.
    """
    solid = _solid(message.content, gone)
    if isinstance(message, ToolMessage):
        solid = solid or NO_OUTPUT
    elif isinstance(message, AIMessage):
        solid = solid or ""
    elif not solid:
        return message
    return message if solid == message.content else message.model_copy(update={"content": solid})


def is_void(message: BaseMessage) -> bool:
    """Return whether a message holds nothing: no text, thought, image or call.

    A result is never void, nor is a system message.
    """
    if isinstance(message, AIMessage):
        says = calls_tools(message) or _CARRIED & set(message.additional_kwargs)
        return not (says or _solid(message.content))
    return isinstance(message, HumanMessage) and not _solid(message.content)


def only_thinks(message: BaseMessage) -> bool:
    """Return whether an assistant message holds thoughts and nothing else; no provider takes it."""
    if not isinstance(message, AIMessage) or calls_tools(message):
        return False
    solid = _solid(message.content)
    return isinstance(solid, list) and bool(solid) and all(map(is_thought, solid))


def name_calls(message: AIMessage) -> AIMessage:
    """Return `message` with a call id wherever one lacks or comes twice, the same each time."""
    taken = set[str]()

    def named(call: Mapping[str, Any]) -> dict[str, Any]:
        own = call["id"]
        if not own or own in taken:
            own = made_id("call", message.id, len(taken), call["name"])
        taken.add(own)
        return {**call, "id": own}

    was = [*message.tool_calls, *message.invalid_tool_calls]
    now = [named(call) for call in was]
    if all(old["id"] == new["id"] for old, new in zip(was, now, strict=True)):
        return message
    valid = len(message.tool_calls)
    pairs = [(cast("dict[str, Any]", old), new["id"]) for old, new in zip(was, now, strict=True)]
    calls = {"tool_calls": now[:valid], "invalid_tool_calls": now[valid:]}
    return message.model_copy(update={**calls, "content": with_call_ids(message.content, pairs)})


def readable(message: BaseMessage) -> BaseMessage:
    """Return `message` with its broken calls as calls that any server can read.

    A call whose arguments are no JSON is sent with their text in an object: some servers refuse
    the whole request otherwise, and the thread with it.
    """
    if not isinstance(message, AIMessage) or not message.invalid_tool_calls:
        return message
    arguments = {call["id"]: {"unreadable": call["args"]} for call in message.invalid_tool_calls}
    mended = [
        {
            "type": "tool_call",
            "id": call["id"],
            "name": call["name"] or "unknown",
            "args": {"unreadable": call["args"]},
        }
        for call in message.invalid_tool_calls
    ]
    content = message.content
    if not isinstance(content, str):
        content = [_valid(with_arguments(block, arguments)) for block in content]
    return message.model_copy(
        update={
            "content": content,
            "tool_calls": [*message.tool_calls, *mended],
            "invalid_tool_calls": [],
        }
    )


def made_id(kind: str, *parts: Any) -> str:
    """Return an id that is the same for the same parts."""
    return f"{kind}_{blake2b(repr(parts).encode(), digest_size=12).hexdigest()}"


def _valid(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    fields = cast("dict[str, Any]", block)
    if fields.get("type") != "invalid_tool_call":
        return fields
    kept = {name: value for name, value in fields.items() if name != "error"}
    return kept | {"type": "tool_call", "name": fields.get("name") or "unknown"}


def _solid(content: str | list[Any], gone: Collection[int] = ()) -> str | list[Any]:
    """Return `content` without blank texts and without the blocks of `gone`."""
    if isinstance(content, str):
        return content if content.strip() else ""
    return [b for at, b in enumerate(content) if at not in gone and not _is_blank(b)]


def _is_blank(block: Any) -> bool:
    if isinstance(block, dict):
        fields = cast("dict[str, Any]", block)
        block = fields.get("text") if fields.get("type") == "text" else fields
    return block is None or (isinstance(block, str) and not block.strip())
