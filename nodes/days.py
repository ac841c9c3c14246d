"""Days as English and Chinese write them: `2026-10-30`, `30 October`, `十月三十日`. Pure."""

# ruff: noqa: ISC004, SIM905 - patterns over two lines, and a text of words

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

from everlong.nodes.numerals import HAN, han_value

_MONTHS = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_NAMES: list[str] = [*"jan feb mar apr may jun jul aug sep oct nov dec".split()]
_ORDINAL = (
    "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth"
    "|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth"
)
_ORDINALS = {word: place for place, word in enumerate(_ORDINAL.split("|"), 1)} | {"thirtieth": 30}
_SPELLED = rf"(?:twenty|thirty)[ -](?:{_ORDINAL})|{_ORDINAL}"
_DAY = rf"(?:\d{{1,2}}(?:st|nd|rd|th)?(?![\d:])|{_SPELLED})"
_BEGIN, _END = r"(?<![A-Za-z0-9_])(?<![A-Za-z0-9]-)(?<!\d[./:,])", r"(?![A-Za-z0-9_]|-\w|[./:]\d)"
_TO = r"\s?(?:[-–—~～至到]|to|until|till|through|and)\s?"
_HAN_DIGIT = rf"(?:\d{{1,2}}|[{HAN}廿卅]{{1,3}})"
_HAN_YEAR = rf"(?:\d{{4}}|\d{{2}}(?=年\d)|[{HAN}]{{4}})"
_HAN_RANGE = rf"(?:(?P<han_from>{_HAN_DIGIT})[日号號]?{_TO})?(?P<han_d>{_HAN_DIGIT})"
_DM_RANGE = rf"(?:(?P<dm_from>{_DAY}){_TO})?(?P<dm_d>{_DAY})"
_MD_RANGE = rf"(?:(?P<md_from>{_DAY}){_TO})?(?P<md_d>{_DAY})"
_FORMS = (
    rf"{_BEGIN}(?P<iso_y>\d{{4}})(?P<sep>[-/.])(?P<iso_m>\d{{1,2}})(?P=sep)(?P<iso_d>\d{{1,2}})"
    rf"(?:(?=T\d)|{_END})",
    rf"{_BEGIN}(?P<ym_y>\d{{4}})[-/](?P<ym_m>0[1-9]|1[0-2]){_END}",
    rf"{_BEGIN}(?P<a>\d{{1,2}})(?P<slash>[/.-])(?P<b>\d{{1,2}})(?P=slash)(?P<ab_y>\d{{4}}|\d{{2}})"
    rf"{_END}",
    rf"(?:(?P<han_y>{_HAN_YEAR})年(?:的)?)?(?<![\d{HAN}])(?P<han_m>{_HAN_DIGIT})月(?!份?前|后)份?"
    rf"(?:{_HAN_RANGE}(?:[日号號]|(?![\d{HAN}])))?",
    rf"(?<![\d{HAN}])(?P<year>{_HAN_YEAR})年(?!前|后|来)",
    rf"(?<![\d{HAN}第])(?P<day>{_HAN_DIGIT})[号號日](?![码楼线店馆门机])",
    rf"\b{_DM_RANGE}(?: of)? (?P<dm_m>{_MONTHS})\b\.?(?:,? (?P<dm_y>\d{{4}})(?!\d))?",
    rf"\b(?P<md_m>{_MONTHS})\b\.? (?:the )?{_MD_RANGE}(?!\d|%)(?:,? (?P<md_y>\d{{4}})(?!\d))?",
    rf"\b(?P<my_m>{_MONTHS})\b\.?,? (?P<my_y>\d{{4}})(?!\d)",
)
_WRITTEN = re.compile("|".join(_FORMS), re.IGNORECASE)
_MONTH_ALONE = re.compile(
    rf"\b(?:in|since|until|till|by|from|of|during|early|mid|late|every|end of) (?P<m>{_MONTHS})\b"
    rf"|\b(?P<n>{_MONTHS.replace('|may|', '|').replace('mar(?:ch)?|', '')})\b",
    re.IGNORECASE,
)
_MONTH_ANY = re.compile(rf"\b(?P<m>{_MONTHS})\b", re.IGNORECASE)
_DAY_ALONE = re.compile(
    rf"\b(?:the|on) (?P<d>\d{{1,2}}(?:st|nd|rd|th)|{_SPELLED})\b", re.IGNORECASE
)
_NO_DIGIT = re.compile(r"\D")
_SLASHED = re.compile(rf"{_BEGIN}(?P<a>\d{{1,2}})[/.-](?P<b>\d{{1,2}})(?![\d/%]|\.\d)")
_FEASTS = (
    (re.compile(r"\bchristmas(?! eve)|圣诞", re.IGNORECASE), 12, 25),
    (re.compile(r"christmas eve|平安夜", re.IGNORECASE), 12, 24),
    (re.compile(r"\bnew year(?!'?s eve)|元旦", re.IGNORECASE), 1, 1),
    (re.compile(r"new year'?s eve|跨年", re.IGNORECASE), 12, 31),
    (re.compile(r"valentine|情人节", re.IGNORECASE), 2, 14),
    (re.compile(r"halloween|万圣", re.IGNORECASE), 10, 31),
    (re.compile(r"\blabou?r day|劳动节|五一", re.IGNORECASE), 5, 1),
    (re.compile(r"国庆|十一(?!月)|national day", re.IGNORECASE), 10, 1),
)


