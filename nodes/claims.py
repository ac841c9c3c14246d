"""What a text states that can be right or wrong by one character (R44). Pure.

Dates, times, numbers and identifiers.
"""
# ruff: noqa: SIM905 - a text of words is easier to read

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from everlong.nodes.clock_times import ClockTime, clock_times
from everlong.nodes.currencies import Currency, currencies
from everlong.nodes.days import Day, dates
from everlong.nodes.identifiers import identifiers
from everlong.nodes.numerals import (
    DIGITS,
    HAN,
    ORDINALS,
    WORDS,
    digits_value,
    han_value,
    value_of,
    words_value,
)
from everlong.nodes.periods import Period, periods

GONE = " \u2028 "
"""In place of what was read already."""
MOST_OF_A_WORD = 14
"""Letters of a name such as `AgentScope` that is a word; a longer one is a class."""
_SIGNS = tuple("$€£¥₹₩₽")
_QUOTES = "\"“”「」『』《》`'"
_FIGURE = re.compile(r"[\d.,'%‰%\s$€£¥¥₹₩₽-]+|[A-Z]{1,3}[$€£¥]?\s?[\d.,]+")
_PARTED = re.compile(r"\d[.-]\d+[.-]\d|^\d[\d -]{6,}$")
_AMOUNT = re.compile(
    r"(?:US|HK|A|C|S)?[$€£¥₹₩₽]|(?:USD|EUR|GBP|CNY|RMB|JPY|CHF|HKD|AUD|CAD|SGD|INR|KRW|BRL)"
    r"|euros?|dollars?|pounds?|yuan|yen|(?:美|欧|日|港)?元|块钱?|英镑|港币|人民币|[百千万亿]|[%‰\s.,']"
    r"|[mb]illion",
    re.IGNORECASE,
)
_PRODUCT = re.compile(r"[A-Z][A-Za-z]+\.(?:js|io|ai|NET)")
_PHONE = re.compile(
    r"(?<![\w.,])(?:\+\d{1,3}[ .-]?)?\(?\d{2,5}\)?(?:[ .-]\d{2,8}){1,5}(?!\w|[.,]\d)"
)
_PHONE_DIGITS = 7
_GROUPED = re.compile(r"\d{1,3}(?:[ .]\d{3})+|\d+(?:\.\d+)?")
_SEAT = re.compile(r"(?<![\w.])\d{1,4}[A-F](?![\w])")
_TAGGED = re.compile(r"(?<![A-Za-z0-9_])(?P<letters>[A-Za-z]{1,12})-?(?P<digits>\d{1,6})(?![\w])")
_NO_TAG = re.compile(r"usd|eur|gbp|cny|rmb|jpy|no|nr|q", re.IGNORECASE)
_WORD_UNIT = re.compile(
    r"[ -](?:days?|weeks?|months?|years?|hours?|minutes?|percent|per cent|dollars?|euros?|pounds?"
    r"|yuan|kg|kilos?|tons?|tonnes?|boxes|units?|pieces?|pallets?|containers?|people|employees)\b",
    re.IGNORECASE,
)
_HAN_UNIT = (
    r"(?:天|周|个?星期|个?礼拜|个?月|年|个?小时|分钟|元|块|美元|欧元"
    r"|箱|吨|公斤|千克|台|件|成|折|楼|层|岁)"
)
_HAN_CLAIM = re.compile(
    rf"(?:百分之(?P<share>[{HAN}]{{1,6}}))|(?P<number>[{HAN}]{{1,12}})(?P<unit>{_HAN_UNIT})?"
)
_HAN_IDIOMS = frozenset(
    "万一 千万 一一 百万 十万 十分 万万 千百 一千零一 九九 三三两两 一二 两三 三四 四五 五六 六七"
    " 七八 八九 三五 五一 十一 一百一".split()
)


@dataclass(frozen=True)
class Claim:
    """A date, time, number or identifier that a text states."""

    written: str
    means: tuple[Day, ...] | ClockTime | Period | Currency | Decimal | str


