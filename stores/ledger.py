"""The ledger: a user's facts by day, append only (R40).

One item per entry, one that says which MEMORY.md took the entry up, one for each verdict on a
doubtful fact. An entry is written again only where something in it is forgotten: two runs at once
lose nothing, and no late writer brings back what was forgotten. One more item, written with each
entry, names the newest: who has seen that name has seen them all.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from langgraph.store.base import BaseStore, PutOp

from everlong.stores.entries import Entry, Fact, Kind, entry_of, iso, moment, value_of, zone_of
from everlong.stores.namespaces import space
from everlong.stores.records import all_items, put_all
from everlong.stores.text import clean, clean_text

Verdict = Literal["confirmed", "rejected", "corrected"]


async def append(  # noqa: PLR0913 - what an entry says
    store: BaseStore,
    user_id: str,
    entry_kind: Kind,
    facts: Sequence[Fact],
    *,
    instant: str,
    zone: str,
    thread_id: str,
    sources: Sequence[str],
) -> Entry:
    """Add an entry and return it; where the same one is there already, return that.

    The same is a flush of the same messages of a thread (`sources`: those that were read),
    whatever it found in them, and a save of the same facts at the same instant.

    Raises:
        ValueError: there is no fact, the instant has no offset from UTC, or the zone is unknown.
    """
    if not facts:
        msg = "`facts`: expected at least one; got none"
        raise ValueError(msg)
    when = moment(instant)
    of_messages = entry_kind == "flush" and len(sources) > 0
    texts = [clean_text(fact.text) for fact in facts]
    same = _hash([thread_id, *sources] if of_messages else [entry_kind, *texts, iso(when)])
    draft = Entry(
        key=f"{when:%Y%m%dT%H%M%S%fZ}-{same}",
        kind=entry_kind,
        day=when.astimezone(zone_of(zone)).date().isoformat(),
        at=iso(when),
        zone=zone,
        facts=tuple(facts),
        sources=tuple(clean_text(source) for source in sources),
        thread_id=clean_text(thread_id),
        promoted=entry_kind == "save",
    )
    return await _added(store, user_id, draft)


async def entries(store: BaseStore, user_id: str, day: str | None = None) -> list[Entry]:
    """Return the user's entries, of one day or all, oldest first."""
    return await _read(store, user_id, {"day": day} if day is not None else None)


async def recent(store: BaseStore, user_id: str, since: datetime) -> list[Entry]:
    """Return the entries since an instant, oldest first, without reading the others."""
    return await _read(store, user_id, {"when": {"$gte": _when(since.astimezone(UTC))}})


async def newest(store: BaseStore, user_id: str) -> str:
    """Name the entry that was added last; empty where none ever was.

    Whoever reads the name, then the entries, and later finds the same name, knows all there are.
    """
    item = await store.aget(*_newest_place(user_id))
    return str(item.value["key"]) if item else ""


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


async def confirm(
    store: BaseStore, user_id: str, fact_key: str, *, instant: str, zone: str
) -> Entry:
    """Make a doubtful fact a saved one, from the same messages, and return its entry.

    The doubtful line is gone then. Doing it again, also after a crash between, is harmless.

    Raises:
        LookupError: no doubtful fact has this key.
    """
    entry, fact = await _doubtful(store, user_id, fact_key)
    when = moment(instant)
    draft = replace(
        entry,
        key=f"{when:%Y%m%dT%H%M%S%fZ}-{_hash(['confirmed', fact_key])}",
        kind="save",
        day=when.astimezone(zone_of(zone)).date().isoformat(),
        at=iso(when),
        zone=zone,
        facts=(replace(fact, doubt=""),),
        sources=fact.sources,
        promoted=True,
        consumed_by="",
    )
    added = await _added(store, user_id, draft)
    await put_all(store, [_verdict(user_id, entry, fact_key, "confirmed")])
    return added


async def reject(store: BaseStore, user_id: str, fact_key: str) -> Fact:
    """Take a doubtful fact out of everything that is read, and return it.

    Raises:
        LookupError: no doubtful fact has this key.
    """
    entry, fact = await _doubtful(store, user_id, fact_key)
    await put_all(store, [_verdict(user_id, entry, fact_key, "rejected")])
    return fact


def mark_corrected(user_id: str, corrected: Iterable[tuple[Entry, str]], on: str) -> list[PutOp]:
    """Return the puts that take facts, each by its key, out of what MEMORY.md is made of."""
    return [_verdict(user_id, entry, key, "corrected", on=on) for entry, key in corrected]