@dataclass(frozen=True)
class Day:
    """A day, a month or a year, as far as it is said."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


@dataclass(frozen=True)
class Dated:
    """A date in a text, and what it may mean."""

    written: str
    begin: int
    end: int
    days: tuple[Day, ...]


def dates(text: str) -> list[Dated]:
    """Return the dates that a text writes out, in order; of a range its last day and its first."""
    found = [
        Dated(match[0].strip(), match.start(), match.end(), days)
        for match in _WRITTEN.finditer(text)
        for days in _ends(match)
    ]
    taken = bytearray(len(text))
    for one in found:
        taken[one.begin : one.end] = b"\1" * (one.end - one.begin)
    for match in _MONTH_ALONE.finditer(text):
        if not any(taken[match.start() : match.end()]):
            name = "m" if match["m"] else "n"
            days = (Day(month=_month(match[name])),)
            found.append(Dated(match[name], match.start(name), match.end(name), days))
    return sorted(found, key=lambda one: one.begin)


def days_said(text: str) -> set[Day]:
    """Return every day that a text may speak of, also by half a date or the name of a feast."""
    found = {day for one in dates(text) for day in one.days}
    found |= {Day(month=_month(match["m"])) for match in _MONTH_ANY.finditer(text)}
    found |= {Day(day=_number(match["d"])) for match in _DAY_ALONE.finditer(text)}
    for match in _SLASHED.finditer(text):
        a, b = int(match["a"]), int(match["b"])
        found |= set(filter(_is_day, (Day(month=a, day=b), Day(month=b, day=a))))
    return found | {Day(month=m, day=d) for words, m, d in _FEASTS if words.search(text)}


def _ends(match: re.Match[str]) -> Iterator[tuple[Day, ...]]:
    if days := tuple(filter(_is_day, _days(match))):
        yield days
        if first := match["han_from"] or match["dm_from"] or match["md_from"]:
            yield tuple(filter(_is_day, (replace(day, day=_number(first)) for day in days)))


def _days(match: re.Match[str]) -> Iterator[Day]:
    if match["iso_y"]:
        yield Day(int(match["iso_y"]), int(match["iso_m"]), int(match["iso_d"]))
    elif match["ym_y"]:
        yield Day(int(match["ym_y"]), int(match["ym_m"]))
    elif match["a"]:
        year = _year(match["ab_y"])
        yield Day(year, int(match["a"]), int(match["b"]))
        yield Day(year, int(match["b"]), int(match["a"]))
    elif match["han_m"]:
        year = _year(match["han_y"]) if match["han_y"] else None
        yield Day(
            year, _number(match["han_m"]), _number(match["han_d"]) if match["han_d"] else None
        )
    elif match["year"]:
        yield Day(year=_year(match["year"]))
    elif match["day"]:
        yield Day(day=_number(match["day"]))
    else:
        yield from _worded(match)


def _worded(match: re.Match[str]) -> Iterator[Day]:
    for form in ("dm", "md"):
        if match[f"{form}_m"]:
            year = int(match[f"{form}_y"]) if match[f"{form}_y"] else None
            yield Day(year, _month(match[f"{form}_m"]), _number(match[f"{form}_d"]))
    if match["my_m"]:
        yield Day(int(match["my_y"]), _month(match["my_m"]))


def _year(written: str) -> int:
    year = _number(written)
    return year + 2000 if year < 100 else year  # noqa: PLR2004 - `26` is 2026


def _month(name: str) -> int:
    return _NAMES.index(name[:3].lower()) + 1


def _number(written: str) -> int:
    lowered = written.lower()
    if lowered[0].isdigit():
        return int(_NO_DIGIT.split(lowered, maxsplit=1)[0])
    if lowered[0].isascii():
        tens, _, ones = lowered.replace("-", " ").rpartition(" ")
        return {"twenty": 20, "thirty": 30}.get(tens, 0) + _ORDINALS[ones]
    return int(sum(20 if s == "廿" else 30 for s in written if s in "廿卅") + _han_rest(written))


def _han_rest(written: str) -> int:
    rest = written.strip("廿卅")
    return int(han_value(rest)) if rest else 0


def _is_day(day: Day) -> bool:
    if day.month is not None and not 1 <= day.month <= 12:  # noqa: PLR2004 - months
        return False
    if day.day is None:
        return day.year is None or 1000 <= day.year <= 9999  # noqa: PLR2004 - years of four digits
    try:
        date(day.year or 2024, day.month or 1, day.day)
    except ValueError:
        return False
    return True
