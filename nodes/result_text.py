"""What of a tool result is text that can be stored apart, and what stays in the message. Pure."""

import json
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import BaseMessage

from everlong.nodes.blocks import kind_of

_TEXTS = frozenset({"text", "text-plain"})
_STRUCTURED = frozenset({"json", "search_result"})


def text_of(message: BaseMessage) -> str:
    """Return all text of a result, in order; structured content as JSON, on lines of its own.

    Content that is one structured block gives that JSON and nothing else.
    """
    parts: list[str] = []
    after_json = False
    for text, is_json in _movable(message):
        gap = parts and (is_json or after_json) and not parts[-1].endswith("\n")
        parts.append(f"\n{text}" if gap else text)
        after_json = is_json
    return "".join(parts)


def size_of(message: BaseMessage) -> int:
    """Return how many characters of text a result holds, about."""
    if isinstance(message.content, str):
        return len(message.content)
    return sum(len(text) for text, _ in _movable(message))


def with_text(message: BaseMessage, text: str) -> str | list[Any]:
    """Return the message's content with `text` in the place of all its text; the rest stays."""
    if isinstance(message.content, str):
        return text
    others = [block for block in message.content if _text_in(block) is None]
    return [{"type": "text", "text": text}, *others] if others else text


def _movable(message: BaseMessage) -> list[tuple[str, bool]]:
    """Return each text of a result, and whether it is JSON."""
    content = message.content
    blocks = [content] if isinstance(content, str) else content
    return [found for block in blocks if (found := _text_in(block)) is not None]


def _text_in(block: Any) -> tuple[str, bool] | None:
    if isinstance(block, str):
        return block, False
    fields = cast("Mapping[str, Any]", block)
    kind = kind_of(fields)
    if kind in _TEXTS and isinstance(fields.get("text"), str):
        return fields["text"], False
    if kind in _STRUCTURED:
        return _json(fields.get("json", fields)), True
    return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
