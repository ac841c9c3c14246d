"""A user's files by path: texts of any size, stored in parts, read whole or page by page.

An item per file holds its sizes and how many lines end before each part. It is written after the
parts, so a crash leaves no readable half, and a page of a large file reads only what it touches.
The work on a large text is done in threads, a few parts at a time: other tasks go on meanwhile.
Every function raises ValueError for a path that is absolute, leads upwards or cannot be stored.
"""

import asyncio
import hashlib
from bisect import bisect_left
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any, cast

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from everlong.stores.file_parts import is_new, packed, pieces_of, storable, unpacked, with_origin
from everlong.stores.namespaces import space
from everlong.stores.paging import (
    PAGE_CHARS,
    PAGE_LINES,
    Page,
    Window,
    after_lines,
    refuse_below_least,
)
from everlong.stores.records import all_items, put_all
from everlong.stores.text import clean, clean_text

PART_CHARS = 200_000
"""At most 800 kB of UTF-8: a larger value holds up everyone who shares the store."""
PARTS_AT_ONCE = 5
PATH_BYTES = 1_000
DIGEST_CHARS = 32
EVICTED = "large_tool_results/"
"""Where the texts are that left the history."""


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
) -> File:
    """Write a file as a whole; the same text again keeps its first origin."""
    _checked(path)
    text, file = await asyncio.to_thread(_prepared, path, text, clean(dict(origin or {})))
    return await _written(store, user_id, file, text)


async def keep(
    store: BaseStore, user_id: str, text: str, *, origin: Mapping[str, Any] | None = None
) -> File:
    """Write a text that leaves the history to `evicted_path` of it."""
    text, file = await asyncio.to_thread(_prepared, "", text, clean(dict(origin or {})))
    file = replace(file, path=f"{EVICTED}{file.digest}.txt")
    return await _written(store, user_id, file, text)


async def _written(store: BaseStore, user_id: str, file: File, text: str) -> File:
    item = await store.aget(space(user_id, "files"), _checked(file.path))
    old = File(**item.value) if item else None
    if item and old and old.digest == file.digest:
        file = replace(file, origin=with_origin(old.origin, file.origin))
        if file.origin == old.origin and is_new(item):
            return old
    places = _places(user_id, file)
    for first in range(0, len(places), PARTS_AT_ONCE):
        begin, end = (at * file.part_chars for at in (first, first + PARTS_AT_ONCE))
        pieces = pieces_of(text[begin:end], file.part_chars)
        values = await asyncio.to_thread(list, map(packed, pieces))
        some = places[first : first + PARTS_AT_ONCE]
        puts = [PutOp(*place, one, index=False) for place, one in zip(some, values, strict=True)]
        await put_all(store, puts)
    await put_all(store, [PutOp(space(user_id, "files"), file.path, asdict(file), index=False)])
    if old and old.digest != file.digest:
        await put_all(store, [PutOp(*place, None) for place in _places(user_id, old)])
    return file


async def remove(store: BaseStore, user_id: str, path: str) -> bool:
    """Remove a file; return whether there was one."""
    if (file := await find(store, user_id, path)) is None:
        return False
    await store.adelete(space(user_id, "files"), path)
    await put_all(store, [PutOp(*place, None) for place in _places(user_id, file)])
    return True


async def find(store: BaseStore, user_id: str, path: str) -> File | None:
    """Return what is known of the file; None where there is none."""
    item = await store.aget(space(user_id, "files"), _checked(path))
    return File(**item.value) if item else None


async def exists(store: BaseStore, user_id: str, path: str) -> bool:
    """Tell whether the user has one."""
    return await find(store, user_id, path) is not None


async def list_paths(store: BaseStore, user_id: str, prefix: str = "") -> list[File]:
    """Return the user's files whose path begins so, by path."""
    items = await all_items(store, space(user_id, "files"))
    items.sort(key=lambda item: item.key)
    return [File(**item.value) for item in items if item.key.startswith(prefix)]


