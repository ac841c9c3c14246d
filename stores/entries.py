"""One entry of the ledger: what a flush or save added, fact by fact; how a day reads (R40)."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from everlong.stores.text import clean_text

Kind = Literal["flush", "save"]
TITLES: dict[Kind, str] = {"flush": "Memory Flush", "save": "Memory Save"}
Line = tuple[str, tuple[str, ...]]
"""A line of a page, and the keys of the facts that it says or comes from."""
_MARK = re.compile(r"^\s*(?:[-*•·–—]\s+|[-*•·]|\d{1,3}[.)、]\s*(?!\d))\s*")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Fact:
    """One thing that is known about the user."""

    text: str
    """One line, without a list's mark."""
    sources: tuple[str, ...] = ()
    """Ids of the messages that it comes from; keys of the facts that a save cites."""
    doubt: str = ""
    """Why it is not verified; empty: it is."""
    key: str = field(default="", compare=False)
    """`<entry key>#<index>`; given when it is added, and its own for good."""
    corrected: str = ""
    """On which day somebody's correction of MEMORY.md took it out; empty: it stands."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What one flush or one save added."""

    key: str
    """Sorts by time."""
    kind: Kind
    day: str
    """On the user's clock: YYYY-MM-DD."""
    at: str
    """ISO 8601, UTC."""
    zone: str
    """The user's IANA time zone."""
    facts: tuple[Fact, ...]
    sources: tuple[str, ...]
    """Ids of the messages that were read for it."""
    thread_id: str
    promoted: bool
    """Shown beside MEMORY.md until it is part of it."""
    consumed_by: str = ""
    """The version of MEMORY.md that took it up."""

    @property
    def text(self) -> str:
        """The facts, one `- ` line each."""
        return "\n".join(f"- {fact.text}" for fact in self.facts)

    @property
    def verified(self) -> tuple[Fact, ...]:
        """The facts without a doubt: what may be shown as known and taken up by MEMORY.md."""
        return tuple(fact for fact in self.facts if not (fact.doubt or fact.corrected))

    @property
    def doubtful(self) -> tuple[Fact, ...]:
        """The facts that wait for a review."""
        return tuple(fact for fact in self.facts if fact.doubt and not fact.corrected)


def facts_in(text: str, sources: Sequence[str] = ()) -> list[Fact]:
    """Return the facts of a text, one a line, without the marks of a list."""
    said = [line_of(line) for line in text.splitlines()]
    return [Fact(one, tuple(sources)) for one in said if any(map(str.isalnum, one))]


def line_of(text: str) -> str:
    """Return a fact as one clean line, without the mark that it begins with."""
    return _SPACE.sub(" ", _MARK.sub("", clean_text(text), count=1)).strip()


HEADING_LINES = 3
"""An entry's heading with the empty lines around it; the first entry has none before."""


def day_lines(day_entries: Iterable[Entry]) -> list[Line]:
    """Return the lines of `memory/YYYY-MM-DD.md`; an unverified fact says so, and why."""
    found: list[Line] = []
    for entry in day_entries:
        found += [("", ())] if found else []
        found += [(f"## {TITLES[entry.kind]} — {_local(entry)}", ()), ("", ())]
        found += [(shown(fact), (fact.key,)) for fact in entry.facts]
    return found


def line_numbers(day_facts: Iterable[Sequence[str]]) -> dict[str, int]:
    """Return the lines of facts in `day_lines`, from 1, given the keys of each entry's facts."""
    found: dict[str, int] = {}
    line = -1  # no line is left out before the first heading
    for keys in filter(None, day_facts):
        line += HEADING_LINES
        found |= {key: line + n for n, key in enumerate(keys, start=1)}
        line += len(keys)
    return found


def render_day(day_entries: Iterable[Entry]) -> str:
    """Return the entries as the text of `memory/YYYY-MM-DD.md`."""
    return "".join(f"{line}\n" for line, _ in day_lines(day_entries))


def moment(instant: str) -> datetime:
    """Return the instant in UTC.

    Raises:
        ValueError: it is no ISO 8601 instant with an offset from UTC.
    """
    when = datetime.fromisoformat(instant)
    if when.tzinfo is None:
        msg = (
            f"expected an instant with its offset, such as '2026-03-08T17:30:00Z'; got {instant!r}"
        )
        raise ValueError(msg)
    return when.astimezone(UTC)


def iso(when: datetime) -> str:
    """Return an instant as ISO 8601, as finely as it is known; `Z` for UTC."""
    fineness = "seconds" if not when.microsecond else "microseconds"
    if when.microsecond and when.microsecond % 1_000 == 0:
        fineness = "milliseconds"
    text = when.isoformat(timespec=fineness)
    return text.replace("+00:00", "Z") if when.tzinfo is UTC else text


def zone_of(name: str) -> tzinfo:
    """Return the time zone of this name.

    Raises:
        ValueError: there is none.
    """
    if name == "UTC":  # needs no time zone database
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        msg = f"`zone`: expected an IANA time zone such as 'Asia/Shanghai'; got {name!r}"
        raise ValueError(msg) from error


def value_of(entry: Entry) -> dict[str, Any]:
    """Return an entry as it is stored; `text` is there for the store's index."""
    plain = {name: getattr(entry, name) for name in ("key", "kind", "day", "at", "zone")}
    rest = {"sources": list(entry.sources), "thread_id": entry.thread_id}
    return {**plain, **rest, "promoted": entry.promoted, **_facts_value(entry)}


def entry_of(value: dict[str, Any]) -> Entry:
    """Return the entry that was stored as `value`."""
    plain = {name: value[name] for name in ("key", "kind", "day", "at", "zone", "thread_id")}
    sources = tuple(value["sources"])
    given = value.get("facts")
    if given is None:  # written before facts were kept one by one
        said = enumerate(facts_in(value["text"], sources))
        facts = tuple(replace(fact, key=f"{value['key']}#{index}") for index, fact in said)
    else:
        facts = tuple(
            Fact(one["text"], tuple(one["sources"]), one["doubt"], one["key"]) for one in given
        )
    return Entry(**plain, sources=sources, promoted=value["promoted"], facts=facts)


def without_facts(
    value: dict[str, Any], goes: Callable[[Fact], bool]
) -> tuple[dict[str, Any] | None, list[Fact]]:
    """Return a stored entry without the facts that go, and these; None where none is left."""
    entry = entry_of(value)
    gone = [fact for fact in entry.facts if goes(fact)]
    if not gone:
        return value, []
    left = replace(entry, facts=tuple(fact for fact in entry.facts if fact not in gone))
    return (value | _facts_value(left) if left.facts else None), gone


def _facts_value(entry: Entry) -> dict[str, Any]:
    facts = [
        {"text": fact.text, "sources": list(fact.sources), "doubt": fact.doubt, "key": fact.key}
        for fact in entry.facts
    ]
    return {"facts": facts, "text": entry.text}


def shown(fact: Fact) -> str:
    """Return a fact as its line of a page says it."""
    doubt = f" [unverified: {fact.doubt}]" if fact.doubt else ""
    return f"- {fact.text}{doubt}" + (f" [corrected {fact.corrected}]" if fact.corrected else "")


def _local(entry: Entry) -> str:
    return iso(moment(entry.at).astimezone(zone_of(entry.zone)))
