"""A22: words for days become dates, and what is a rule and no day keeps its words."""

from datetime import date

import pytest

from everlong.nodes.relative_days import dated, relative_words
from everlong.nodes.spans_said import spans_said

MONDAY = date(2026, 3, 9)


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("I moved my dentist visit to tomorrow.", "I moved my dentist visit to 2026-03-10."),
        ("Tomorrow I fly", "On 2026-03-10 I fly"),
        ("last night we agreed", "on 2026-03-08 in the evening we agreed"),
        ("this morning", "on 2026-03-09 in the morning"),
        ("tomorrow's meeting", "2026-03-10's meeting"),
        ("this coming Friday", "on 2026-03-13"),
        ("this weekend", "on the weekend of 2026-03-14"),
        ("for the next two weeks, drafts only", "from 2026-03-09 to 2026-03-23, drafts only"),
        ("Next month we move", "In 2026-04 we move"),
        ("by next year", "by 2027"),
        ("next year's budget", "2027's budget"),
        ("next quarter", "in Q2 of 2026"),
        ("10 days ago, a month ago", "on 2026-02-27, in 2026-02"),
        ("two weeks from now", "on 2026-03-23"),
        ("ten years ago", "in 2016"),
        ("the week after next", "in the week of 2026-03-23"),
        ("by the month before last", "by 2026-01"),
        ("by the end of next week", "by the end of the week of 2026-03-16"),
        ("this past Friday", "on 2026-03-06"),
        ("for tomorrow's opening", "for 2026-03-10's opening"),
        ("last summer", "last summer (said on 2026-03-09)"),
        ("下下周三交货，上上个月签的", "2026-03-25交货，2026年1月签的"),
        ("下周三14:30开会", "2026-03-18 14:30开会"),
        ("delivers in two weeks", "delivers in two weeks (said on 2026-03-09)"),
        ("我后天去北京", "我2026-03-11去北京"),
        ("昨晚定的", "2026-03-08晚上定的"),
        ("上周五签的", "2026-03-06签的"),
        ("接下来两周内不发邮件", "2026-03-09 至 2026-03-23 不发邮件"),
        ("下个月搬家", "2026年4月搬家"),
        ("去年搬的家，今年的预算", "2025年搬的家，2026年的预算"),
        ("收货三天后付款", "收货三天后（2026-03-09 说）付款"),
        ("本季度，下季度", "2026年第1季度，2026年第2季度"),
    ],
)
def test_words_for_days_become_dates(said: str, written: str) -> None:
    assert dated(said, MONDAY) == written
    assert relative_words(said)
    assert dated(said, None) == said


@pytest.mark.parametrize(
    "said",
    [
        "every Friday",
        "the last week of March",
        "the last Friday of every month",
        "pay within 30 days",
        "以后天天跑步",
        "每周三例会",
        "前三名",
        "第三天",
        "a day or two",
        "today-only offers",
        "2026-03-09",
        "三个月",
        "the last two weeks of May",
        "5月以后",
        "看《明天会更好》",
        "后天性免疫",
    ],
)
def test_what_names_no_day_keeps_its_words(said: str) -> None:
    assert dated(said, MONDAY) == said
    assert relative_words(said) == []


def test_a_year_ends_and_a_leap_day_passes() -> None:
    assert dated("tomorrow", date(2026, 12, 31)) == "on 2027-01-01"
    assert dated("next month", date(2026, 12, 31)) == "in 2027-01"
    assert dated("a year ago", date(2028, 2, 29)) == "in 2027-02"
    assert dated("明天", date(2028, 2, 28)) == "2028-02-29"


def test_numbers_beyond_the_calendar_do_no_harm() -> None:
    assert list(spans_said("in 999 years, 999 weeks ago, 9999 days, 九百亿年", MONDAY))
    assert dated("in 999 years", MONDAY).startswith("in 999 years")
    assert dated("900 years ago", MONDAY) == "in 1126"
