"""Which of a user's statements are worth remembering, by code."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from everlong.nodes import offline_cues as cues
from everlong.nodes.cues import RULE
from everlong.nodes.relative_days import dated
from everlong.nodes.statements import core, key_of, kind_of, sentences

LEAST_CHARS = 4
MOST_FACTS = 40
NEARLY = 0.8


@dataclass(frozen=True)
class Told:
    """What the user said in one message."""

    text: str
    mark: str = ""
    """The number by which a flush names the message."""
    day: str = ""
    """ISO date, where it was another day than today."""


def facts_of(told: Sequence[Told], remembered: str, *, today: str = "") -> list[str]:
    """Return what the user states that will hold in a later session, as `- ` lines, oldest first.

    A statement counts when it is about the user or gives a rule; questions, wishes for the task at
    hand and passing states don't. `today`: an ISO date, for words such as `tomorrow`. A line ends
    with the mark of its message, where that has one: `[12]`.
    """
    known = [key_of(line) for line in remembered.splitlines()]
    found: dict[str, str] = {}
    for one, sentence in ((each, each_one) for each in told for each_one in sentences(each.text)):
        said = core(sentence)
        if not _lasts(sentence, said):
            continue
        day = one.day or today
        fact = dated(said, date.fromisoformat(day) if day else None)
        key = key_of(fact)
        if not any(_holds(line, key) for line in [*known, *found]):
            mark = f" [{one.mark}]" if one.mark else ""
            found[key] = f"- {fact[:1].upper()}{fact[1:]}{mark}"
    return list(found.values())[:MOST_FACTS]


def _holds(known: str, key: str) -> bool:
    """Whether a known line says a fact, or all but a little of it."""
    return key in known or (known in key and len(known) > NEARLY * len(key))


def _lasts(sentence: str, said: str) -> bool:
    kind = kind_of(sentence)
    if kind == "remember":
        return True
    if kind not in ("fact", "confirmed", "goal", "open") or len(said) < LEAST_CHARS:
        return False
    if cues.CALL_OF.search(said):
        return False
    if RULE.search(said):
        return True
    passing = cues.PASSING.search(said) or cues.ONE_OFF.search(said) or cues.TALK.match(said)
    return kind != "goal" and bool(cues.PERSONAL.search(said)) and not passing
