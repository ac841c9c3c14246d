"""Find lines in a user's stored texts by their words; no index, the newest files first."""

import asyncio
from dataclasses import dataclass

from langgraph.store.base import BaseStore

from everlong.stores import files
from everlong.stores.search import scores, terms_of

MOST_CHARS = 50_000_000
LINE_CHARS = 400
LINES_A_FILE = 3


@dataclass(frozen=True, kw_only=True)
class FoundLine:
    """A line of a stored text."""

    path: str
    line: int
    """From 1."""
    text: str
    """The part of the line around the words."""
    score: float


async def search(
    store: BaseStore, user_id: str, query: str, *, prefix: str = "", limit: int = 5
) -> list[FoundLine]:
    """Return the lines that hold what is asked, best first, of at most 50 million characters."""
    asked = terms_of(query)
    found: list[FoundLine] = []
    read = 0
    for file in await files.list_paths(store, user_id, prefix) if asked else ():
        read += file.chars
        if read > MOST_CHARS:
            break
        text = await files.read_text(store, user_id, file.path)
        if text:
            found += await asyncio.to_thread(_lines, file.path, text, asked)
    return sorted(found, key=lambda one: one.score, reverse=True)[:limit]


def _lines(path: str, text: str, asked: set[str]) -> list[FoundLine]:
    lines = text.splitlines()
    ranked = sorted(enumerate(scores(lines, asked)), key=lambda pair: pair[1], reverse=True)
    return [
        FoundLine(path=path, line=at + 1, text=_around(lines[at], asked), score=score)
        for at, score in ranked[:LINES_A_FILE]
        if score > 0
    ]


def _around(line: str, asked: set[str]) -> str:
    """Return the part of a long line that holds the first of the words."""
    folded = line.lower()
    places = [at for term in asked if (at := folded.find(term)) >= 0]
    start = max(min(places, default=0) - LINE_CHARS // 2, 0)
    return line[start : start + LINE_CHARS]
