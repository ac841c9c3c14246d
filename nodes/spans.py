"""Spans of the calendar: weeks begin on Monday, months and quarters on their first day. Pure."""

from calendar import monthrange
from datetime import date, timedelta
from decimal import Decimal

from everlong.nodes.numerals import HAN_NUMBER, han_value, words_value

Span = tuple[date, date]
"""The first day and the last."""
_LOOSE = {"a": 1, "an": 1, "a couple of": 2, "half a": Decimal("0.5"), "half an": Decimal("0.5")}
_UNIT_DAYS = {"day": 1, "天": 1, "日": 1, "week": 7, "fortnight": 14, "个半月": 45}


FIRST_MONTH, LAST_MONTH = 12, 12 * 9_999 + 11
"""Of the calendar, counted from year 0."""


def count_of(written: str) -> Decimal:
    """Return the number that stands before a unit: `3`, `two`, `a couple of`, `两`, `半`."""
    lowered = written.lower()
    if lowered in _LOOSE:
        return Decimal(_LOOSE[lowered])
    if lowered == "半":
        return Decimal("0.5")
    if HAN_NUMBER.fullmatch(lowered):
        return han_value(lowered)
    return Decimal(lowered) if lowered[0].isdigit() else words_value(lowered)


def moved(base: date, by: Decimal, unit: str) -> date:
    """Return the day that is so many units after `base`; before it, where negative.

    Out of the calendar's bounds, the bound.
    """
    if unit in ("month", "year", "月", "个月", "年"):
        months = by * (12 if unit in ("year", "年") else 1)
        if months == int(months):
            return _months_on(base, int(months))
        days = round(by * (365 if unit in ("year", "年") else 30))
    else:
        days = round(by * _UNIT_DAYS.get(unit, 7))
    return base + timedelta(days=max(min(days, 300_000), -300_000))


def week(base: date, by: int) -> Span:
    """Return the week of `base`, or the one that is so many weeks on."""
    monday = base - timedelta(days=base.weekday()) + timedelta(weeks=by)
    return monday, monday + timedelta(days=6)


def weekend(base: date, by: int) -> Span:
    """Return the Saturday and Sunday of the week of `base`, or of one that is so many on."""
    sunday = week(base, by)[1]
    return sunday - timedelta(days=1), sunday


def month(base: date, by: int) -> Span:
    """Return the month of `base`, or the one that is so many months on."""
    day = _months_on(base.replace(day=1), by)
    return day, day.replace(day=monthrange(day.year, day.month)[1])


def quarter(base: date, by: int) -> Span:
    """Return the quarter of `base`, or the one that is so many quarters on."""
    first = _months_on(date(base.year, base.month - (base.month - 1) % 3, 1), 3 * by)
    return first, month(first, 2)[1]


def year(base: date, by: int) -> Span:
    """Return the year of `base`, or the one that is so many years on."""
    return date(base.year + by, 1, 1), date(base.year + by, 12, 31)


def _months_on(base: date, by: int) -> date:
    index = base.year * 12 + base.month - 1 + by
    to_year, to_month = divmod(max(FIRST_MONTH, min(index, LAST_MONTH)), 12)
    return date(to_year, to_month + 1, min(base.day, monthrange(to_year, to_month + 1)[1]))
