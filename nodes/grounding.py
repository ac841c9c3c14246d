"""Whether what a text states was said (R44). Pure.

A number counts as said in any spelling, a date also as half a date or by a word such as
`tomorrow`, an identifier however its parts are joined. In doubt, it was said.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from everlong.nodes.claims import Claim, claims, without_dates
from everlong.nodes.clock_times import ClockTime, clock_times_said
from everlong.nodes.currencies import Currency, codes_said
from everlong.nodes.days import Day, days_said
from everlong.nodes.durations import durations
from everlong.nodes.numerals import continental, numbers
from everlong.nodes.periods import Period, periods_of, periods_said, quarter_of
from everlong.nodes.spans import Span, month
from everlong.nodes.spans_said import spans_said

MOST_LOOSE_CHARS = 200
_JOINT = r"[\s_./()\[\]:,'\"“”「」#@+=&?~%$\\-]{0,3}"
_SHORT_TAG = re.compile(r"[a-z](?P<number>\d{1,2})", re.IGNORECASE)
_LONG_NUMBER = 5
"""Digits from which on a number may be an identifier, such as that of a telephone."""
_LEEWAY = 2
"""Days that a span may be longer than the date it is taken for."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What some texts say, in every reading of them."""

    text: str
    numbers: frozenset[Decimal]
    days: frozenset[Day]
    spans: tuple[Span, ...]
    bases: tuple[date, ...]
    """The days on which it was said."""
    times: frozenset[ClockTime]
    periods: frozenset[Period]
    currencies: frozenset[str]
    """Their codes."""


def said_in(texts: Iterable[tuple[str, datetime | None]]) -> Said:
    """Return what texts say; each with when, on the clock of whoever said it."""
    told = [(unicodedata.normalize("NFKC", text), when) for text, when in texts]
    whole = "\n".join(text for text, _ in told)
    spans = [
        span for text, when in told if when is not None for span in spans_said(text, when.date())
    ]
    undated, days = without_dates(whole), days_said(whole)
    bases = dict.fromkeys(when.date() for _, when in told if when is not None)
    return Said(
        text=whole.casefold(),
        numbers=frozenset(numbers(undated) | durations(undated)),
        days=frozenset(days),
        spans=tuple(dict.fromkeys(spans)),
        bases=tuple(bases),
        times=frozenset(clock_times_said(whole)),
        periods=frozenset(
            periods_said(whole) | set(_periods_in([*spans, *_spans_of(days, bases)]))
        ),
        currencies=frozenset(codes_said(whole)),
    )


def ungrounded(text: str, said: Said) -> list[str]:
    """Return the dates, times, numbers and identifiers of a text that were not said."""
    return [claim.written for claim in claims(text) if not holds(said, claim)]


def holds(said: Said, claim: Claim) -> bool:
    """Tell whether a claim was said."""
    match claim.means:
        case tuple():
            return any(_has_day(said, day) for day in claim.means)
        case ClockTime() | Period():
            return claim.means in said.times | said.periods
        case Currency():
            return not said.currencies or not said.currencies.isdisjoint(claim.means.codes)
        case Decimal():
            return _has_number(said, claim.written, claim.means)
        case str():
            tag = _SHORT_TAG.fullmatch(claim.means)
            is_numbered = tag is not None and Decimal(tag["number"]) in said.numbers
            return is_numbered or _has_name(said, claim.means) or _has_words(said, claim.means)


def _has_number(said: Said, written: str, value: Decimal) -> bool:
    if value in said.numbers or not said.numbers.isdisjoint(continental(written)):
        return True
    long = len(re.sub(r"\D", "", written)) >= _LONG_NUMBER
    return _is_year_said(said, value) or (long and _has_name(said, written))


def _has_day(said: Said, day: Day) -> bool:
    if any(_agree(day, one, said.bases) for one in said.days):
        return True
    if any(_within(day, span) for span in said.spans):
        return True
    return day.year is not None and day.month is None and Decimal(day.year) in said.numbers


