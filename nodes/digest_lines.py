"""The lines of a digest: lead-ins, which one replaces another, which go when there is no room."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from everlong.nodes import cues
from everlong.nodes.digest_leads import ASKED, PASSING, TALKED, lead_of, without_lead
from everlong.nodes.identifiers import identifiers, missing
from everlong.nodes.statements import Language, bare, key_of
from everlong.nodes.subjects import subject_of
from everlong.nodes.tokens import estimate_text

Section = Literal["goal", "said", "artifacts", "open"]

TALK, STATED, EXACT, EARLY, OPEN = range(5)
"""Weights: talk, statements, exact ones, the first of those, aims and open points."""
MOST_ITEMS = 400
MOST_ASKED = 4
MOST_AIMS = 3
FIRST_KEPT = 8
"""Exact statements of the beginning that outlive newer ones."""
MOST_CHARS = 300

_HEADING = re.compile(
    r"^\s*(?:#{1,6}\s+(?P<sharp>.+?)\s*#*|\*\*(?P<bold>[^*]{1,40})\*\*[:：]?)\s*$"
)
_NUMBERED = re.compile(
    r"^\s*(?:\d{1,2}[.、)]|[一二三四五六七八九]、)?\s*(?P<name>.{1,40}?)\s*[:：]?\s*$"
)
_NONE = re.compile(r"(?:none|n/?a|nothing|empty|无|没有|暂无|[-—]*)[.。]?", re.IGNORECASE)
_SECTIONS: tuple[tuple[Section, re.Pattern[str]], ...] = (
    ("open", cues.OPEN_HEADING),
    ("artifacts", cues.ARTIFACTS_HEADING),
    ("said", cues.SAID_HEADING),
    ("goal", cues.GOAL_HEADING),
)


@dataclass(frozen=True)
class Item:
    """One line of a digest."""

    section: Section
    text: str
    weight: int
    """From `TALK` to `OPEN`: what is lighter goes first where room lacks."""
    heading: str = ""
    """Heading of the earlier summary that it stood under."""


def section_of(heading: str) -> Section | None:
    """Return what a heading asks for; None for one that is not known."""
    return next((section for section, cue in _SECTIONS if cue.search(heading)), None)


def heading_of(line: str, known: Sequence[str] = ()) -> str:
    """Return the heading that a line is: marked as one, or one of those that are known."""
    if marked := _HEADING.match(line):
        return (marked["sharp"] or marked["bold"]).strip(" :：*")
    numbered = _NUMBERED.match(line)
    return numbered["name"] if numbered and numbered["name"] in known else ""


def shortened(said: str) -> str:
    """Cut a long statement, and keep the exact names and numbers of what was cut."""
    if len(said) <= MOST_CHARS:
        return said
    kept = said[:MOST_CHARS].rstrip()
    lost = missing(identifiers(said[:20_000]), kept)[:10]
    return f"{kept}…" + (f" ({', '.join(lost)})" if lost else "")


def is_exact(text: str) -> bool:
    """Whether a text holds what only exact words keep: a name, a number, a rule."""
    return bool(cues.RULE.search(text)) or bool(identifiers(text))


def carried(body: str, headings: Sequence[str]) -> list[Item]:
    """Return the lines of an earlier summary, each under its heading."""
    found: list[Item] = []
    heading, section = "", "said"
    for line in body.splitlines():
        if name := heading_of(line, headings):
            heading, section = name, section_of(name) or "said"
        elif (text := bare(line)) and not _NONE.fullmatch(text) and not PASSING.match(text):
            found.append(Item(section, shortened(text), _weight(section, text), heading))
    return found


def _weight(section: Section, text: str) -> int:
    if ASKED.match(text):
        return TALK
    exact = is_exact(text)
    if TALKED.match(text) or section == "artifacts":
        return int(exact)
    if section == "open" or lead_of(text) == "goal":
        return OPEN
    return EXACT if exact else STATED


def settled(items: Sequence[Item]) -> list[Item]:
    """Drop what is said twice, what a newer value replaces, and open points that were settled."""
    return _still_open(_newest(_once(_at_most(_weighed(items)))))


def _weighed(items: Sequence[Item]) -> list[Item]:
    """Weigh lines by their place: beginnings matter longest, and of questions the newest few."""
    asked = [place for place, item in enumerate(items) if ASKED.match(item.text)]
    aims = [place for place, item in enumerate(items) if lead_of(item.text) == "goal"]
    exact = [
        place for place, item in enumerate(items) if item.section == "said" and item.weight == EXACT
    ]
    weights = dict.fromkeys(aims[MOST_AIMS:-MOST_AIMS], STATED) | dict.fromkeys(
        exact[:FIRST_KEPT], EARLY
    )
    gone = set(asked[:-MOST_ASKED])
    return [
        replace(item, weight=weights.get(place, item.weight))
        for place, item in enumerate(items)
        if place not in gone
    ]


def _at_most(items: Sequence[Item]) -> list[Item]:
    ranked = sorted(range(len(items)), key=lambda place: (-items[place].weight, -place))
    return [items[place] for place in sorted(ranked[:MOST_ITEMS])]


def _once(items: Sequence[Item]) -> list[Item]:
    """Keep, of two lines that say the same, the user's and the fuller one, at the older place."""
    kept: list[tuple[str, Item]] = []
    for item in items:
        key = key_of(without_lead(item.text))
        for place, (other, old) in enumerate(kept):
            if stays := _stays(old, other, item, key):
                better = replace(stays, weight=max(old.weight, item.weight), heading=old.heading)
                kept[place] = (
                    key if stays is item else other,
                    replace(better, section=old.section),
                )
                break
        else:
            kept.append((key, item))
    return [item for _, item in kept]


