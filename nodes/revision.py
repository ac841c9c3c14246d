"""What of a consolidation's answer may stand as MEMORY.md (R41, R44, R45). Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from everlong.nodes.days import Day
from everlong.nodes.grounding import Said, said_in, ungrounded
from everlong.nodes.matching import (
    Told,
    is_about_the_same,
    is_covered,
    is_said_by,
    origins_of,
)
from everlong.nodes.relative_days import relative_words
from everlong.nodes.remarks import is_remark, without_asides
from everlong.nodes.tokens import estimate_text
from everlong.stores.entries import Entry, Line, moment, zone_of

LEAST_KEPT = 0.5
"""Of the facts that nothing contradicts."""
LEAST_FILLED = 0.5
"""Of the limit: an answer that fills so much drops facts for want of room."""
_FENCE = re.compile(r"^\s*```\w*\s*$")
_HEADING = re.compile(r"^\s*#{1,6}\s")


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A document that may be written, or why there is none."""

    objection: str = ""
    """Why the answer is refused; empty where it is not."""
    text: str = ""
    origins: dict[str, tuple[str, ...]]
    """For each line that states something, the keys of the facts that it was made from."""
    dropped: tuple[tuple[str, str], ...] = ()
    """Lines that were left out, and why."""
    kept_saved: int = 0
    """Saved facts that the answer had left out."""


def revised(
    answer: str, document: Sequence[Line], fresh: Sequence[Entry], *, limit: int
) -> Revision:
    """Return the document that an answer makes of the old one and the entries since.

    Lines that state what nobody said and remarks are left out; what a person saved is put back;
    the oldest lines go where the limit is passed.
    """
    old = [Told(text, keys) for text, keys in document if _states(text)]
    new = [Told(f"- {fact.text}", (fact.key,)) for entry in fresh for fact in entry.verified]
    lines, dropped = _checked(_lines(answer), [*old, *new], _said(document, fresh))
    told = [Told(line) for line in lines if _states(line)]
    if objection := _objection(told, old, new, limit):
        return Revision(objection=objection, origins={}, dropped=tuple(dropped))
    saved = _left_out(told, fresh)
    lines += [*([""] if saved else []), *(one.text for one in saved)]
    origins = {one.text: one.keys or origins_of(one, [*old, *new]) for one in [*told, *saved]}
    firm = frozenset(fact.key for entry in fresh if entry.promoted for fact in entry.verified)
    text = fitted(lines, origins, firm, limit)
    if old and not any(map(_states, text.split("\n"))):
        return Revision(
            objection="no line of it fits the limit", origins={}, dropped=tuple(dropped)
        )
    return Revision(text=text, origins=origins, dropped=tuple(dropped), kept_saved=len(saved))


def _lines(answer: str) -> list[str]:
    lines = [line.rstrip() for line in answer.strip().splitlines()]
    return [without_asides(line) for line in lines if not _FENCE.match(line)]


def _states(line: str) -> bool:
    return any(map(str.isalnum, line)) and not _HEADING.match(line)


def _said(document: Sequence[Line], fresh: Sequence[Entry]) -> Said:
    """Return what document and entries say; each entry on its day, by its own clock."""
    texts: list[tuple[str, datetime | None]] = [("\n".join(text for text, _ in document), None)]
    whens = [moment(entry.at).astimezone(zone_of(entry.zone)) for entry in fresh]
    for entry, when in zip(fresh, whens, strict=True):
        texts += [(fact.text, when) for fact in entry.verified]
    said = said_in(texts)
    days = {Day(when.year, when.month, when.day) for when in whens}
    return replace(said, days=said.days | days)


def _checked(
    lines: Sequence[str], material: Sequence[Told], said: Said
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the lines that may stay, and those that may not, with why."""
    kept: list[str] = []
    dropped: list[tuple[str, str]] = []
    for line in lines:
        if is_remark(line) and not is_said_by(Told(line), material):
            dropped.append((line, "a remark about the document"))
        elif unsaid := ungrounded(line, said):
            dropped.append((line, f"{', '.join(unsaid)} was never said"))
        elif bare := [one for one in relative_words(line) if one.casefold() not in said.text]:
            dropped.append((line, f"{bare[0]!r} is another day when it is read later"))
        else:
            kept.append(line)
    return kept, dropped


def _objection(told: Sequence[Told], old: Sequence[Told], new: Sequence[Told], limit: int) -> str:
    """Say why the lines that are left cannot take the document's place; empty when they can."""
    if not told:
        return "no fact is left in it"
    standing = [one for one in old if not any(is_about_the_same(one, other) for other in new)]
    lost = sum(not is_covered(one, told) for one in standing)
    crowded = _tokens([*standing, *new]) > limit and _tokens(told) >= limit * LEAST_FILLED
    if lost > (1 - LEAST_KEPT) * len(standing) and not crowded:
        return f"it drops {lost} of {len(standing)} facts that no entry contradicts"
    return ""


def _tokens(told: Sequence[Told]) -> int:
    return _size([one.text for one in told])


def _left_out(told: Sequence[Told], fresh: Sequence[Entry]) -> list[Told]:
    """Return the saved facts that the lines do not say, and no later entry contradicts."""
    facts = [
        (entry, Told(f"- {fact.text}", (fact.key,))) for entry in fresh for fact in entry.verified
    ]
    return [
        one
        for place, (entry, one) in enumerate(facts)
        if entry.promoted
        and not is_covered(one, told)
        and not any(is_about_the_same(one, later) for _, later in facts[place + 1 :])
    ]


def fitted(
    lines: Sequence[str],
    origins: dict[str, tuple[str, ...]],
    firm: frozenset[str],
    limit: int,
) -> str:
    """Return the lines as a text within the limit.

    What goes first is a line that has no room even alone, then what nobody knows the origin of,
    then the oldest; what was saved goes last.
    """

    def rank(place: int) -> tuple[bool, bool, str, int]:
        keys = origins.get(lines[place], ())
        newest = max((key.rpartition("#")[0] for key in keys), default="")
        return _size([lines[place]]) <= limit, not firm.isdisjoint(keys), newest, -place

    order = sorted((n for n, line in enumerate(lines) if _states(line)), key=rank)
    gone: set[int] = set()
    over = _size(lines) - limit
    for place in order:
        if over <= 0 and _size(_joined(lines, gone).split("\n")) <= limit:
            break
        gone.add(place)
        over -= estimate_text(lines[place]) + 1
    return _joined(lines, gone)


def _size(lines: Sequence[str]) -> int:
    return sum(estimate_text(line) + 1 for line in lines)


def _joined(lines: Sequence[str], gone: set[int]) -> str:
    """Return the lines that are left, without headings that stand over nothing."""
    left = [line for place, line in enumerate(lines) if place not in gone]
    kept = [line for place, line in enumerate(left) if not _is_bare(left, place)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()


def _is_bare(lines: Sequence[str], place: int) -> bool:
    """Tell a heading whose section, with those below it, has no line."""
    if not _HEADING.match(lines[place]):
        return False
    return not any(map(_states, _section(lines, place)))


def _section(lines: Sequence[str], place: int) -> Iterator[str]:
    level = _level(lines[place])
    for line in lines[place + 1 :]:
        if _HEADING.match(line) and _level(line) <= level:
            return
        yield line


def _level(heading: str) -> int:
    return len(heading.lstrip()) - len(heading.lstrip().lstrip("#"))
