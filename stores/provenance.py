"""Where a line of memory comes from: the ledger's fact, and the words of the transcript (R44)."""

from collections.abc import Iterable
from dataclasses import dataclass

from langgraph.store.base import BaseStore

from everlong.stores import ledger_archive, transcripts
from everlong.stores.entries import Entry, Fact, day_lines
from everlong.stores.pages import DAYS
from everlong.stores.sources import SESSIONS

DEPTH = 5
"""A save may cite a line that was itself a save; so often it is followed."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """A message that a fact comes from."""

    message_id: str
    source: str = ""
    """Where the transcript has it; empty where it has not, or no longer."""
    role: str = ""
    at: str = ""
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A fact that a line says or comes from."""

    key: str
    source: str
    """Where the ledger has it, as answers cite it; empty where it is gone."""
    text: str = ""
    said: tuple[Said, ...] = ()


class Ledger:
    """A user's entries, looked up by their keys; each is read once."""

    def __init__(self, store: BaseStore, user_id: str) -> None:
        self._store = store
        self._user_id = user_id
        self._entries: dict[str, Entry | None] = {}
        self._places: dict[str, dict[str, str]] = {}

    async def origins(self, fact_keys: Iterable[str]) -> list[Origin]:
        """Return the facts of these keys with what was said; a fact that is gone has its key."""
        return [await self._origin(key) for key in fact_keys]

    async def _origin(self, fact_key: str) -> Origin:
        found = await self._fact(fact_key)
        if found is None:
            return Origin(key=fact_key, source="")
        entry, fact = found
        messages = dict.fromkeys(await self._messages(entry, fact, DEPTH))
        said = [await self._said(*one) for one in messages]
        source = (await self._places_of(entry.day)).get(fact_key, "")
        return Origin(key=fact_key, source=source, text=fact.text, said=tuple(said))

    async def _fact(self, fact_key: str) -> tuple[Entry, Fact] | None:
        """Return a fact with its entry, which its key names; None where it is gone."""
        key, is_key, _ = fact_key.rpartition("#")
        if not is_key:
            return None
        if key not in self._entries:
            self._entries[key] = await ledger_archive.entry(self._store, self._user_id, key)
        if (entry := self._entries[key]) is None:
            return None
        return next(((entry, fact) for fact in entry.facts if fact.key == fact_key), None)

    async def _places_of(self, day: str) -> dict[str, str]:
        """Return where each fact of a day is, by its key."""
        if day not in self._places:
            entries = await ledger_archive.with_archived(self._store, self._user_id, day)
            self._places[day] = {
                key: f"{DAYS}{day}.md#{number}"
                for number, (_, keys) in enumerate(day_lines(entries), start=1)
                for key in keys
            }
        return self._places[day]

    async def _messages(self, entry: Entry, fact: Fact, depth: int) -> list[tuple[str, str]]:
        """Return thread and id of each message that a fact, or one that it cites, comes from."""
        messages: list[tuple[str, str]] = []
        for source in fact.sources:
            cited = await self._fact(source)
            if cited is None:
                messages.append((entry.thread_id, source))
            elif depth:
                messages += await self._messages(*cited, depth - 1)
        return messages

    async def _said(self, thread_id: str, message_id: str) -> Said:
        if not thread_id:
            return Said(message_id=message_id)
        found = await transcripts.of_message(self._store, self._user_id, thread_id, message_id)
        if not found:
            return Said(message_id=message_id)
        one = found[-1]
        return Said(
            message_id=message_id,
            source=f"{SESSIONS}{one.thread_id}#{one.number}",
            role=one.role,
            at=one.at,
            text=one.text,
        )
