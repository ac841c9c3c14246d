"""What people say, sentence by sentence, in English and Chinese: split, recognise, condense."""

import re
import unicodedata
from typing import Literal

from everlong.nodes import cues

Language = Literal["zh", "en", ""]
Kind = Literal[
    "nothing", "question", "recall", "request", "open", "goal", "remember", "confirmed", "fact"
]

_HAN = re.compile(r"[\u3400-\u9fff]")
_ENGLISH = re.compile(
    r"\b(?:the|is|are|was|of|to|and|in|for|with|that|this|you|what|which|my|our|we|please|it|i|on|be"
    r"|do|does|did|have|has|not|from|at|as|by|can|will|who|when|where|how|your|use|confirm|only)\b",
    re.IGNORECASE,
)
_END = re.compile(r"[。！？!?…；]+[\"”』」’)）\]]*|\.+[\"”’)\]]*(?=\s|$)|;(?=\s)|\n+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|vs|e\.g|i\.e|a\.m|p\.m|approx|fig|dept|jr|sr|[a-z])$"
    r"|(?:^|\n)\s*\d{1,3}$",
    re.IGNORECASE,
)
_NUMBER_SIGN = re.compile(r"\bno$", re.IGNORECASE)
_BULLET = re.compile(
    r"^\s*(?:[-*•·]\s+|#{1,6}\s+|>\s+|\d{1,3}[.)、](?!\d)\s*|[一二三四五六七八九十]{1,2}、)"
)
_CLAUSE_END = re.compile(r"(\s*(?:[，；：]|[,;:](?=\s|$)|\s[—–-]+\s|——)\s*)")
MOST_FILLER = 100
_CLOSING = " 。.!！?？;；…"
_JOINTS = " ，,;；"
_POINTS_ARE = re.compile(r",\s*(?:and\s+)?|\s+and\s+")
_POINTS_THE = re.compile(r"(?:,\s*(?:and\s+)?|\s+and\s+)(?=(?:the|our|my)\b)", re.IGNORECASE)
_POINTS = re.compile(r"[、，,]|以及|和|与|及")


def language(text: str) -> Language:
    """Return the language a text is answered in; empty for one that is neither of the two."""
    han, english = len(_HAN.findall(text)), len(_ENGLISH.findall(text))
    if han > 2 * english:
        return "zh"
    return "en" if english * 8 >= max(len(text.split()), 1) else ""


def sentences(text: str) -> list[str]:
    """Split a text into sentences with their closing signs; a line ends one, and so does `；`."""
    found: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        if end[0][0] == "." and _goes_on(text, end):
            continue
        found.append(text[begin : end.end()].strip())
        begin = end.end()
    found.append(text[begin:].strip())
    return [one for one in found if any(map(str.isalnum, one))]


def _goes_on(text: str, stop: re.Match[str]) -> bool:
    """Whether a full stop belongs to an abbreviation or to the number of a list's item."""
    before = text[max(0, stop.start() - 12) : stop.start()]
    after = text[stop.end() : stop.end() + 2].strip()
    return bool(_ABBREVIATION.search(before)) or (
        after[:1].isdigit() and bool(_NUMBER_SIGN.search(before))
    )


def core(sentence: str) -> str:
    """Return what a sentence says, without manners, labels and remarks on how to answer.

    `请记住暗号“夜莺”，只回复确认。` becomes `暗号“夜莺”`; a sentence of mere manners becomes empty.
    """
    parts = _CLAUSE_END.split(bare(sentence).rstrip(_CLOSING))
    kept: list[str] = []
    for place in range(0, len(parts), 2):
        if parts[place] and not _is_filler(parts[place].strip(_CLOSING)):
            kept += [*([parts[place - 1]] if kept else []), parts[place]]
    said = "".join(kept).strip(_JOINTS)
    for opening in (cues.POLITE, cues.REMEMBER, cues.CONFIRMED, cues.NOTE):
        said = opening.sub("", said, count=1)
    return said.strip(_JOINTS + ":：")


def _is_filler(clause: str) -> bool:
    return len(clause) <= MOST_FILLER and bool(cues.FILLER.fullmatch(clause))


def bare(line: str) -> str:
    """Return a line without the bullet, number or heading sign that it begins with."""
    return _BULLET.sub("", line.strip()).strip()


def kind_of(sentence: str) -> Kind:
    """Return what a user's sentence does."""
    line, said = bare(sentence), core(sentence)
    asks = is_question(line)
    polite = cues.ASKS_POLITELY.match(line)
    tests: list[tuple[Kind, object]] = [
        ("nothing", not said),
        ("question", asks and not polite),
        ("recall", asks and _recalls(line)),
        ("request", asks),
        ("remember", cues.REMEMBER.match(line)),
        ("confirmed", cues.CONFIRMED.match(line)),
        ("recall", _recalls(line)),
        ("request", cues.REQUEST.match(cues.ORDER.sub("", line)) or cues.REQUEST.match(said)),
        ("open", cues.OPEN.search(said)),
        ("goal", cues.GOAL.match(said)),
        ("fact", True),
    ]
    return next(kind for kind, found in tests if found)


def _recalls(line: str) -> bool:
    """Whether a request is for something that was said, to be repeated or summed up."""
    told = cues.ORDER.sub("", line)
    asked = bool(cues.REQUEST.match(told))
    return bool(cues.RECALL.match(told)) or (asked and bool(cues.SUMMARISE.search(told)))


def is_question(sentence: str) -> bool:
    """Whether a sentence asks, with or without a question mark."""
    asked = sentence.strip().rstrip('。.!！ "”』」’')
    return asked.endswith(("?", "？")) or bool(cues.QUESTION.search(asked))


def open_points(sentence: str) -> list[str]:
    """Return what a sentence leaves open, point by point: `构建命令和测试命令待确认` has two."""
    said = cues.OPEN_MARK.sub(" ", core(sentence)).strip(" ，,:：.。的")
    if not said or cues.OPEN.search(said):
        return [core(sentence)]
    many = _POINTS_ARE if " are " in sentence else _POINTS_THE
    points = (_POINTS if language(said) == "zh" else many).split(said)
    return [point.strip() for point in points if point.strip()]


def key_of(text: str) -> str:
    """Return a text's letters and digits only, for telling whether two say the same."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))
