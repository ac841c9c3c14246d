"""Find what was said in a user's threads, in texts that were moved out of messages, too."""

import asyncio
import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from langgraph.store.base import BaseStore

from everlong.stores import candidates, file_search, files, transcripts
from everlong.stores.candidates import Candidates
from everlong.stores.file_search import FoundLine
from everlong.stores.fusion import fused
from everlong.stores.ranking import scores
from everlong.stores.search import closeness
from everlong.stores.transcripts import Entry
from everlong.stores.word_table import words_of

NEIGHBOUR_WEIGHTS = {1: 0.4, 2: 0.3}
"""By distance: how much of a message's score those next to it are given, where they are short."""
SHORT_CHARS = 400
MOST_FUSED = 50
"""Hits by words that are ranked together with those by meaning."""
MOST_LONG_CHARS = 20_000_000
"""Of messages that are longer than an entry shows, the newest of so many characters are read."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """An entry that a search found, among its neighbours."""

    entry: Entry
    closeness: int
    """As `search.closeness` says it; goes before the score."""
    score: float
    before: tuple[Entry, ...] = ()
    after: tuple[Entry, ...] = ()


async def search(
    store: BaseStore, user_id: str, query: str, *, thread_id: str | None = None, limit: int = 10
) -> list[Hit]:
    """Return the entries that say what is asked, best first; neighbours that do so add weight."""
    hits, _ = await _search(store, user_id, query, thread_id, limit)
    return hits


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
    hits, entries = await _search(store, user_id, query, thread_id, limit)
    paths = [*more_paths, *(transcripts.moved_to(entry) for entry in reversed(entries))]
    among = await file_search.files_of(store, user_id, paths)
    if thread_id is None and words_of(store) is None:
        known = {file.path for file in among}
        moved = await files.newest(store, user_id, files.EVICTED)
        among += [file for file in moved if file.path not in known]
    return hits, await file_search.search(store, user_id, query, among, limit=limit)


async def _search(
    store: BaseStore, user_id: str, query: str, thread_id: str | None, limit: int
) -> tuple[list[Hit], Sequence[Entry]]:
    """Return the hits, and the entries that were looked at."""
    found, near = await asyncio.gather(
        candidates.messages(store, user_id, query, thread_id=thread_id),
        candidates.near_messages(store, user_id, query, thread_id=thread_id),
    )
    found = replace(found, entries=await _with_long_ones(store, user_id, found.entries))
    hits = await asyncio.to_thread(_ranked, found, query, max(limit, MOST_FUSED if near else 0))
    return _fused(hits, near, query)[:limit], found.entries


async def _with_long_ones(
    store: BaseStore, user_id: str, entries: Sequence[Entry]
) -> Sequence[Entry]:
    """Return the entries, those that show only the beginning of a message with all of it."""
    left = MOST_LONG_CHARS
    whole = list(entries)
    for at in reversed(range(len(whole))):
        if left > 0 and len(whole[at].text) >= transcripts.MOST_CHARS:
            with suppress(LookupError):  # its file is gone
                whole[at] = await transcripts.whole(store, user_id, whole[at])
            left -= len(whole[at].text)
    return whole


def _ranked(found: Candidates[Entry], query: str, limit: int) -> list[Hit]:
    entries = found.entries
    own = scores([entry.text for entry in entries], query, found.rarities)
    places = {(entry.thread_id, entry.number): at for at, entry in enumerate(entries)}
    saying = [_hit(entries, places, own, at, query) for at, score in enumerate(own) if score > 0]
    if not any(hit.closeness for hit in saying):  # nobody says all of it: who stands near may do
        silent = (
            _hit(entries, places, own, at, query) for at, score in enumerate(own) if not score
        )
        saying += [hit for hit in silent if hit.score > 0]
    return heapq.nlargest(
        limit,
        saying,
        key=lambda hit: (hit.closeness, hit.score, hit.entry.at, hit.entry.number),
    )


def _fused(hits: Sequence[Hit], near: Iterable[Entry], query: str) -> list[Hit]:
    """Return the hits by words and the messages whose meaning is near; the closest stay first."""
    known = {_name(hit.entry): hit for hit in hits}
    meant = {_name(entry): entry for entry in near}
    for name, entry in meant.items():
        if name not in known:
            known[name] = Hit(entry=entry, closeness=closeness(entry.text, query), score=0.0)
    scored = fused([_name(hit.entry) for hit in hits], list(meant))
    return sorted(known.values(), key=lambda hit: (-hit.closeness, -scored[_name(hit.entry)]))


def _name(entry: Entry) -> tuple[str, int, str]:
    return entry.thread_id, entry.number, entry.message_id


def _hit(
    entries: Sequence[Entry],
    places: Mapping[tuple[str, int], int],
    own: Sequence[float],
    index: int,
    query: str,
) -> Hit:
    """Return an entry with its score, and what its neighbours add to that of a short one."""
    entry = entries[index]
    near = {
        step: at
        for step in (-2, -1, 1, 2)
        if (at := places.get((entry.thread_id, entry.number + step))) is not None
    }
    added = sum(NEIGHBOUR_WEIGHTS[abs(step)] * own[at] for step, at in near.items())
    score = own[index] + (added if len(entry.text) < SHORT_CHARS else 0.0)
    return Hit(
        entry=entry,
        closeness=closeness(entry.text, query) if score > 0 else 0,
        score=score,
        before=tuple(entries[at] for step, at in near.items() if step < 0),
        after=tuple(entries[at] for step, at in near.items() if step > 0),
    )
