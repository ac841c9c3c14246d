"""The parts that a large text is stored in: cut, cleaned, compressed, and back."""

import base64
import time
import zlib
from collections.abc import Mapping
from typing import Any

from langgraph.store.base import Item

from everlong.stores.text import clean_text

CHUNK_CHARS = 200_000
ZIP_LEVEL = 3
WORTHWHILE_SHARE = 0.8
NEW_SECONDS = 86_400.0


def pieces_of(text: str, chars: int) -> list[str]:
    """Return the text in pieces of so many characters; an empty one is one piece."""
    return [text[at : at + chars] for at in range(0, len(text), chars)] or [""]


def storable(text: str) -> str:
    """Return `clean_text` of a text of any size.

    In chunks: one search of it all would hold the interpreter, and with it every other task.
    """
    if text.isascii() or len(text) <= CHUNK_CHARS:
        return clean_text(text)
    cleaned: list[str] = []
    at, changed = 0, False
    while at < len(text):
        end = at + CHUNK_CHARS
        end += "\ud800" <= text[end - 1 : end] <= "\udbff"  # the other half of a pair may follow
        chunk = text[at:end]
        cleaned.append(clean_text(chunk))
        changed = changed or cleaned[-1] is not chunk
        at = end
    return "".join(cleaned) if changed else text


def packed(piece: str) -> dict[str, str]:
    """Return a piece as it is stored: compressed, where that saves a fifth or more.

    Postgres compresses values, too, but finds repeated strings only.
    """
    zipped = base64.b64encode(zlib.compress(piece.encode(), ZIP_LEVEL)).decode()
    return {"zip": zipped} if len(zipped) < WORTHWHILE_SHARE * len(piece) else {"text": piece}


def unpacked(value: Mapping[str, str]) -> str:
    """Return the piece."""
    if "text" in value:
        return value["text"]
    return zlib.decompress(base64.b64decode(value["zip"])).decode()


def is_new(item: Item) -> bool:
    """Tell a file that was written within a day; after it, the same text again makes it new."""
    return item.updated_at.timestamp() > time.time() - NEW_SECONDS


def with_origin(first: Mapping[str, Any], again: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return where a text comes from: as it was first, with each thread that it came from since."""
    known = {str(first.get("thread") or ""), *map(str, first.get("threads", ()))}
    threads = sorted({*known, str(again.get("thread") or "")} - {""})
    return {**first, "threads": threads} if len(threads) > 1 else first
