"""Words such as `yesterday` and `下周三`: which days they mean, and dates for them (R40). Pure.

They mean another day when they are read later, so a fact never keeps them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from everlong.nodes import spans
from everlong.nodes.numerals import HAN

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_DAYS = {
    "the day before yesterday": -2,
    "the day after tomorrow": 2,
    "yesterday": -1,
    "last night": -1,
    **dict.fromkeys(("today", "tonight", "this morning", "this afternoon", "this evening"), 0),
    "tomorrow": 1,
    "大前天": -3,
    "前天": -2,
    "昨天": -1,
    "昨日": -1,
    "昨晚": -1,
    **dict.fromkeys(("今天", "今日", "今晚", "今早"), 0),
    **dict.fromkeys(("明天", "明日", "明晚", "明早"), 1),
    "大后天": 3,
    "后天": 2,
}
_PARTS = {
    **dict.fromkeys(("night", "tonight", "evening"), " in the evening"),
    "morning": " in the morning",
    "afternoon": " in the afternoon",
    "晚": "晚上",
    "早": "早上",
}
_YEARS = {"今年": 0, "明年": 1, "去年": -1, "后年": 2, "前年": -2}
_BACK = frozenset({"ago", "earlier", "前", "以前", "之前", "last", "past", "过去", "最近", "近"})

_BEFORE = r"(?P<before>\b(?:on|to|for|by|until|till|from|since|before|after|of|in|during|over) )?"
N = (
    r"(?P<n>\d{1,3}|an?(?: couple of)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven"
    r"|twelve|fourteen|thirty|sixty|ninety|half an?)"
)
UNIT = r"(?P<unit>day|week|fortnight|month|year)s?"
HAN_N = rf"(?P<n>\d{{1,3}}|[{HAN}半]{{1,4}})"
HAN_UNIT = r"(?P<unit>个半月|天|日|周|个?星期|个?礼拜|个月|年)"
HAN_WEEK = r"(?:周|星期|礼拜)"
_NEXT = r"(?P<which>next|last|this past|this coming|this|the coming)"
_SEASON = "(?:spring|summer|autumn|fall|winter)"
_TWICE = "(?P<which>after next|before last)"
_HAN_NEXT = "(?P<which>上{1,3}|下{1,3}|[本这])"
_STRETCH = r"(?P<way>next|coming|last|past)"
_NOT_AFTER = "(?<![以之从先今往然最提目周月年天])"


@dataclass(frozen=True)
class Meant:
    """The days that words mean, and how to write them."""

    begin: int
    """Where the words are in the text."""
    end: int
    first: date
    last: date
    written: str


Found = re.Match[str]
Meaning = tuple[spans.Span, str]


def _day(found: Found, base: date) -> Meaning:
    word = found["day"].lower()
    day = base + timedelta(days=_DAYS[word])
    part = _PARTS.get(word.split(" ")[-1] if word.isascii() else word[-1], "")
    return (day, day), _dated(found, f"{day}{part}")


def _weekday(found: Found, base: date) -> Meaning:
    """Resolve by calendar weeks; `next Friday` is that of the next week."""
    name = found["weekday"].lower().replace("天", "日")
    number = WEEKDAYS.index(name) if name.isascii() else "一二三四五六日".index(name)
    day = spans.week(base, _steps(found))[0] + timedelta(days=number)
    return (day, day), _dated(found, str(day))


def _week(found: Found, base: date) -> Meaning:
    first, last = spans.week(base, _steps(found))
    written = _either(found, f"the week of {first}", f"{first} 那一周")
    return (first, last), _dated(found, written, "in ")


def _weekend(found: Found, base: date) -> Meaning:
    saturday, sunday = spans.weekend(base, _steps(found))
    written = _either(found, f"the weekend of {saturday}", f"{saturday} 那个周末")
    return (saturday, sunday), _dated(found, written)


def _month(found: Found, base: date) -> Meaning:
    first, last = spans.month(base, _steps(found))
    return (first, last), _dated(found, _of_month(found, first), "in ")


def _quarter(found: Found, base: date) -> Meaning:
    first, last = spans.quarter(base, _steps(found))
    number = (first.month + 2) // 3
    written = _either(found, f"Q{number} of {first.year}", f"{first.year}年第{number}季度")
    return (first, last), _dated(found, written, "in ")


def _year(found: Found, base: date) -> Meaning:
    by = _YEARS[found["year"]] if found["year"] in _YEARS else _steps(found)
    first, last = spans.year(base, by)
    return (first, last), _dated(found, _either(found, str(first.year), f"{first.year}年"), "in ")


def _season(found: Found, base: date) -> Meaning:
    """Resolve `last summer`, of this year or the one before, only as exactly as that says."""
    by = _steps(found)
    span = spans.year(base, min(by, 0))[0], spans.year(base, max(by, 0))[1]
    return span, f"{found[0]} (said on {base})"


def _distance(found: Found, base: date) -> Meaning:
    """Resolve `two weeks ago`, by months and years only as exactly as that says.

    `in two weeks` and `三天后` may be a rule that tells no day: they keep their words, and get the
    day from which they count.
    """
    number, unit = spans.count_of(found["n"]), found["unit"].lower()
    way = (found["way"] or "").lower()
    day = spans.moved(base, -number if way in _BACK else number, unit)
    if unit in ("year", "年") and number > 1:
        span, about = spans.year(day, 0), str(day.year)
    elif unit in ("month", "year", "个月", "年"):
        span, about = spans.month(day, 0), f"{day:%Y-%m}"
    else:
        span, about = (day, day), ""
    if way not in ("ago", "earlier", "from now"):
        return span, _either(found, f"{found[0]} (said on {base})", f"{found[0]}（{base} 说）")
    return span, _dated(found, about, "in ") if about else _dated(found, str(day))


def _stretch(found: Found, base: date) -> Meaning:
    """Resolve `for the next two weeks` and `未来三天`: from the day itself."""
    number, unit = spans.count_of(found["n"]), found["unit"].lower()
    back = found["way"].lower() in _BACK
    first, last = sorted((base, spans.moved(base, -number if back else number, unit)))
    return (first, last), _either(found, f"from {first} to {last}", f"{first} 至 {last} ")


_MEANINGS: tuple[tuple[str, Callable[[Found, date], Meaning]], ...] = (
    (rf"{_BEFORE}\b(?P<day>{'|'.join(w for w in _DAYS if w.isascii())})\b(?!-)", _day),
    (rf"(?P<day>大前天|{_NOT_AFTER}前天|昨[天日晚]|今[天日晚早](?!头条)|明[天日晚早])", _day),
    (rf"(?P<day>大后天|{_NOT_AFTER}后天(?!性))", _day),
    (rf"{_BEFORE}\b{_NEXT} (?P<weekday>{'|'.join(WEEKDAYS)})\b(?! of)", _weekday),
    (rf"{_HAN_NEXT}个?{HAN_WEEK}(?P<weekday>[一二三四五六日天])", _weekday),
    (rf"{_BEFORE}(?:\bthe )?\b{_NEXT} weekend\b", _weekend),
    (rf"{_HAN_NEXT}个?{HAN_WEEK}末", _weekend),
    (
        rf"(?:\b(?:for|over|during|in|within) )?(?:\bthe )?\b{_STRETCH} {N} {UNIT}\b(?! of)",
        _stretch,
    ),
    (rf"(?P<way>接下来|未来|今后|往后|过去|最近|近)的?{HAN_N}{HAN_UNIT}[内里]?", _stretch),
    (rf"{_BEFORE}\b{_NEXT} week\b(?! of)", _week),
    (rf"{_BEFORE}\b(?:the )?week {_TWICE}\b", _week),
    (rf"{_BEFORE}\b(?:the )?month {_TWICE}\b", _month),
    (rf"{_BEFORE}\b(?:the )?(?P<year>year) {_TWICE}\b", _year),
    (rf"{_HAN_NEXT}一?个?{HAN_WEEK}(?![一二三四五六日天末])", _week),
    (rf"{_BEFORE}\b{_NEXT} month\b(?! of)", _month),
    (rf"{_HAN_NEXT}一?个?月(?!度)", _month),
    (rf"{_BEFORE}\b{_NEXT} quarter\b(?! of)", _quarter),
    (rf"{_HAN_NEXT}一?个?季度", _quarter),
    (rf"{_BEFORE}\b{_NEXT} (?P<year>year)\b", _year),
    (rf"(?P<year>[今明去]年|{_NOT_AFTER}[前后]年)", _year),
    (rf"\b{_NEXT} {_SEASON}\b", _season),
    (rf"\bin {N} {UNIT}(?P<way>'s? time)?\b(?! (?:or|of|per|a)\b)", _distance),
    (rf"(?P<before>\bfrom )?\b{N} {UNIT} (?P<way>ago|earlier|from now)\b", _distance),
    (
        rf"(?<![每第\d{HAN}]){HAN_N}{HAN_UNIT}(?P<way>以后|之后|以前|之前|后|前)(?![一二三四五六七八九十]?[名位个])",
        _distance,
    ),
)
_RULES = [(re.compile(pattern, re.IGNORECASE), meaning) for pattern, meaning in _MEANINGS]
_TITLE = re.compile("《[^《》]{0,60}》")


def meanings(text: str, base: date) -> list[Meant]:
    """Return what the words mean that name days by their distance from `base`, in order."""
    found: list[Meant] = []
    taken = bytearray(len(text))
    for title in _TITLE.finditer(text):
        taken[title.start() : title.end()] = b"\1" * len(title[0])
    for pattern, meaning in _RULES:
        for match in pattern.finditer(text):
            begin, end = match.span()
            if not any(taken[begin:end]):
                taken[begin:end] = b"\1" * (end - begin)
                (first, last), written = meaning(match, base)
                found.append(Meant(begin, end, first, last, written))
    return sorted(found, key=lambda one: one.begin)


def relative_words(text: str) -> list[str]:
    """Return the words of a text that mean another day when they are read later."""
    return [text[one.begin : one.end].strip() for one in meanings(text, date(2024, 1, 1))]


def dated(text: str, base: date | None) -> str:
    """Write the date for each word that names a day by its distance from `base`.

    `base` is the day on the clock of whoever spoke; the text stays as it is without one.
    """
    for meant in reversed(meanings(text, base)) if base else ():
        written = meant.written
        if meant.begin == 0 and text[:1].isupper():
            written = written[:1].upper() + written[1:]
        if written[-1].isdigit() and text[meant.end : meant.end + 1].isdigit():
            written += " "
        text = text[: meant.begin] + written + text[meant.end :]
    return text


def _steps(found: Found) -> int:
    which = found["which"].lower()
    if which[0] in "上下":
        return len(which) if which[0] == "下" else -len(which)
    steps = {"next": 1, "after next": 2, "last": -1, "this past": -1, "before last": -2}
    return steps.get(which, 0)


def _either(found: Found, english: str, chinese: str) -> str:
    return english if found[0].isascii() else chinese


def _of_month(found: Found, day: date) -> str:
    return _either(found, f"{day:%Y-%m}", f"{day.year}年{day.month}月")


def _dated(found: Found, written: str, usual: str = "on ") -> str:
    """Put the word that stood before, or the usual one, before an English date."""
    if not found[0].isascii():
        return written
    owns = found.string.startswith("'s", found.end())
    return f"{found.groupdict().get('before') or ('' if owns else usual)}{written}"
