"""Days of the week and quarters as they are written: `Fridays`, `周五`, `Q3`. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Literal

from everlong.nodes.relative_days import HAN_WEEK, WEEKDAYS

_HAN_DAYS = "一二三四五六日"
_ORDINALS = ("first", "second", "third", "fourth")
_SHORT = "|".join(f"{name[:3]}(?:s|rs|nes|urs)?" for name in WEEKDAYS)
_WEEKDAY = (
    rf"\b(?P<en>{'|'.join(WEEKDAYS)})s?\b|{HAN_WEEK}(?P<zh>[{_HAN_DAYS}天])(?![次个天回遍顿场趟节])"
)
_QUARTER = (
    rf"\bQ(?P<q>[1-4])\b|\b(?P<nth>{'|'.join(_ORDINALS)}|[1-4](?:st|nd|rd|th)) quarter\b"
    r"|(?:第(?=[一二三四1-4]季)|(?=[一二三四1-4]季度))(?P<han_q>[一二三四1-4])季度?"
)
_NAMED = re.compile(f"{_WEEKDAY}|{_QUARTER}", re.IGNORECASE)
_SEVERAL = re.compile(rf"{HAN_WEEK}(?P<days>[{_HAN_DAYS}天](?:[、,，和及]?[{_HAN_DAYS}天])+)")
_ABBREVIATED = re.compile(rf"\b(?P<short>{_SHORT})\b", re.IGNORECASE)
_TO = re.compile(r"\s?(?:[-–—~～至到]|to|through|till|until)\s?", re.IGNORECASE)
_GROUPS = (
    (re.compile(r"\b(?:week|work(?:ing)?|business)[ -]?days?\b|工作日", re.IGNORECASE), range(5)),
    (re.compile(r"\bweekends?\b|周末", re.IGNORECASE), range(5, 7)),
)


@dataclass(frozen=True)
class Period:
    """A day of the week, from 0 for Monday, or a quarter, from 1."""

    kind: Literal["weekday", "quarter"]
    number: int


@dataclass(frozen=True)
class Named:
    """A period in a text."""

    written: str
    begin: int
    end: int
    period: Period


def periods(text: str) -> list[Named]:
    """Return the periods that a text names in full, in order."""
    return [Named(one[0], one.start(), one.end(), _period(one)) for one in _NAMED.finditer(text)]


def shortened(text: str) -> set[Period]:
    """Return the days of the week that a text abbreviates, such as `Fri`."""
    return {_weekday(match["short"][:3]) for match in _ABBREVIATED.finditer(text)}


def periods_said(text: str) -> set[Period]:
    """Return every period that a text may speak of, also shortened or within others."""
    named = periods(text)
    found = {one.period for one in named} | shortened(text)
    for match in _SEVERAL.finditer(text):
        found |= {_han(sign) for sign in match["days"] if sign in f"{_HAN_DAYS}天"}
    for one, other in pairwise(named):
        if _TO.fullmatch(text[one.end : other.begin]):
            found |= set(_between(one.period, other.period))
    for words, numbers in _GROUPS:
        if words.search(text):
            found |= {Period("weekday", number) for number in numbers}
    return found


def periods_of(day: date) -> set[Period]:
    """Return the day of the week of a date, and its quarter."""
    return {Period("weekday", day.weekday()), Period("quarter", quarter_of(day.month))}


def quarter_of(month: int) -> int:
    """Return the quarter of a month."""
    return (month + 2) // 3


def _between(one: Period, other: Period) -> Iterator[Period]:
    if one.kind == other.kind == "weekday":
        steps = (other.number - one.number) % 7
        yield from (Period("weekday", (one.number + step) % 7) for step in range(steps + 1))


def _period(match: re.Match[str]) -> Period:
    if match["en"]:
        return _weekday(match["en"][:3])
    if match["zh"]:
        return _han(match["zh"])
    written = (match["q"] or match["nth"] or match["han_q"]).lower()
    if written in _ORDINALS:
        return Period("quarter", _ORDINALS.index(written) + 1)
    return Period("quarter", "一二三四".find(written) + 1 or int(written[0]))


def _han(sign: str) -> Period:
    return Period("weekday", _HAN_DAYS.index(sign.replace("天", "日")))


def _weekday(short: str) -> Period:
    return Period("weekday", [name[:3] for name in WEEKDAYS].index(short.lower()))
