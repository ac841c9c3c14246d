"""A user's files by path: texts of any size, stored in parts, read whole or page by page.

An item per file holds its sizes and how many lines end before each part. It is written after the
parts, so a crash leaves no readable half, and a page of a large file reads only what it touches.
Every function raises ValueError for a path that is absolute, leads upwards or cannot be stored.
"""

import base64
import hashlib
import zlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, cast

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from everlong.stores.namespaces import space
from everlong.stores.paging import (
    PAGE_CHARS,
    PAGE_LINES,
    Page,
    Window,
    after_lines,
    count_lines,
    refuse_below_least,
)
from everlong.stores.records import all_items, put_all
from everlong.stores.text import clean, clean_text

PART_CHARS = 200_000
"""At most 800 kB of UTF-8: a larger value holds up everyone who shares the store."""
PARTS_AT_ONCE = 5
ZIP_LEVEL = 3
WORTHWHILE_SHARE = 0.8
PATH_BYTES = 1_000


@dataclass(frozen=True, kw_only=True)
class File:
    """What is known of a file without reading it."""

    path: str
    chars: int
    lines: int
    origin: Mapping[str, Any]
    """Where its text comes from, as the writer said."""
    digest: str
    part_chars: int
    newlines: Sequence[int]
    """How many lines end before each part."""


async def write(
    store: BaseStore,
    user_id: str,
    path: str,
    text: str,
    *,
    origin: Mapping[str, Any] | None = None,
) -> None:
    """Write a file as a whole; the same text again changes nothing, its first origin included."""
    old = await find(store, user_id, path)
    text = clean_text(text)
    pieces = [text[at : at + PART_CHARS] for at in range(0, len(text), PART_CHARS)] or [""]
    file = _file(path, text, pieces, clean(dict(origin or {})))
    if old is not None and old.digest == file.digest:
        return
    parts = zip(_places(user_id, file), pieces, strict=True)
    puts = [PutOp(*place, _packed(piece), index=False) for place, piece in parts]
    await put_all(store, puts, at_once=PARTS_AT_ONCE)
    await put_all(store, [PutOp(space(user_id, "files"), path, asdict(file), index=False)])
    if old is not None:
        await put_all(store, [PutOp(*place, None) for place in _places(user_id, old)])


async def remove(store: BaseStore, user_id: str, path: str) -> bool:
    """Remove a file; return whether there was one."""
    file = await find(store, user_id, path)
    if file is None:
        return False
    await store.adelete(space(user_id, "files"), path)
    await put_all(store, [PutOp(*place, None) for place in _places(user_id, file)])
    return True


async def find(store: BaseStore, user_id: str, path: str) -> File | None:
    """Return what is known of the file; None where there is none."""
    item = await store.aget(space(user_id, "files"), _checked(path))
    return File(**item.value) if item else None


async def exists(store: BaseStore, user_id: str, path: str) -> bool:
    """Tell whether the user has a file of this path."""
    return await find(store, user_id, path) is not None


async def list_paths(store: BaseStore, user_id: str, prefix: str = "") -> list[File]:
    """Return the user's files whose path begins so, by path."""
    items = await all_items(store, space(user_id, "files"))
    items.sort(key=lambda item: item.key)
    return [File(**item.value) for item in items if item.key.startswith(prefix)]


async def read_text(store: BaseStore, user_id: str, path: str) -> str | None:
    """Return a file's whole text; None where there is no such file."""
    file = await find(store, user_id, path)
    return await _joined(store, user_id, file, range(len(file.newlines))) if file else None


async def read_page(  # noqa: PLR0913 - whose, which, from where, how much
    store: BaseStore,
    user_id: str,
    path: str,
    *,
    offset: int = 0,
    first_line: int | None = None,
    max_lines: int = PAGE_LINES,
    max_chars: int = PAGE_CHARS,
) -> Page | None:
    """Return the page at a character, or at a line; None where there is no such file.

    It ends after a whole line where one fits, else within the line. Past the end it is empty.

    Raises:
        ValueError: a negative offset, or a line or a limit below 1.
    """
    refuse_below_least(offset, first_line, max_lines, max_chars)
    file = await find(store, user_id, path)
    if file is None:
        return None
    start = offset if first_line is None else await _start(store, user_id, file, first_line)
    part, last = (_part_at(file, at) for at in (start, start + max_chars))
    text = await _joined(store, user_id, file, range(part, last + 1))
    if text is None:
        return None
    window = Window(text, part * file.part_chars, file.newlines[part], file.chars, file.lines)
    return window.page(start, max_lines, max_chars)


def evicted_path(text: str) -> str:
    """Return the path for a text that leaves the history: same text, same path."""
    return f"large_tool_results/{digest_of(clean_text(text))}.txt"


async def _start(store: BaseStore, user_id: str, file: File, line: int) -> int:
    """Return how many characters lie before a line."""
    part = max(bisect_left(file.newlines, line - 1) - 1, 0)
    text = await _joined(store, user_id, file, range(part, part + 1)) or ""
    return part * file.part_chars + after_lines(text, line - 1 - file.newlines[part])


def _part_at(file: File, offset: int) -> int:
    return min(offset // file.part_chars, len(file.newlines) - 1)


async def _joined(store: BaseStore, user_id: str, file: File, parts: range) -> str | None:
    """Return some parts of a file; None where another run has just replaced or removed it."""
    places = _places(user_id, file)[parts.start : parts.stop]
    texts: list[str] = []
    for first in range(0, len(places), PARTS_AT_ONCE):
        gets = [GetOp(*place) for place in places[first : first + PARTS_AT_ONCE]]
        items = cast("list[Item | None]", await store.abatch(gets))
        texts += [_unpacked(item.value) for item in items if item is not None]
    return "".join(texts) if len(texts) == len(places) else None


def _packed(piece: str) -> dict[str, str]:
    """Return a part as it is stored: compressed, where that saves a fifth or more.

    Postgres compresses values, too, but finds repeated strings only.
    """
    packed = base64.b64encode(zlib.compress(piece.encode(), ZIP_LEVEL)).decode()
    return {"zip": packed} if len(packed) < WORTHWHILE_SHARE * len(piece) else {"text": piece}


def _unpacked(value: Mapping[str, str]) -> str:
    if "text" in value:
        return value["text"]
    return zlib.decompress(base64.b64decode(value["zip"])).decode()


def _file(path: str, text: str, pieces: Sequence[str], origin: Mapping[str, Any]) -> File:
    newlines = list(accumulate((piece.count("\n") for piece in pieces), initial=0))
    return File(
        path=path,
        chars=len(text),
        lines=count_lines(text),
        origin=origin,
        digest=digest_of(text),
        part_chars=PART_CHARS,
        newlines=newlines[:-1],
    )


def _places(user_id: str, file: File) -> list[tuple[tuple[str, ...], str]]:
    """Return where the parts are: apart for each path and text, so that no two texts mix."""
    place = space(user_id, "file_parts", digest_of(file.path))
    return [(place, f"{file.digest}-{number:05d}") for number in range(len(file.newlines))]


def digest_of(text: str) -> str:
    """Return what names a text by its content: 32 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _checked(path: str) -> str:
    odd = "\\" in path or clean_text(path) != path or len(path.encode()) > PATH_BYTES
    if odd or any(part in ("", ".", "..") for part in path.split("/")):
        msg = (
            "`path`: expected a relative path such as 'large_tool_results/ab12.txt', of at most "
            f"{PATH_BYTES} bytes, without '..', '.', '\\' and NUL; got {path[:200]!r}"
        )
        raise ValueError(msg)
    return path
