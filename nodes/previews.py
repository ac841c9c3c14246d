"""Previews of messages that are too long to keep: what stays, and where the rest is. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage

from everlong.nodes.pruning import (
    EVICTED,
    SHORTENED,
    PathOf,
    Shortened,
    shorten,
    shorten_message,
)
from everlong.nodes.result_text import size_of, text_of, with_text
from everlong.stores.amounts import amount
from everlong.stores.characters import safe_end, safe_start

NOTICE = (
    "[{what} is too long to keep here: {chars}. It is stored whole as {path}{how}.]"
    "\n\n## Beginning\n{head}\n\n## End\n{tail}"
)
_NAMES = ("title", "filename", "name")


def result_preview(
    message: BaseMessage, *, preview_chars: int, path_of: PathOf
) -> Shortened | None:
    """Return a tool result with its texts cut to `preview_chars`; None where none is longer.

    Text in structured blocks, such as JSON, is taken together.
    """
    if size_of(message) <= len(message.text):
        return shorten_message(message, preview_chars, path_of)
    text = text_of(message)
    path = path_of(text)
    short = shorten(text, preview_chars, path)
    if len(text) <= preview_chars or short == text:
        return None
    kwargs = message.additional_kwargs | {
        SHORTENED: {"preview_chars": preview_chars},
        EVICTED: {"path": path, "chars": len(text)},
    }
    changed = {"content": with_text(message, short), "additional_kwargs": kwargs}
    return Shortened(message.model_copy(update=changed), text)


def user_preview(
    message: BaseMessage, *, over_chars: int, preview_chars: int, path_of: PathOf, reader: str
) -> Shortened | None:
    """Return `message` with previews in the place of its texts over `over_chars`; None for none.

    The full text of the whole message comes along, to be stored; id, name and other blocks stay.
    Text attachments are cut alike, each under its own name. A preview becomes a smaller one.
    """
    if _path_of(message):
        return shorten_message(message, preview_chars)
    is_str = isinstance(message.content, str)
    blocks: list[Any] = [message.content] if is_str else list(message.content)
    texts = [_text(block) for block in blocks]
    most, whole, at = max(over_chars, preview_chars), "".join(texts), 0
    if max(map(len, texts), default=0) <= most:
        return None
    path = path_of(whole)
    for number, text in enumerate(texts):
        if len(text) > most:
            what = _what(blocks[number], is_only=texts.count("") == len(texts) - 1)
            notice = _notice(what, text, preview_chars, path, _how(reader, at))
            blocks[number] = notice if isinstance(blocks[number], str) else _text_block(notice)
        at += len(text)
    kwargs = message.additional_kwargs | {EVICTED: {"path": path, "chars": len(whole)}}
    changed = {"content": blocks[0] if is_str else blocks, "additional_kwargs": kwargs}
    return Shortened(message.model_copy(update=changed), whole)


def _notice(what: str, text: str, preview_chars: int, path: str, how: str) -> str:
    half = max(preview_chars // 2, 1)
    return NOTICE.format(
        what=what,
        chars=amount(len(text), "character"),
        path=path,
        how=how,
        head=text[: safe_end(text, 0, half)],
        tail=text[safe_start(text, max(len(text) - half, 0)) :],
    )


def _how(reader: str, at: int) -> str:
    """Say how to read on: with which tool, and from where where the file holds more."""
    where = f" from offset={at} on" if at else ""
    return f"; read it with {reader}{where}" if reader else where


def _text_block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _path_of(message: BaseMessage) -> str:
    """Return where the whole of a preview is; empty where the message is none.

    Whoever sent the message may have made the record up: a preview names its path.
    """
    record = message.additional_kwargs.get(EVICTED)
    path = str(cast("dict[str, Any]", record).get("path")) if isinstance(record, dict) else ""
    return path if path and path in message.text else ""


def _what(block: Any, *, is_only: bool) -> str:
    """Name what is cut: the message, or an attachment of it."""
    fields = cast("Mapping[str, Any]", block if isinstance(block, dict) else {})
    named: Sequence[Any] = [fields.get(name) for name in _NAMES]
    name = next((one for one in named if isinstance(one, str) and one), "")
    if name or fields.get("source") or fields.get("type") == "text-plain":
        return f"The attachment {name!r}" if name else "An attachment"
    return "The user's message" if is_only else "This part of the user's message"


def _text(block: Any) -> str:
    """Return the text of a block, also of a text file that is sent along; empty for none."""
    if not isinstance(block, dict):
        return block if isinstance(block, str) else ""
    fields = cast("dict[str, Any]", block)
    source = fields.get("source")
    if isinstance(source, dict) and cast("dict[str, Any]", source).get("type") == "text":
        return str(cast("dict[str, Any]", source).get("data") or "")
    text = fields.get("text") if fields.get("type") in ("text", "text-plain") else None
    return text if isinstance(text, str) else ""