def _stays(old: Item, old_key: str, new: Item, new_key: str) -> Item | None:
    """Return which of two lines stands for both; None where each says something of its own."""
    old_talks, new_talks = bool(TALKED.match(old.text)), bool(TALKED.match(new.text))
    if old_key == new_key:
        return new if old_talks and not new_talks else old
    if old.section != new.section or bool(PASSING.match(old.text)) != bool(PASSING.match(new.text)):
        return None
    if new_key in old_key and (new_talks or not old_talks):
        return old
    return new if old_key in new_key and (old_talks or not new_talks) else None


def _newest(items: Sequence[Item]) -> list[Item]:
    """Keep the newest of the statements that give one thing different values."""
    last: dict[str, int] = {}
    for place, item in enumerate(items):
        if item.section == "said" and (subject := subject_of(without_lead(item.text))):
            last[subject] = place
    return [
        item
        for place, item in enumerate(items)
        if item.section != "said" or last.get(subject_of(without_lead(item.text)), place) == place
    ]


def _still_open(items: Sequence[Item]) -> list[Item]:
    """Drop the open points that a later statement names without leaving them open."""
    later = [
        key_of(item.text) if item.section == "said" and not cues.OPEN.search(item.text) else ""
        for item in items
    ]
    return [
        item
        for place, item in enumerate(items)
        if item.section != "open" or not _names(later[place + 1 :], without_lead(item.text))
    ]


def _names(keys: Sequence[str], point: str) -> bool:
    key = key_of(
        re.sub(r"^(?:the|our|my|a|an) ", "", cues.OPEN_MARK.sub("", point), flags=re.IGNORECASE)
    )
    least = 4 if key.isascii() else 2
    return len(key) >= least and any(key in other for other in keys)


def fitted(
    items: Sequence[Item], headings: Sequence[str], tongue: Language, limit_tokens: int
) -> str:
    """Write the lines under the headings; the lightest and oldest go until the limit holds."""
    left = dict(enumerate(items))
    costs = {place: estimate_text(f"- {item.text}\n") for place, item in left.items()}
    over = estimate_text(_written([], headings, tongue)) + sum(costs.values()) - limit_tokens
    for place in sorted(left, key=lambda place: (left[place].weight, place)):
        if over <= 0 and estimate_text(_written(left.values(), headings, tongue)) <= limit_tokens:
            break
        over -= costs[place]
        del left[place]
    return _cut(_written(left.values(), headings, tongue), limit_tokens)


def _written(items: Iterable[Item], headings: Sequence[str], tongue: Language) -> str:
    under: dict[str, list[str]] = {heading: [] for heading in headings}
    for item in items:
        under[_place_of(item, headings)].append(f"- {item.text}")
    none = "无" if tongue == "zh" else "None"
    parts = ["\n".join([f"## {name}", *(lines or [none])]) for name, lines in under.items()]
    return "\n\n".join(parts)


def _place_of(item: Item, headings: Sequence[str]) -> str:
    """Return the heading that fits a line: its own, its section's, else the one of statements."""
    if item.heading in headings:
        return item.heading
    for section in (item.section, "said"):
        for heading in headings:
            if section_of(heading) == section:
                return heading
    return headings[0]


def _cut(text: str, limit_tokens: int) -> str:
    """Cut a text that no dropping of lines made short enough."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if estimate_text(text[:middle]) <= limit_tokens else (low, middle - 1)
        )
    return text[:low].rstrip()
