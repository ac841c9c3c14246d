"""What a model reads of a conversation that is not its own: messages as text (R14, R43)."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.blocks import is_call, is_thought, kind_of, server_result
from everlong.nodes.summary import summary_body
from everlong.nodes.transcript import is_summary

ABOVE = "(The conversation is in the messages above; this message is no part of it.)"
RENDERED_RESULT_CHARS = 8_000
RUN_CHARS = 1_000
"""A longer run without a space is data, such as base64: its ends are rendered."""
_RUN_END_CHARS = 200
_REFERENCE_CHARS = 500

FRAMES = ("conversation", "document", "ledger", "remembered", "reference", "memory", "summary")
"""Marks that open and close material in our requests."""
_CLOSING = re.compile(rf"<(\s*)/(?=\s*(?:{'|'.join(FRAMES)})\s*>)", re.IGNORECASE)
_SPEAKER = re.compile(
    r"^(\[(?:user|assistant calls|assistant|tool|earlier summary)\b)", re.MULTILINE | re.IGNORECASE
)
_RUN = re.compile(rf"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{{{RUN_CHARS + 1},}}+")
_HEADING = re.compile(r"[\[\]\s]+")

_IMAGES = frozenset({"image", "image_url", "input_image"})
_ATTACHED = dict.fromkeys(_IMAGES, "image") | {
    "file": "file",
    "input_file": "file",
    "document": "file",
    "media": "file",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
}
_NAMED_BY = frozenset(
    {"filename", "title", "name", "url", "uri", "image_url", "file_url", "fileUri", "file_id"}
)
_UNSAID = frozenset(
    {
        "type",
        "id",
        "index",
        "tool_use_id",
        "tool_call_id",
        "signature",
        "thought_signature",
        "encrypted_content",
        "encrypted_index",
        "extras",
    }
)
"""What a block says to its provider alone."""


def render_messages(messages: Sequence[BaseMessage], marks: Sequence[str] | None = None) -> str:
    """Render a conversation as text: a line that says who, then what; a blank line between.

    `marks`, one for each message, stand after the word that says who: `[user 12]`.
    """
    parts = [_rendered(message) for message in messages]
    if marks is not None:
        parts = [
            _SPEAKER.sub(lambda who, mark=mark: f"{who[1]} {mark}", part)
            for part, mark in zip(parts, marks, strict=True)
        ]
    return "\n\n".join(filter(None, parts))


def within_frame(text: str) -> str:
    """Return `text` without anything that would close the frame it is put in."""
    return _CLOSING.sub(r"<\1\\/", text)


def in_words(block: Any) -> str:
    """Return what a content block says, or that it was there and what it is called.

    Nothing for thoughts, which are their model's own, and for calls, which a message lists itself.
    """
    if not isinstance(block, dict):
        return str(block or "")
    fields = cast("dict[str, Any]", block)
    kind = kind_of(fields)
    if kind in ("text", "text-plain", "refusal"):
        return str(fields.get("refusal" if kind == "refusal" else "text") or "")
    if is_thought(fields) or is_call(fields):
        return ""
    if kind == "non_standard":
        return in_words(fields.get("value"))
    is_image = str(fields.get("mime_type", "")).startswith("image/")
    if kind in _ATTACHED or is_image:
        return _attached("image" if is_image else _ATTACHED[kind], fields)
    return _run_elsewhere(kind, fields)


def _rendered(message: BaseMessage) -> str:
    if is_summary(message):
        return f"[earlier summary]\n{_escaped(summary_body(message))}"
    if isinstance(message, HumanMessage):
        return f"[user]\n{_escaped(_text_of(message))}"
    if isinstance(message, ToolMessage):
        text = _shortened(_text_of(message))
        return f"[tool {_heading(message.name)}]\n{_escaped(text)}"
    if isinstance(message, AIMessage):
        text = _text_of(message)
        parts = [f"[assistant]\n{_escaped(text)}"] if text else []
        calls = [(call["name"], _json(call["args"])) for call in message.tool_calls]
        calls += [
            (call["name"], f"(not readable) {call['args'] or ''}")
            for call in message.invalid_tool_calls
        ]
        parts += [
            f"[assistant calls {_heading(name)}] {_escaped(_shortened(arguments))}"
            for name, arguments in calls
        ]
        return "\n\n".join(parts)
    return ""


def _text_of(message: BaseMessage) -> str:
    """Return the texts, and words for each block that is none, in order.

    Some providers part an assistant's sentence into several blocks, which belong together.
    """
    if isinstance(message.content, str):
        return _without_runs(message.content)
    between = "" if isinstance(message, AIMessage) else "\n"
    parts: list[str] = []
    was_text = False
    for block in message.content:
        is_text = isinstance(block, str) or block.get("type") == "text"
        words = in_words(block)
        if is_text and was_text:
            parts[-1] += between + words
        elif words:
            parts.append(words)
            was_text = is_text
    return _without_runs("\n".join(parts).strip())


def _attached(what: str, fields: Mapping[str, Any]) -> str:
    """Say that something was attached, its name or address, and its text where it is one."""
    names = dict.fromkeys(_names(fields))
    note = f"({what} attached{': ' if names else ''}{', '.join(names)})"
    source = fields.get("source")
    if isinstance(source, dict) and cast("dict[str, Any]", source).get("type") == "text":
        return f"{note}\n{_shortened(str(cast('dict[str, Any]', source).get('data', '')))}"
    return note


def _names(value: Any) -> list[str]:
    if not isinstance(value, dict):
        return []
    names: list[str] = []
    for name, each in cast("dict[str, Any]", value).items():
        is_name = name in _NAMED_BY and isinstance(each, str) and not each.startswith("data:")
        if is_name and 0 < len(each) <= _REFERENCE_CHARS:
            names.append(each)
        names += _names(each)
    return names


def _run_elsewhere(kind: str, fields: Mapping[str, Any]) -> str:
    """Say what the provider ran by itself, or what came out."""
    said = {name: each for name, each in fields.items() if name not in (*_UNSAID, "name")}
    text = _shortened(_json(_readable(said))) if said else ""
    if server_result(fields):
        return f"({kind.removesuffix('_tool_result')} returned: {text})"
    name = str(fields.get("name") or kind.removesuffix("_call"))
    if kind.endswith(("_call", "_tool_use")):
        return f"(the provider ran {name}: {text})"
    return f"({kind}: {text})" if text else f"({kind} attached)"


def _readable(value: Any) -> Any:
    """Return a JSON-like value without what only a provider reads."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value).items()
        return {name: _readable(each) for name, each in fields if name not in _UNSAID}
    if isinstance(value, list):
        return [_readable(each) for each in cast("list[Any]", value)]
    return _without_runs(value) if isinstance(value, str) else value