def mark_consumed(user_id: str, consumed: Iterable[Entry], version: str) -> list[PutOp]:
    """Return the puts that mark entries as taken up by this version of MEMORY.md."""
    place = space(user_id, "ledger", "consumed")
    return [
        PutOp(
            place,
            entry.key,
            {"by": version, **_filtered(entry)},
            index=False,
        )
        for entry in consumed
    ]


def put_of(user_id: str, entry: Entry) -> PutOp:
    """Return the put of an entry; the entry again, without what is forgotten, replaces it."""
    same = {"same": entry.key.rpartition("-")[2]}
    value = clean(value_of(entry) | same | _filtered(entry))
    return PutOp(space(user_id, "ledger", "entries"), entry.key, value, index=["text"])


def not_consumed(
    read: Iterable[Entry], consumed_in: Collection[str], line: Collection[str] | None
) -> list[Entry]:
    """Return those of `read` that no MEMORY.md has taken up; see `fresh`.

    Only with their verified facts, and none that has no other.
    """

    def is_consumed(entry: Entry) -> bool:
        counts = entry.consumed_by in line if line is not None else bool(entry.consumed_by)
        return counts or entry.key in consumed_in

    return [
        replace(entry, facts=entry.verified)
        for entry in read
        if entry.verified and not is_consumed(entry)
    ]


async def _added(store: BaseStore, user_id: str, draft: Entry) -> Entry:
    """Write an entry, its facts named, unless the same is there already."""
    same = {"same": draft.key.rpartition("-")[2]}
    place = space(user_id, "ledger", "entries")
    if found := await all_items(store, place, matching=same):
        return entry_of(min(found, key=lambda item: item.key).value)
    facts = tuple(
        Fact(
            clean_text(fact.text),
            tuple(clean_text(source) for source in fact.sources),
            clean_text(fact.doubt),
            key=f"{draft.key}#{index}",
        )
        for index, fact in enumerate(draft.facts)
    )
    entry = replace(draft, facts=facts)
    newest_one = PutOp(*_newest_place(user_id), {"key": entry.key, **_filtered(entry)}, index=False)
    await put_all(store, [put_of(user_id, entry), newest_one])
    return entry


async def _read(store: BaseStore, user_id: str, matching: dict[str, Any] | None) -> list[Entry]:
    """Return entries with their marks and without facts that a verdict took out, oldest first."""
    found = await all_items(store, space(user_id, "ledger"), matching=matching)
    values: dict[str, dict[str, Any]] = {"entries": {}, "consumed": {}, "verdicts": {}}
    for item in found:
        values.setdefault(item.namespace[-1], {})[item.key] = item.value
    marks, verdicts = values["consumed"], values["verdicts"]
    marked = [
        replace(
            entry,
            consumed_by=marks[entry.key]["by"] if entry.key in marks else "",
            facts=tuple(standing(entry.facts, verdicts)),
        )
        for entry in map(entry_of, values["entries"].values())
    ]
    return sorted((one for one in marked if one.facts), key=lambda entry: entry.key)


def standing(facts: Iterable[Fact], verdicts: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the facts that no verdict took out; one that was corrected says so."""
    for fact in facts:
        verdict = verdicts.get(fact.key, {})
        if verdict.get("is") == "corrected":
            yield replace(fact, corrected=verdict["on"])
        elif not verdict:
            yield fact


def _verdict(user_id: str, entry: Entry, fact_key: str, verdict: Verdict, *, on: str = "") -> PutOp:
    """Return the put of a verdict; `on` is the day of a correction."""
    value = {"is": verdict, "on": on, **_filtered(entry)}
    return PutOp(space(user_id, "ledger", "verdicts"), fact_key, value, index=False)


def _filtered(entry: Entry) -> dict[str, Any]:
    """Return what the filters of `_read` ask for, which all items have."""
    plain = {"day": entry.day, "promoted": entry.promoted, "kind": entry.kind}
    return plain | {"when": _when(moment(entry.at))}


def _when(instant: datetime) -> str:
    """Spell an instant so that every store can compare it: digits, as many for each."""
    return f"{instant:%Y%m%d%H%M%S}"


def _newest_place(user_id: str) -> tuple[tuple[str, ...], str]:
    return space(user_id, "ledger", "newest"), "entry"


async def _doubtful(store: BaseStore, user_id: str, fact_key: str) -> tuple[Entry, Fact]:
    for entry in await entries(store, user_id):
        for fact in entry.facts:
            if fact.key == fact_key and fact in entry.doubtful:
                return entry, fact
    msg = f"expected the key of an unverified fact, as a review lists it; got {fact_key!r}"
    raise LookupError(msg)


def _hash(parts: Sequence[str]) -> str:
    spelled = json.dumps(parts).encode()
    return hashlib.sha256(spelled).hexdigest()[:16]
