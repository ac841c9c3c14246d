"""The ledger: a user's facts by day, append only (R40).

One item per entry, and one that says which MEMORY.md took the entry up: an entry is never written
again, so two runs at once lose nothing, and no late writer brings back what was forgotten.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from langgraph.store.base import BaseStore, PutOp

from everlong.stores.namespaces import space
from everlong.stores.records import all_items
from everlong.stores.text import clean, clean_text

Kind = Literal["flush", "save"]
TITLES: dict[Kind, str] = {"flush": "Memory Flush", "save": "Memory Save"}


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
    text: str
    sources: tuple[str, ...]
    """Ids of the messages that it comes from."""
    thread_id: str
    promoted: bool
    """Shown beside MEMORY.md until it is part of it."""
    consumed_by: str = ""
    """The version of MEMORY.md that took it up."""


async def append(  # noqa: PLR0913 - what an entry says
    store: BaseStore,
    user_id: str,
    entry_kind: Kind,
    text: str,
    *,
    instant: str,
    zone: str,
    thread_id: str,
    sources: Sequence[str],
) -> Entry:
    """Add an entry and return it; where the same one is there already, return that.

    The same is a flush of the same messages of a thread, whatever it found in them, and a save of
    the same text at the same instant.

    Raises:
        ValueError: the instant has no offset from UTC, or the zone is unknown.
    """
    when, text = moment(instant), clean_text(text)
    of_messages = entry_kind == "flush" and len(sources) > 0
    same = _hash([thread_id, *sources] if of_messages else [entry_kind, text, iso(when)])
    place = space(user_id, "ledger", "entries")
    if found := await all_items(store, place, matching={"same": same}):
        return _entry(min(found, key=lambda item: item.key).value)
    entry = Entry(
        key=f"{when:%Y%m%dT%H%M%S%fZ}-{same}",
        kind=entry_kind,
        day=when.astimezone(_zone(zone)).date().isoformat(),
        at=iso(when),
        zone=zone,
        text=text,
        sources=tuple(clean_text(source) for source in sources),
        thread_id=clean_text(thread_id),
        promoted=entry_kind == "save",
    )
    value = clean(asdict(entry) | {"same": same})
    await store.abatch([PutOp(place, entry.key, value, index=["text"])])
    return entry


async def entries(store: BaseStore, user_id: str, day: str | None = None) -> list[Entry]:
    """Return the user's entries, of one day or all, oldest first."""
    return await _read(store, user_id, {"day": day} if day is not None else None)


async def days(store: BaseStore, user_id: str) -> list[str]:
    """Return the days that have entries, oldest first."""
    return sorted({entry.day for entry in await entries(store, user_id)})


async def fresh(
    store: BaseStore,
    user_id: str,
    *,
    consumed_in: Collection[str] = (),
    line: Collection[str] | None = None,
) -> list[Entry]:
    """Return the entries that no MEMORY.md has taken up, oldest first.

    `consumed_in` holds keys that count as taken up though unmarked, `line` the versions whose
    marks count (None: all). `memory.fresh_entries` knows both.
    """
    return not_consumed(await _read(store, user_id, None), consumed_in, line)


async def saved(store: BaseStore, user_id: str) -> list[Entry]:
    """Return the entries that saves added, oldest first."""
    return await _read(store, user_id, {"promoted": True})


async def last_flush(store: BaseStore, user_id: str) -> str:
    """Return the instant of the user's newest flush; empty before the first."""
    flushes = await _read(store, user_id, {"kind": "flush"})
    return flushes[-1].at if flushes else ""


def mark_consumed(user_id: str, consumed: Iterable[Entry], version: str) -> list[PutOp]:
    """Return the puts that mark entries as taken up by this version of MEMORY.md."""
    place = space(user_id, "ledger", "consumed")
    return [
        PutOp(
            place,
            entry.key,
            {"by": version, "day": entry.day, "promoted": entry.promoted},
            index=False,
        )
        for entry in consumed
    ]


def render_day(day_entries: Iterable[Entry]) -> str:
    """Return the entries as the text of `memory/YYYY-MM-DD.md`."""
    return "\n".join(
        f"## {TITLES[entry.kind]} — {_local(entry)}\n\n{entry.text.strip()}\n"
        for entry in day_entries
    )


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


async def _read(store: BaseStore, user_id: str, matching: dict[str, Any] | None) -> list[Entry]:
    """Return entries with their marks, oldest first."""
    found = await all_items(store, space(user_id, "ledger"), matching=matching)
    place = space(user_id, "ledger", "consumed")
    marks = {item.key: item.value["by"] for item in found if item.namespace == place}
    read = [_entry(item.value) for item in found if item.namespace != place]
    marked = [replace(entry, consumed_by=marks.get(entry.key, "")) for entry in read]
    return sorted(marked, key=lambda entry: entry.key)


def not_consumed(
    read: Iterable[Entry], consumed_in: Collection[str], line: Collection[str] | None
) -> list[Entry]:
    """Return those of `read` that no MEMORY.md has taken up; see `fresh`."""

    def is_consumed(entry: Entry) -> bool:
        counts = entry.consumed_by in line if line is not None else bool(entry.consumed_by)
        return counts or entry.key in consumed_in

    return [entry for entry in read if not is_consumed(entry)]


def _entry(value: dict[str, Any]) -> Entry:
    fields: dict[str, Any] = value | {"sources": tuple(value["sources"])}
    return Entry(**{name: fields[name] for name in fields if name != "same"})


def _local(entry: Entry) -> str:
    return iso(moment(entry.at).astimezone(_zone(entry.zone)))


def _zone(name: str) -> tzinfo:
    if name == "UTC":  # needs no time zone database
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        msg = f"`zone`: expected an IANA time zone such as 'Asia/Shanghai'; got {name!r}"
        raise ValueError(msg) from error


def _hash(parts: Sequence[str]) -> str:
    spelled = json.dumps(parts).encode()
    return hashlib.sha256(spelled).hexdigest()[:16]