def _agree(day: Day, said: Day, bases: Sequence[date]) -> bool:
    """Tell whether two dates may be the same, the year, the month or the day left out in one."""
    if day.month is None:
        return day.day == said.day if day.day else day.year == said.year
    if said.month is None:
        near = any(
            _within(Day(day.year, day.month), month(base, by))
            for base in bases
            for by in (-1, 0, 1)
        )
        return day.day is not None and day.day == said.day and near
    same_year = day.year == said.year or said.year is None or day.year is None
    if day.year and said.year is None and bases:
        same_year = any(abs(day.year - base.year) <= 1 for base in bases)
    return same_year and day.month == said.month and day.day in (said.day, None)


def _within(day: Day, span: Span) -> bool:
    """Tell whether a date may be what a span means, or one end of it.

    A year that was said tells no month, and a week no day.
    """
    first, last = span
    if day.month is None and day.day is not None:
        return any(one.day == day.day for one in span)
    years = {first.year, last.year} if day.year is None else {day.year}
    for begin, end in filter(None, (_dates_of(day, year) for year in years)):
        is_as_exact = (last - first).days <= (end - begin).days + _LEEWAY
        has_an_end = begin <= first <= end or begin <= last <= end
        if begin <= last and first <= end and (is_as_exact or has_an_end):
            return True
    return False


def _dates_of(day: Day, year: int) -> Span | None:
    """Return the first and the last date of a day, month or year; None: it has none then."""
    if day.month is None:
        return date(year, 1, 1), date(year, 12, 31)
    begin, end = month(date(year, day.month, 1), 0)
    if day.day is None:
        return begin, end
    if day.day > end.day:
        return None
    return date(year, day.month, day.day), date(year, day.month, day.day)


def _periods_in(spans: Iterable[Span]) -> Iterator[Period]:
    """Return the days of the week and the quarters of what was said of days."""
    for first, last in spans:
        if (last - first).days <= _LEEWAY:
            yield from periods_of(first) | periods_of(last)
        elif first.year == last.year and quarter_of(first.month) == quarter_of(last.month):
            yield Period("quarter", quarter_of(first.month))


def _spans_of(days: Iterable[Day], bases: Iterable[date]) -> Iterator[Span]:
    """Return the dates of the days and months that were said, in every year that is near."""
    near = {base.year + by for base in bases for by in (-1, 0, 1)}
    for day in days:
        for year in near if day.year is None else {day.year}:
            if day.month is not None and (found := _dates_of(day, year)):
                yield found


def _is_year_said(said: Said, value: Decimal) -> bool:
    """Tell whether a bare number is a year that follows from what was said, or a part of a day."""
    year = int(value) if value == int(value) and abs(value) < 10_000 else 0  # noqa: PLR2004 - years
    return any(first.year <= year <= last.year for first, last in said.spans)


def _has_name(said: Said, name: str) -> bool:
    """Tell whether an identifier was said, in any case and however its parts are joined."""
    folded = re.sub(r"^https?://(?:www\.)?|/$", "", unicodedata.normalize("NFKC", name).casefold())
    if folded in said.text and (len(folded) > MOST_LOOSE_CHARS or not folded.isascii()):
        return True
    signs = [sign for sign in folded if sign.isalnum()]
    if not signs or len(folded) > MOST_LOOSE_CHARS:
        return False
    loose = _JOINT.join(map(re.escape, signs))
    begin = "(?<![a-z0-9])" if signs[0].isascii() else ""
    end = "(?![a-z0-9])" if signs[-1].isascii() else ""
    if folded[0] == "+":
        begin += "(?:00)?"
    return bool(re.search(f"{begin}(?:{loose}|{re.escape(folded)}){end}", said.text))


def _has_words(said: Said, phrase: str) -> bool:
    """Tell whether all words of a quoted phrase were said, in any order."""
    words = phrase.casefold().split()
    return len(words) > 1 and not re.search(r"\d", phrase) and all(w in said.text for w in words)
