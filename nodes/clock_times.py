"""Times of day as they are written: `15:00`, `3 pm`, `half past three`, `下午三点半`. Pure."""

import re
from dataclasses import dataclass

from everlong.nodes.numerals import HAN, han_value, numbers, words_value

_HOUR_WORD = r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_HOUR = rf"(?:\d{{1,2}}|{_HOUR_WORD})"
_TIME = re.compile(
    r"(?<![\d:.])(?P<h>\d{1,2}):(?P<m>\d{2})(?::\d{2}(?:\.\d+)?)?(?![\d:])(?: ?[ap]\.?m\b\.?)?"
    r"|(?<![\d:.])(?P<h_12>\d{1,2})(?:[.](?P<m_12>\d{2}))? ?[ap]\.?m\b\.?"
    rf"|\b(?P<part>half|quarter|ten|five|twenty) (?P<side>past|to) (?P<h_of>{_HOUR})\b"
    rf"|\b(?P<h_oc>{_HOUR}) ?o'?clock\b"
    r"|\b(?P<word>noon|midday|midnight)\b|(?P<han_word>中午十二点|正午|午夜)"
    rf"|(?P<h_han>\d{{1,2}}|[{HAN}]{{1,3}})[点點时時](?!间|候|段|左|时|刻)"
    rf"(?:(?P<half>半)|(?P<quarter>[一三])刻|(?P<m_han>\d{{1,2}}|[{HAN}]{{1,3}})分?)?(?:钟|整)?",
    re.IGNORECASE,
)
_PARTS = {"half": 30, "quarter": 15, "ten": 10, "five": 5, "twenty": 20}


@dataclass(frozen=True)
class ClockTime:
    """A time on a clock of twelve hours, since people leave out which half of the day."""

    minutes: int


@dataclass(frozen=True)
class Timed:
    """A time in a text."""

    written: str
    begin: int
    end: int
    time: ClockTime


def clock_times(text: str) -> list[Timed]:
    """Return the times that a text writes out, in order."""
    found = [(match, _time(match)) for match in _TIME.finditer(text)]
    return [
        Timed(match[0].strip(), match.start(), match.end(), time)
        for match, time in found
        if time is not None
    ]


def clock_times_said(text: str) -> set[ClockTime]:
    """Return every time that a text may speak of: any small number may be an hour."""
    told, rest, place = clock_times(text), list[str](), 0
    for one in told:
        rest.append(text[place : one.begin])
        place = one.end
    left = numbers(" ".join([*rest, text[place:]]))
    hours = {int(number) for number in left if number == int(number) and 0 <= number <= 24}  # noqa: PLR2004 - hours
    return {one.time for one in told} | {_of(hour, 0) for hour in hours}


def _of(hour: int, minute: int) -> ClockTime:
    return ClockTime((hour * 60 + minute) % 720)


def _time(match: re.Match[str]) -> ClockTime | None:
    if match["word"] or match["han_word"]:
        return _of(12, 0)
    if match["part"]:
        by = _PARTS[match["part"].lower()]
        return _of(_hour(match["h_of"]), by if match["side"].lower() == "past" else -by)
    hour = match["h"] or match["h_12"] or match["h_oc"] or match["h_han"]
    minute = match["m"] or match["m_12"] or match["m_han"] or "0"
    minutes = 30 if match["half"] else _QUARTERS.get(match["quarter"] or "", _hour(minute))
    if _hour(hour) > 24 or minutes > 59:  # noqa: PLR2004 - no time of day
        return None
    return _of(_hour(hour), minutes)


_QUARTERS = {"一": 15, "三": 45}


def _hour(written: str) -> int:
    if written.isdigit() and written.isascii():
        return int(written)
    return int(words_value(written) if written.isascii() else han_value(written))
