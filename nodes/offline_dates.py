"""Dates instead of words such as `yesterday`, which mean another day when they are read later."""

import re
from datetime import date, timedelta

_DAYS = {
    "the day before yesterday": -2,
    "the day after tomorrow": 2,
    "yesterday": -1,
    "today": 0,
    "tonight": 0,
    "tomorrow": 1,
    "大前天": -3,
    "前天": -2,
    "昨天": -1,
    "昨日": -1,
    "昨晚": -1,
    "今天": 0,
    "今日": 0,
    "今晚": 0,
    "今早": 0,
    "明天": 1,
    "明日": 1,
    "明晚": 1,
    "明早": 1,
    "大后天": 3,
    "后天": 2,
}
_EVENING = {"晚": "晚上", "早": "早上"}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_HAN_WEEKDAYS = "一二三四五六日"
_BEFORE = r"(?P<before>\b(?:on|to|for|by|until|till|from|since|before|after|of) )?"
_EN, _ZH = ([word for word in _DAYS if word.isascii() is ascii_] for ascii_ in (True, False))
_DAY = re.compile(
    rf"{_BEFORE}\b(?P<en>{'|'.join(_EN)})\b|(?P<zh>{'|'.join(sorted(_ZH, key=len, reverse=True))})",
    re.IGNORECASE,
)
_WEEKDAY = re.compile(
    rf"{_BEFORE}\b(?P<which>next|last|this) (?P<en>{'|'.join(_WEEKDAYS)})\b"
    r"|(?P<week>[上下本这])个?(?:周|星期|礼拜)(?P<zh>[一二三四五六日天])",
    re.IGNORECASE,
)
_WEEK = re.compile(
    r"\b(?P<which>next|last|this) week\b|(?P<week>[上下本这])个?(?:周|星期|礼拜)", re.IGNORECASE
)


def dated(text: str, today: str) -> str:
    """Write the date for each word that names a day or a week by its distance from `today`.

    `today` is an ISO date, in the time zone of whoever spoke; the text stays as it is without one.
    """
    if not today:
        return text
    day = date.fromisoformat(today)
    text = _DAY.sub(lambda found: _day(found, day), text)
    text = _WEEKDAY.sub(lambda found: _weekday(found, day), text)
    return _WEEK.sub(lambda found: _week(found, day), text)


def _day(found: re.Match[str], today: date) -> str:
    word = found["zh"] or found["en"].lower()
    written = (today + timedelta(days=_DAYS[word])).isoformat()
    if found["zh"]:
        return written + _EVENING.get(word[-1], "")
    evening = " in the evening" if word == "tonight" else ""
    return f"{found['before'] or 'on '}{written}{evening}"


def _weekday(found: re.Match[str], today: date) -> str:
    """Resolve by calendar weeks, which begin on Monday; `next Friday` is that of the next week."""
    monday = today - timedelta(days=today.weekday())
    if found["zh"]:
        number = _HAN_WEEKDAYS.index(found["zh"].replace("天", "日"))
    else:
        number = _WEEKDAYS.index(found["en"].lower())
    written = (monday + timedelta(days=number + 7 * _weeks(found))).isoformat()
    return written if found["zh"] else f"{found['before'] or 'on '}{written}"


def _week(found: re.Match[str], today: date) -> str:
    monday = today - timedelta(days=today.weekday()) + timedelta(days=7 * _weeks(found))
    written = monday.isoformat()
    return f"{written} 那一周" if found["week"] else f"in the week of {written}"


def _weeks(found: re.Match[str]) -> int:
    which = (found["week"] or found["which"]).lower()
    return {"next": 1, "下": 1, "last": -1, "上": -1}.get(which, 0)
