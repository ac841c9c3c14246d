"""Content that Chat Completions takes, made of whatever a history holds.

A thread may have been begun with another provider, whose blocks a server refuses, and with them
the thread. What is no text is put in words; images that a tool gave are shown by a user message
after the results, since only a user's are taken.
"""

from collections.abc import Sequence
from typing import Any, cast

from everlong.nodes.rendering import in_words

Part = dict[str, Any]
SHOWN = frozenset({"image_url", "file", "input_audio"})
SHOWN_NOTE = "(Shown by the tool results above.)"
_SPOKEN = frozenset({"text", "refusal"})


def chat_messages(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a payload with content that is taken from each role."""
    sent: list[dict[str, Any]] = []
    shown: list[Part] = []
    for message in messages:
        content, role = message.get("content"), message["role"]
        if shown and role != "tool":
            sent.append(_show(shown))
            shown = []
        if not isinstance(content, list):
            sent.append(message)
            continue
        parts = [_translated(part) for part in cast("list[Any]", content)]
        sent.append(message | {"content": _taken(message, parts)})
        if role == "tool":
            shown += [part for part in parts if part.get("type") in SHOWN]
    return [*sent, *([_show(shown)] if shown else [])]


def _show(parts: Sequence[Part]) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": SHOWN_NOTE}, *parts]}


def _taken(message: dict[str, Any], parts: Sequence[Part]) -> list[Part] | str | None:
    """Return what a role may send; a server may take more kinds from users than we know of."""
    if message["role"] == "user":
        return list(parts)
    kept: list[Part] = []
    for part in parts:
        if part.get("type") in _SPOKEN:
            kept.append(part)
        elif words := in_words(part):
            kept.append({"type": "text", "text": words})
    return kept or (None if message.get("tool_calls") else "")


def _translated(block: Any) -> Part:
    """Return a block of the Responses API or of Anthropic as Chat Completions spells it."""
    if not isinstance(block, dict):
        return {"type": "text", "text": str(block)}
    fields = cast("Part", block)
    kind, source = fields.get("type"), fields.get("source")
    if kind in ("input_text", "output_text"):
        return {"type": "text", "text": fields.get("text", "")}
    if kind == "input_image" and isinstance(fields.get("image_url"), str):
        return {"type": "image_url", "image_url": {"url": fields["image_url"]}}
    if kind == "document" and isinstance(source, dict):
        return _file(fields, cast("Part", source))
    return fields


def _file(fields: Part, source: Part) -> Part:
    if source.get("type") != "base64":
        return {"type": "text", "text": in_words(fields)}
    data = f"data:{source.get('media_type')};base64,{source.get('data')}"
    name = str(fields.get("title") or "document.pdf")
    return {"type": "file", "file": {"filename": name, "file_data": data}}
