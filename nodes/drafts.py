"""The facts that a flush's answer lists, and the messages by which each is marked (R44). Pure.

Weak models leave the marks out, spell them in their own way, and name messages that there are not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from everlong.stores.entries import line_of

NO_REPLY = "NO_REPLY"
MOST_IN_RANGE = 50
_ROLE = r"(?:users?|assistants?|tools?|messages?|msgs?|sources?|from|用户|助手|消息|来源)"
_NUMBER = rf"(?:{_ROLE}\s*[:：#]?\s*)?#?\d{{1,4}}(?:,? \d{{4}}-\d{{2}}-\d{{2}})?"
_LIST = rf"{_NUMBER}(?:\s*(?:[,，、;；&–-]|and|to|到|和)\s*{_NUMBER})*"
_MARK = (
    rf"(?:[\[【]\s*(?:{_ROLE}\s*[:：]?\s*)?(?P<in>{_LIST})\s*[\]】]"
    rf"|[(（]\s*(?P<role>{_ROLE}\s*[:：#]?\s*{_LIST})\s*[)）])"
)
_TRAILING = re.compile(rf"\s*{_MARK}\s*(?P<stop>[.。;；]?)\s*$", re.IGNORECASE)
_LEADING = re.compile(rf"^\s*{_MARK}\s*[:：-]?\s*(?=\S)", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_RANGE = re.compile(r"(?P<first>\d{1,4})(?:\s*(?:-|–|to|到)\s*#?(?P<last>\d{1,4}))?")
_BULLET = re.compile(r"^\s*(?:[-*•·–—+]|\d{1,3}[.)、])\s*")
_ONLY_EMPHASIS = re.compile(r"[\s*_-]*")


@dataclass(frozen=True)
class Draft:
    """A fact as the model wrote it."""

    text: str
    numbers: tuple[int, ...] = ()
    """Of the messages that it is marked with, as far as there are such."""


def drafts_in(answer: str, messages: int) -> list[Draft]:
    """Return the facts of an answer, each once; none for NO_REPLY, prose and headings.

    A fact is an item of a list, or a line that ends with a mark.
    """
    found: dict[str, Draft] = {}
    for line in answer.splitlines():
        if NO_REPLY in line:
            continue
        draft = _draft(line, messages)
        if draft is not None and (_BULLET.match(line) or draft.numbers):
            found.setdefault(draft.text, draft)
    return list(found.values())


def _draft(line: str, messages: int) -> Draft | None:
    text = line_of(_BULLET.sub("", line, count=1))
    marked: list[int] = []
    while (mark := _TRAILING.search(text)) and _is_mark(mark, messages):
        marked = [*_numbers(mark), *marked]
        text = text[: mark.start()] + mark["stop"]
    while (mark := _LEADING.search(text)) and _is_mark(mark, messages):
        marked += _numbers(mark)
        text = text[mark.end() :]
    text = text.strip()
    if not any(map(str.isalnum, text)) or _ONLY_EMPHASIS.fullmatch(text):
        return None
    return Draft(text, tuple(dict.fromkeys(n for n in marked if 0 < n <= messages)))


def _is_mark(mark: re.Match[str], messages: int) -> bool:
    """Tell a mark from text in brackets, such as a year."""
    numbers = list(_numbers(mark))
    return any(0 < n <= messages for n in numbers) or all(n < 1_000 for n in numbers)  # noqa: PLR2004 - no year


def _numbers(mark: re.Match[str]) -> Iterator[int]:
    for found in _RANGE.finditer(_DATE.sub("", mark["in"] or mark["role"])):
        first = int(found["first"])
        last = int(found["last"] or first)
        yield from (
            range(first, min(last, first + MOST_IN_RANGE) + 1) if last >= first else (first, last)
        )
