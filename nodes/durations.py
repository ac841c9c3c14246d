"""How long something takes, in every unit it may be told in: `half an hour`, `一年半`. Pure."""

import re
from collections.abc import Iterator
from decimal import Decimal

from everlong.nodes.numerals import HAN
from everlong.nodes.spans import count_of

_UNITS = {"minute": 1, "hour": 60, "day": 1_440, "week": 10_080, "fortnight": 20_160}
"""In minutes."""
_LONG_UNITS = {"month": 1, "year": 12}
"""In months."""
_NAMES = {
    "min": "minute",
    "分钟": "minute",
    "h": "hour",
    "小时": "hour",
    "钟头": "hour",
    "天": "day",
    "周": "week",
    "星期": "week",
    "礼拜": "week",
    "月": "month",
    "年": "year",
}
_DAYS_OF_A_MONTH = 30
_WORD = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|eighteen|twenty"
    "|thirty|forty|sixty|ninety"
)
_LASTS = re.compile(
    rf"(?<![\w.])(?P<n>\d{{1,4}}(?:\.\d{{1,2}})?|{_WORD}|half an?|an?(?: couple of)?|every|per)"
    r"(?P<half> and a half)?(?:[ -]|(?<=\d))"
    rf"(?P<unit>{'|'.join([*_UNITS, *_LONG_UNITS])}|min|h)s?\b(?P<half_too> and a half)?"
    rf"|(?P<han>\d{{1,4}}(?:\.\d{{1,2}})?|[{HAN}]{{1,6}}|半)个?(?P<han_half>半)?"
    r"(?P<han_unit>分钟|小时|钟头|天|周|星期|礼拜|月|年)(?P<han_half_too>半)?",
    re.IGNORECASE,
)


def durations(text: str) -> set[Decimal]:
    """Return how many minutes, hours, days, weeks, months or years a text says, whichever it is."""
    return {
        value
        for found in _LASTS.finditer(text)
        for value in _in_any_unit(_count(found), _unit(found))
    }


def _unit(found: re.Match[str]) -> str:
    name = (found["unit"] or found["han_unit"]).lower()
    return _NAMES.get(name, name)


def _count(found: re.Match[str]) -> Decimal:
    written = (found["n"] or found["han"]).lower()
    count = Decimal(1) if written in ("every", "per") else count_of(written)
    halves = ("half", "half_too", "han_half", "han_half_too")
    return count + (Decimal("0.5") if any(found[one] for one in halves) else 0)


def _in_any_unit(count: Decimal, unit: str) -> Iterator[Decimal]:
    """Return the counts in every unit, as far as they come out to quarters."""
    family = _UNITS if unit in _UNITS else _LONG_UNITS
    if unit == "month":
        yield (count * _DAYS_OF_A_MONTH).normalize()
    for factor in family.values():
        value = count * family[unit] / factor
        if value and value * 4 == int(value * 4):
            yield value.normalize()