async def newest(store: BaseStore, user_id: str, prefix: str = "") -> list[File]:
    """Return the same, the file that was written last first."""
    items = await all_items(store, space(user_id, "files"))
    items.sort(key=lambda item: (item.updated_at, item.key), reverse=True)
    return [File(**item.value) for item in items if item.key.startswith(prefix)]


async def read_text(store: BaseStore, user_id: str, path: str) -> str | None:
    """Return a file's whole text; None where there is no such file."""
    file = await find(store, user_id, path)
    return await _joined(store, user_id, file, range(len(file.newlines))) if file else None


async def read_parts(store: BaseStore, user_id: str, file: File) -> AsyncIterator[str]:
    """Yield a file's text part by part; it ends early where another run has just replaced it."""
    for first in range(0, len(file.newlines), PARTS_AT_ONCE):
        some = range(first, min(first + PARTS_AT_ONCE, len(file.newlines)))
        texts = await _parts(store, user_id, file, some)
        for text in texts:
            yield text
        if len(texts) < len(some):
            return


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
    return f"{EVICTED}{digest_of(clean_text(text))}.txt"


async def _start(store: BaseStore, user_id: str, file: File, line: int) -> int:
    """Return how many characters lie before a line."""
    part = max(bisect_left(file.newlines, line - 1) - 1, 0)
    text = await _joined(store, user_id, file, range(part, part + 1)) or ""
    return part * file.part_chars + after_lines(text, line - 1 - file.newlines[part])


def _part_at(file: File, offset: int) -> int:
    return min(offset // file.part_chars, len(file.newlines) - 1)


async def _joined(store: BaseStore, user_id: str, file: File, parts: range) -> str | None:
    """Return some parts of a file; None where another run has just replaced or removed it."""
    texts: list[str] = []
    for first in range(parts.start, parts.stop, PARTS_AT_ONCE):
        some = range(first, min(first + PARTS_AT_ONCE, parts.stop))
        texts += await _parts(store, user_id, file, some)
    return "".join(texts) if len(texts) == len(parts) else None


async def _parts(store: BaseStore, user_id: str, file: File, parts: range) -> list[str]:
    places = _places(user_id, file)[parts.start : parts.stop]
    items = cast("list[Item | None]", await store.abatch([GetOp(*place) for place in places]))
    values = [item.value for item in items if item is not None]
    return await asyncio.to_thread(list, map(unpacked, values))


def _prepared(path: str, text: str, origin: Mapping[str, Any]) -> tuple[str, File]:
    """Return the text as it can be stored, and what is to be known of it."""
    text = storable(text)
    digest, newlines = hashlib.sha256(), list[int]()
    for piece in pieces_of(text, PART_CHARS):
        digest.update(piece.encode())
        newlines.append(piece.count("\n"))
    return text, File(
        path=path,
        chars=len(text),
        lines=sum(newlines) + (not text.endswith("\n") and bool(text)),
        origin=origin,
        digest=digest.hexdigest()[:DIGEST_CHARS],
        part_chars=PART_CHARS,
        newlines=list(accumulate(newlines, initial=0))[:-1],
    )


def _places(user_id: str, file: File) -> list[tuple[tuple[str, ...], str]]:
    """Return where the parts are: apart for each path and text, so that no two texts mix."""
    place = space(user_id, "file_parts", digest_of(file.path))
    return [(place, f"{file.digest}-{number:05d}") for number in range(len(file.newlines))]


def digest_of(text: str) -> str:
    """Return what names a text by its content: 32 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]


def _checked(path: str) -> str:
    odd = "\\" in path or clean_text(path) != path or len(path.encode()) > PATH_BYTES
    if odd or any(part in ("", ".", "..") for part in path.split("/")):
        msg = (
            "`path`: expected a relative path such as 'large_tool_results/ab12.txt', of at most "
            f"{PATH_BYTES} bytes, without '..', '.', '\\' and NUL; got {path[:200]!r}"
        )
        raise ValueError(msg)
    return path
