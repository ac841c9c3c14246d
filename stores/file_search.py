"""Find lines in a user's stored texts by their words; no index, part by part."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from langgraph.store.base import BaseStore

from everlong.stores import files
from everlong.stores.files import File
from everlong.stores.search import closeness, first_place, places_of, terms_of, weight

MOST_CHARS = 50_000_000
LINE_CHARS = 400
PIECE_CHARS = 4_000
"""Of a longer line, so much around what was found is looked at."""
PLACES_A_PART = 50
LINES_A_PART = 3


@dataclass(frozen=True, kw_only=True)
class FoundLine:
    """A line of a stored text."""

    path: str
    line: int
    """From 1."""
    offset: int
    """Characters of the whole text before `text`."""
    text: str
    """The part of the line around the words."""
    closeness: int
    """As `search.closeness` says it; goes before the score."""
    score: float

    @property
    def rank(self) -> tuple[int, float]:
        """What the best lines have most of."""
        return self.closeness, self.score


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Lines of a text, one, or a piece of a long one."""

    line: int
    offset: int
    text: str


async def files_of(store: BaseStore, user_id: str, paths: Sequence[str]) -> list[File]:
    """Return the files of these paths, each once; those that are gone are left out."""
    found: list[File] = []
    for path in dict.fromkeys(path for path in paths if path.startswith(files.EVICTED)):
        try:
            file = await files.find(store, user_id, path)
        except ValueError:  # whoever sent the message may have made the path up
            continue
        found += [file] if file else []
    return found


async def search(
    store: BaseStore, user_id: str, query: str, among: Sequence[File], *, limit: int = 5
) -> list[FoundLine]:
    """Return the lines that hold what is asked, best first, of at most 50 million characters."""
    found: list[FoundLine] = []
    room = MOST_CHARS if terms_of(query) else 0
    for file in among:
        room -= file.chars
        if room < 0:
            break
        async for stretch in _stretches(store, user_id, file):
            found += await asyncio.to_thread(_lines, file.path, stretch, query)
        found = _best(found, limit)
    return found


async def _stretches(store: BaseStore, user_id: str, file: File) -> AsyncIterator[Piece]:
    """Yield a file's text in stretches of whole lines; those of a long line overlap."""
    line, offset, rest = 1, 0, ""
    async for part in files.read_parts(store, user_id, file):
        text = rest + part
        ends = text.rfind("\n") + 1
        stretch = text[:ends] if ends else text
        rest = text[ends:] if ends else text[-LINE_CHARS:]
        yield Piece(line=line, offset=offset, text=stretch)
        line += stretch.count("\n")
        offset += len(text) - len(rest)
    yield Piece(line=line, offset=offset, text=rest)


def _best(found: Sequence[FoundLine], limit: int) -> list[FoundLine]:
    """Return the best, of which none shows what a better one shows already."""
    best: list[FoundLine] = []
    for one in sorted(found, key=lambda one: one.rank, reverse=True):
        shown = any(
            other.path == one.path and abs(other.offset - one.offset) < LINE_CHARS // 2
            for other in best
            if other.line == one.line
        )
        if not shown and len(best) < limit:
            best.append(one)
    return best


def _lines(path: str, stretch: Piece, query: str) -> list[FoundLine]:
    """Return the best lines of a stretch of a text."""
    found: list[FoundLine] = []
    line, seen = stretch.line, 0
    for place in places_of(stretch.text, query, PLACES_A_PART):
        line += stretch.text.count("\n", seen, place)
        seen = place
        piece = _piece(stretch, line, place)
        if score := weight(piece.text, query):
            found.append(_found(path, piece, score, query))
    return _best(found, LINES_A_PART)


def _piece(stretch: Piece, line: int, place: int) -> Piece:
    """Return the line at a place, or the part of a long one around it."""
    text = stretch.text
    begin = max(text.rfind("\n", 0, place) + 1, place - PIECE_CHARS // 2)
    end = text.find("\n", place, place + PIECE_CHARS // 2)
    end = end if end >= 0 else place + PIECE_CHARS // 2
    return Piece(line=line, offset=stretch.offset + begin, text=text[begin:end])


def _found(path: str, piece: Piece, score: float, query: str) -> FoundLine:
    """Return the part of a line that holds what is asked."""
    start = max(first_place(piece.text, query) - LINE_CHARS // 2, 0)
    return FoundLine(
        path=path,
        line=piece.line,
        offset=piece.offset + start,
        text=piece.text[start : start + LINE_CHARS],
        closeness=closeness(piece.text, query),
        score=score,
    )
