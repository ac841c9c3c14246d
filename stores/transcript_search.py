"""Find what was said in a user's threads, in texts that were moved out of messages, too."""

import asyncio
import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from langgraph.store.base import BaseStore

from everlong.stores import file_search, files, transcripts
from everlong.stores.file_search import FoundLine
from everlong.stores.search import closeness, scores, terms_of
from everlong.stores.transcripts import Entry

NEIGHBOURS = 2
NEIGHBOUR_WEIGHT = 0.25
MOST_LONG_CHARS = 20_000_000
"""Of messages that are longer than an entry shows, the newest of so many characters are read."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """An entry that a search found, among its neighbours."""

    entry: Entry
    place: int
    """Where the entry is among those that were searched."""
    closeness: int
    """As `search.closeness` says it; goes before the score."""
    score: float
    before: tuple[Entry, ...] = ()
    after: tuple[Entry, ...] = ()


async def search(
    store: BaseStore, user_id: str, query: str, *, thread_id: str | None = None, limit: int = 10
) -> list[Hit]:
    """Return the entries that say what is asked, best first; neighbours that do so add weight."""
    entries = await _entries(store, user_id, query, thread_id)
    return await _best(store, user_id, query, entries, limit)


async def search_all(
    store: BaseStore,
    user_id: str,
    query: str,
    *,
    thread_id: str | None = None,
    more_paths: Collection[str] = (),
    limit: int = 10,
) -> tuple[list[Hit], list[FoundLine]]:
    """Return what `search` does, and lines of the texts that were moved out of messages.

    Of a thread: the texts that its entries name, and `more_paths`; of no thread: all of the user.
    """
    entries = await _entries(store, user_id, query, thread_id)
    hits = await _best(store, user_id, query, entries, limit)
    if thread_id is None:
        found = await files.newest(store, user_id, files.EVICTED)
    else:
        paths = [*more_paths, *(transcripts.moved_to(entry) for entry in reversed(entries))]
        found = await file_search.files_of(store, user_id, paths)
    return hits, await file_search.search(store, user_id, query, found, limit=limit)


async def _entries(
    store: BaseStore, user_id: str, query: str, thread_id: str | None
) -> list[Entry]:
    if not terms_of(query) or thread_id == "":
        return []
    chosen = await transcripts.threads(store, user_id) if thread_id is None else [thread_id]
    return [one for name in chosen for one in await transcripts.glance(store, user_id, name)]


async def _best(
    store: BaseStore, user_id: str, query: str, entries: Sequence[Entry], limit: int
) -> list[Hit]:
    entries = await _with_long_ones(store, user_id, entries)
    return await asyncio.to_thread(_ranked, entries, query, limit)


async def _with_long_ones(
    store: BaseStore, user_id: str, entries: Sequence[Entry]
) -> Sequence[Entry]:
    """Return the entries, those that show only the beginning of a message with all of it."""
    left = MOST_LONG_CHARS
    whole = list(entries)
    for at in reversed(range(len(whole))):
        if left > 0 and len(whole[at].text) >= transcripts.MOST_CHARS:
            whole[at] = await transcripts.whole(store, user_id, whole[at])
            left -= len(whole[at].text)
    return whole


def _ranked(entries: Sequence[Entry], query: str, limit: int) -> list[Hit]:
    own = scores([entry.text for entry in entries], terms_of(query))
    hits = [_hit(entries, own, at, query) for at, score in enumerate(own) if score > 0]
    best = heapq.nlargest(
        limit, hits, key=lambda hit: (hit.closeness, hit.score, hit.entry.at, hit.entry.number)
    )
    return [_among_neighbours(entries, hit) for hit in best]


def _hit(entries: Sequence[Entry], own: Sequence[float], index: int, query: str) -> Hit:
    near = sum(own[other] for other in _near(entries, index) if other != index)
    return Hit(
        entry=entries[index],
        place=index,
        closeness=closeness(entries[index].text, query),
        score=own[index] + NEIGHBOUR_WEIGHT * near,
    )


def _among_neighbours(entries: Sequence[Entry], hit: Hit) -> Hit:
    near = _near(entries, hit.place)
    return replace(
        hit,
        before=tuple(entries[other] for other in near if other < hit.place),
        after=tuple(entries[other] for other in near if other > hit.place),
    )


def _near(entries: Sequence[Entry], index: int) -> list[int]:
    """Return the places around an entry that are of the same thread."""
    around = range(max(index - NEIGHBOURS, 0), min(index + NEIGHBOURS + 1, len(entries)))
    return [at for at in around if entries[at].thread_id == entries[index].thread_id]
