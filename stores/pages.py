"""A user's memory as files: MEMORY.md and memory/YYYY-MM-DD.md, with numbered lines."""

from dataclasses import dataclass, replace

from langgraph.store.base import BaseStore

from everlong.stores import ledger, memory
from everlong.stores.search import scores, terms_of

DOCUMENT = "MEMORY.md"
DAYS = "memory/"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A line that a search found."""

    path: str
    line: int
    """From 1."""
    text: str
    score: float

    @property
    def source(self) -> str:
        """Where the line is, as answers cite it."""
        return f"{self.path}#{self.line}"


async def document_text(store: BaseStore, user_id: str) -> str:
    """Return MEMORY.md as anyone reads it: the document, then what was saved since."""
    document, saved = await memory.recollect(store, user_id)
    return memory.visible_text(document, saved)


async def read_page(store: BaseStore, user_id: str, path: str) -> str | None:
    """Return the text of `MEMORY.md` or `memory/YYYY-MM-DD.md`; None where there is none."""
    if path == DOCUMENT:
        return await document_text(store, user_id) or None
    if not path.startswith(DAYS) or not path.endswith(".md"):
        return None
    day = path.removeprefix(DAYS).removesuffix(".md")
    entries = await ledger.entries(store, user_id, day)
    return ledger.render_day(entries) if entries else None


async def read_all(store: BaseStore, user_id: str) -> dict[str, str]:
    """Return every page by its path: the document first, then the days, newest first."""
    document = await document_text(store, user_id)
    pages = {DOCUMENT: document} if document else {}
    by_day: dict[str, list[ledger.Entry]] = {}
    for entry in await ledger.entries(store, user_id):
        by_day.setdefault(entry.day, []).append(entry)
    for day in sorted(by_day, reverse=True):
        pages[f"{DAYS}{day}.md"] = ledger.render_day(by_day[day])
    return pages


async def search(store: BaseStore, user_id: str, query: str, *, limit: int = 10) -> list[Found]:
    """Return the lines that say what is asked, best first; among equals the document's, then new.

    Headings count with the lines below them, and are no hits themselves.
    """
    asked = terms_of(query)
    if not asked:
        return []
    pages = await read_all(store, user_id)
    lines = [line for path, text in pages.items() for line in _lines(path, text)]
    ranked = scores([searched for _, searched in lines], asked)
    found = [
        replace(line, score=score)
        for (line, _), score in zip(lines, ranked, strict=True)
        if score > 0
    ]
    return sorted(found, key=lambda one: one.score, reverse=True)[:limit]


def _lines(path: str, text: str) -> list[tuple[Found, str]]:
    """Return each line that says something, and what of it is searched: its heading, too."""
    found: list[tuple[Found, str]] = []
    heading = ""
    for number, line in enumerate(text.split("\n"), start=1):
        shown = line.strip()
        if shown.startswith("#"):
            heading = "" if path.startswith(DAYS) else shown.lstrip("# ")
        elif shown:
            place = Found(path=path, line=number, text=shown, score=0.0)
            found.append((place, f"{heading} {shown}"))
    return found
