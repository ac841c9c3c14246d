"""A user's memory as files: MEMORY.md and memory/YYYY-MM-DD.md, with numbered lines."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from langgraph.store.base import BaseStore

from everlong.stores import candidates, day_places, documents, ledger_archive, memory
from everlong.stores.candidates import Candidates
from everlong.stores.entries import Entry, Fact, Line, day_lines, render_day, shown
from everlong.stores.fusion import fused
from everlong.stores.ranking import scores

DOCUMENT = "MEMORY.md"
DAYS = "memory/"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search found: a line, or those of several facts that were noted at once."""

    path: str
    first: int
    """The number of the line, from 1."""
    last: int
    text: str
    score: float

    @property
    def source(self) -> str:
        """Where it is, as answers cite it."""
        lines = f"{self.first}-{self.last}" if self.last > self.first else f"{self.first}"
        return f"{self.path}#{lines}"


@dataclass(frozen=True, kw_only=True)
class _Said:
    """What may be found, before it is known on which line of its day's page it is."""

    searched: str = ""
    place: Found | None = None
    """Of a line of the document."""
    day: str = ""
    """Of the ledger."""
    entry: str = ""
    """Its key."""
    facts: tuple[Fact, ...] = ()
    score: float = 0.0


async def document_text(store: BaseStore, user_id: str) -> str:
    """Return MEMORY.md as anyone reads it: the document, then what was saved since."""
    document, saved = await memory.recollect(store, user_id)
    return documents.visible_text(document, saved)


async def lines_of(store: BaseStore, user_id: str, path: str) -> list[Line]:
    """Return the lines of a page with the keys of the facts that they say; none without a page."""
    if path == DOCUMENT:
        return documents.visible_lines(*await memory.recollect(store, user_id))
    if not path.startswith(DAYS) or not path.endswith(".md"):
        return []
    day = path.removeprefix(DAYS).removesuffix(".md")
    return day_lines(await ledger_archive.with_archived(store, user_id, day))


async def read_page(store: BaseStore, user_id: str, path: str) -> str | None:
    """Return the text of `MEMORY.md` or `memory/YYYY-MM-DD.md`; None where there is none."""
    if path == DOCUMENT:
        return await document_text(store, user_id) or None
    if not path.startswith(DAYS) or not path.endswith(".md"):
        return None
    day = path.removeprefix(DAYS).removesuffix(".md")
    entries = await ledger_archive.with_archived(store, user_id, day)
    return render_day(entries) if entries else None


async def read_all(store: BaseStore, user_id: str) -> dict[str, str]:
    """Return every page by its path: the document first, then the days, newest first."""
    document = await document_text(store, user_id)
    pages = {DOCUMENT: document} if document else {}
    by_day: dict[str, list[Entry]] = {}
    for entry in await ledger_archive.with_archived(store, user_id):
        by_day.setdefault(entry.day, []).append(entry)
    for day in sorted(by_day, reverse=True):
        pages[f"{DAYS}{day}.md"] = render_day(by_day[day])
    return pages


async def search(store: BaseStore, user_id: str, query: str, *, limit: int = 10) -> list[Found]:
    """Return what says what is asked, best first; among equals the document's, then new.

    What is in the archive comes after all else. Headings of the document count with the lines below
    them, and are no hits themselves.
    """
    document, present = await asyncio.gather(
        lines_of(store, user_id, DOCUMENT), _candidates(store, user_id, query, archived=False)
    )
    hits = await asyncio.to_thread(_ranked, query, *present, _document_lines(document))
    found = await _placed(store, user_id, hits[:limit])
    if len(found) < limit:
        old = await _candidates(store, user_id, query, archived=True)
        hits = await asyncio.to_thread(_ranked, query, *old)
        found += await _placed(store, user_id, hits[: limit - len(found)])
    return found


async def _candidates(
    store: BaseStore, user_id: str, query: str, *, archived: bool
) -> tuple[Candidates[Entry], list[Entry]]:
    """Return entries of the ledger, or the archive, that may be hits by words, and by meaning."""
    return await asyncio.gather(
        candidates.facts(store, user_id, query, archived=archived),
        candidates.near_facts(store, user_id, query, archived=archived),
    )


def _fused(hits: Sequence[_Said], near: Iterable[Entry]) -> list[_Said]:
    """Return lines that have the words, and entries whose meaning is near, as one ranking.

    Of an entry that has a line with the words, its best one counts.
    """
    best = {hit.entry: hit for hit in reversed(hits) if hit.entry}
    meant = [
        best.get(entry.key) or _Said(day=entry.day, entry=entry.key, facts=entry.facts)
        for entry in near
    ]
    scored = fused(hits, meant)
    return [replace(hit, score=scored[hit]) for hit in sorted(scored, key=lambda one: -scored[one])]


def _document_lines(lines: Sequence[Line]) -> list[_Said]:
    """Return each line of the document that says something."""
    found: list[_Said] = []
    heading = ""
    for number, (line, _) in enumerate(lines, start=1):
        shown_line = line.strip()
        if shown_line.startswith("#"):
            heading = shown_line.lstrip("# ")
        elif shown_line:
            place = Found(path=DOCUMENT, first=number, last=number, text=shown_line, score=0.0)
            found.append(_Said(searched=f"{heading} {shown_line}", place=place))
    return found


def _facts(entries: Iterable[Entry]) -> list[_Said]:
    """Return the facts of entries, the newest first."""
    return [
        _Said(searched=shown(fact), day=entry.day, entry=entry.key, facts=(fact,))
        for entry in sorted(entries, key=lambda entry: entry.key, reverse=True)
        for fact in entry.facts
    ]


def _ranked(
    query: str, likely: Candidates[Entry], near: Iterable[Entry], document: Sequence[_Said] = ()
) -> list[_Said]:
    """Return lines that have the words and entries whose meaning is near, the best first."""
    lines = [*document, *_facts(likely.entries)]
    own = scores([line.searched for line in lines], query, likely.rarities)
    ranked = sorted(zip(own, lines, strict=True), key=lambda each: -each[0])
    return _fused([replace(line, score=score) for score, line in ranked if score > 0], near)


async def _placed(store: BaseStore, user_id: str, hits: Sequence[_Said]) -> list[Found]:
    """Return the hits with the lines where they stand; those that no page has are left out."""
    places = await day_places.places(store, user_id, {hit.day for hit in hits if hit.day})
    found = [hit.place or _place(hit, places) for hit in hits]
    return [
        replace(place, score=hit.score)
        for place, hit in zip(found, hits, strict=True)
        if place is not None
    ]


def _place(hit: _Said, places: Mapping[str, int]) -> Found | None:
    """Return where the day's page has the facts of a hit, which stand together."""
    lines = [(places[fact.key], shown(fact)) for fact in hit.facts if fact.key in places]
    if not lines:
        return None
    text = "\n".join(line for _, line in lines)
    path = f"{DAYS}{hit.day}.md"
    return Found(path=path, first=lines[0][0], last=lines[-1][0], text=text, score=hit.score)
