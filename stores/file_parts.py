"""The parts that a large text is stored in: cut, cleaned, compressed, and back."""

import base64
import zlib
from collections.abc import Mapping

from everlong.stores.text import clean_text

CHUNK_CHARS = 200_000
ZIP_LEVEL = 3
WORTHWHILE_SHARE = 0.8


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