def _without_runs(text: str) -> str:
    def ends(run: re.Match[str]) -> str:
        left = len(run[0]) - 2 * _RUN_END_CHARS
        head, tail = run[0][:_RUN_END_CHARS], run[0][-_RUN_END_CHARS:]
        return f"{head} ... {left} characters left out ... {tail}"

    return _RUN.sub(ends, text)


def _heading(name: str | None) -> str:
    """Return a tool's name as part of the line that says who speaks."""
    return _HEADING.sub(" ", name or "").strip()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_no_json, skipkeys=True)


def _no_json(value: Any) -> str:
    return f"({len(value)} bytes)" if isinstance(value, bytes) else str(value)


def _shortened(text: str) -> str:
    text = _without_runs(text)
    if len(text) <= RENDERED_RESULT_CHARS:
        return text
    half = RENDERED_RESULT_CHARS // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def _escaped(text: str) -> str:
    """Keep material from closing its frame, and from speaking as somebody else."""
    return _SPEAKER.sub(r"\\\1", within_frame(text))


def summary_request(
    prompt: str, messages: Sequence[BaseMessage] | None, instructions: str
) -> HumanMessage:
    """Return the request for a summary; `prompt` holds `{messages}`.

    It stands for the rendered conversation, or, without `messages`, for a mention of those above.
    """
    conversation = ABOVE
    if messages is not None:
        conversation = f"<conversation>\n{render_messages(messages)}\n</conversation>"
    text = prompt.replace("{messages}", conversation)
    if instructions:
        text += f"\n\nThe person who asked for this summary adds:\n{instructions}"
    return HumanMessage(text)