def claims(text: str) -> list[Claim]:
    """Return what a text states that can be right or wrong by one character, in reading order."""
    rest = unicodedata.normalize("NFKC", text)
    found: list[tuple[int, Claim]] = []
    for dated in reversed(dates(rest)):
        found.append((dated.begin, Claim(dated.written, dated.days)))
        rest = _without(rest, dated.begin, dated.end)
    for timed in reversed(clock_times(rest)):
        found.append((timed.begin, Claim(timed.written, timed.time)))
        rest = _without(rest, timed.begin, timed.end)
    for named in reversed(periods(rest)):
        found.append((named.begin, Claim(named.written, named.period)))
        rest = _without(rest, named.begin, named.end)
    found += [(place, Claim(sign, which)) for place, sign, which in currencies(rest)]
    for phone in _PHONE.finditer(rest):
        digits = sum(map(str.isdigit, phone[0]))
        if digits >= _PHONE_DIGITS and not _GROUPED.fullmatch(phone[0]):
            found.append((phone.start(), Claim(phone[0], phone[0])))
            rest = _without(rest, *phone.span())
    for name in _names(rest):
        found.append((rest.find(name), Claim(name, name)))
        rest = rest.replace(name, " " * len(name), 1)
    found += [(place, claim) for place, claim in _figures(rest)]
    return list(dict.fromkeys(claim for _, claim in sorted(found, key=lambda one: one[0])))


def without_dates(text: str) -> str:
    """Return a text without its dates, so that `2026-10-30` does not say 30."""
    parts: list[str] = []
    place = 0
    for one in dates(text):
        if all(day.month and day.day for day in one.days):
            parts.append(text[place : one.begin])
            place = one.end
    return GONE.join([*parts, text[place:]])


def _without(text: str, begin: int, end: int) -> str:
    return text[:begin] + GONE.ljust(end - begin)[: end - begin] + text[end:]


def _names(text: str) -> Iterator[str]:
    """Return the identifiers that are no mere figures and no words such as `GitHub`."""
    parts = [part.strip() for name in identifiers(text) for part in name.split("\u2028")]
    for name in sorted(filter(None, parts), key=len, reverse=True):
        if _FIGURE.fullmatch(name) and not _PARTED.search(name):
            continue
        if not re.search(r"\d|[^\W\d_]", name) or DIGITS.fullmatch(name):
            continue
        place = text.find(name)
        quoted = place > 0 and text[place - 1] in _QUOTES
        is_word = (
            not quoted
            and name.isascii()
            and name.isalpha()
            and not name.isupper()
            and len(name) <= MOST_OF_A_WORD
        )
        if not is_word and not _PRODUCT.fullmatch(name) and not _is_amount(name):
            yield name


def _is_amount(name: str) -> bool:
    """Tell `1200 USD`, `3万元`, `一千二百元` and `10 pm` from `PX-4471`."""
    bare = _AMOUNT.sub("", name)
    return not bare or bare.isdigit() or all(sign in HAN for sign in bare)


def _figures(text: str) -> Iterator[tuple[int, Claim]]:
    """Return the numbers of a text, with their places."""
    for match in _SEAT.finditer(text):
        yield match.start(), Claim(match[0], match[0])
        text = _without(text, *match.span())
    for match in _TAGGED.finditer(text):
        if not _NO_TAG.fullmatch(match["letters"]):
            yield match.start(), Claim(match[0], match[0])
            text = text.replace(match[0], " " * len(match[0]), 1)
    for match in DIGITS.finditer(text):
        if match.start() == 0 or not re.match(r"[A-Za-z0-9_]", text[match.start() - 1]):
            priced = text[: match.start()].rstrip().endswith(_SIGNS)
            value = digits_value(match) if match["times"] != "m" or priced else value_of(match[1])
            yield match.start(), Claim(match[0].strip(), value)
    for match in WORDS.finditer(text):
        value = words_value(match[0])
        counts = match[0].lower() not in ORDINALS and _WORD_UNIT.match(text, match.end())
        if value > 12 or counts:  # noqa: PLR2004 - smaller ones are mere words
            yield match.start(), Claim(match[0], value)
    yield from _han_figures(text)


def _han_figures(text: str) -> Iterator[tuple[int, Claim]]:
    for match in _HAN_CLAIM.finditer(text):
        written = match["share"] or match["number"]
        value = han_value(written)
        plain = written in _HAN_IDIOMS or value < (2 if match["unit"] else 3)  # 一次, 两人
        if match["share"] or (not plain and (match["unit"] or _is_counted(written))):
            yield match.start(), Claim(match[0], value)


def _is_counted(written: str) -> bool:
    """Tell `一百二十` and `二〇二六` from signs that mean no number."""
    return (
        len(written) > 1
        and any(s in "十百千万亿〇零" for s in written)
        and written[0] in HAN[:12] + "十"
    )
