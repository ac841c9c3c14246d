"""What a `Source:` names, as tools give it and models write it: a file, a message, memory."""

import re
from dataclasses import dataclass

from langgraph.store.base import BaseStore

from everlong.stores import pages, transcripts

SESSIONS = "sessions/"
_WRITTEN = re.compile(
    r"\s*(?:source:\s*)?[\"'`<(]*(?P<path>.+?)(?:#(?P<first>\d+)(?:-(?P<last>\d+))?)?[\"'`>)]*"
    r"(?:\s+\[[^\]]*\])?\s*",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A part of a text: `path#first-last`."""

    path: str
    first: int | None = None
    """The number of a message, from 0; of other texts a line, from 1."""
    last: int | None = None

    @property
    def thread(self) -> str:
        """The thread whose messages are meant; empty: none."""
        return self.path.removeprefix(SESSIONS) if self.path.startswith(SESSIONS) else ""


def place_of(written: str) -> Place:
    """Return the place that is meant, without what often comes along: `Source:`, quotes, a role."""
    found = _WRITTEN.fullmatch(written)
    if found is None:
        return Place(path=written)
    first, last = (int(found[name]) if found[name] else None for name in ("first", "last"))
    return Place(path=found["path"], first=first, last=last)


async def text_at(
    store: BaseStore, user_id: str, place: Place, *, with_memory: bool = True
) -> str | None:
    """Return the text of a place that is no file; None where there is none.

    A message comes whole, with what was moved out of it; its branches one after the other.

    Raises:
        LookupError: a long message is gone from where it was, or none is named.
    """
    if not place.thread:
        return await pages.read_page(store, user_id, place.path) if with_memory else None
    if place.first is None:
        msg = f"expected which message, such as {place.path}#0; got none"
        raise LookupError(msg)
    last = place.first if place.last is None else place.last
    entries = await transcripts.read(
        store, user_id, place.thread, first=place.first, limit=MOST_MESSAGES
    )
    meant = [entry for entry in entries if entry.number <= last]
    texts = [await transcripts.full_text(store, user_id, entry) for entry in meant]
    return "\n\n".join(texts) if meant else None


MOST_MESSAGES = 50
