"""Every span of days that a text may speak of, seen from the day on which it was said. Pure."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal

from everlong.nodes import spans
from everlong.nodes.days import dates
from everlong.nodes.periods import Period, periods, shortened
from everlong.nodes.relative_days import HAN_N, HAN_UNIT, UNIT, N, meanings

_COUNTED = (
    re.compile(rf"\b{N}[ -]{UNIT}\b", re.IGNORECASE),
    re.compile(rf"{HAN_N}{HAN_UNIT}"),
)
_EDGE = r"\b(?:end|start|beginning|middle|rest) of (?:the|this)"
_EDGES = tuple(
    (re.compile(pattern, re.IGNORECASE), span)
    for pattern, span in (
        (rf"{_EDGE} month|月[底末初中]", spans.month),
        (rf"{_EDGE} year|年[底末初中]", spans.year),
        (rf"{_EDGE} week", spans.week),
        (r"\bweekend|周末", spans.weekend),
        (rf"{_EDGE} quarter|季度?[底末初]", spans.quarter),
    )
)
MOST_OF_AN_EDGE = 30
_BEFORE_EDGE = re.compile(r"\b(?:end|start|beginning) of (?:the year )?$|\b(?:early|late) $")
_YEAR_EDGE = re.compile(r"\b(?:end|start|beginning) of (?P<year>[12]\d{3})\b", re.IGNORECASE)
_AFTER_EDGE = re.compile("[底末初]")


def spans_said(text: str, base: date) -> Iterator[spans.Span]:
    """Return all spans of days that a text may speak of, seen from `base`; rather too many."""
    yield base, base
    yield from ((one.first, one.last) for one in meanings(text, base))
    for pattern in _COUNTED:
        for match in pattern.finditer(text):
            yield from _around(spans.count_of(match["n"]), match["unit"].lower(), base)
    for period in {one.period for one in periods(text)} | shortened(text):
        yield from _in_turn(period, base)
    for pattern, span in _EDGES:
        if pattern.search(text):
            yield span(base, 0)
    yield from _ends(text, base)


def _in_turn(period: Period, base: date) -> Iterator[spans.Span]:
    """Return the next days of this name, and the last; the quarters of three years."""
    if period.kind == "quarter":
        firsts = (date(base.year + by, 3 * period.number - 2, 1) for by in (-1, 0, 1))
        yield from (spans.quarter(first, 0) for first in firsts)
        return
    monday = spans.week(base, 0)[0]
    days = [monday + timedelta(days=period.number, weeks=by) for by in (-1, 0, 1, 2)]
    yield from ((day, day) for day in days if abs((day - base).days) <= 14)  # noqa: PLR2004 - two weeks


def _ends(text: str, base: date) -> Iterator[spans.Span]:
    """Return the months and years of which a text speaks of the beginning or the end."""
    for match in _YEAR_EDGE.finditer(text):
        yield spans.year(date(int(match["year"]), 1, 1), 0)
    for one in dates(text):
        before = text[max(one.begin - MOST_OF_AN_EDGE, 0) : one.begin]
        if _BEFORE_EDGE.search(before) or _AFTER_EDGE.match(text, one.end):
            for day in one.days:
                first = date(day.year or base.year, day.month or 1, 1)
                yield spans.month(first, 0) if day.month else spans.year(first, 0)


def _around(number: Decimal, unit: str, base: date) -> Iterator[spans.Span]:
    """Return the days at a distance, either way, and one to each side."""
    for by in (number, -number):
        day = spans.moved(base, by, unit)
        yield day - timedelta(days=1), day + timedelta(days=1)
