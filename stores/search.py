"""Rank texts by words: Chinese and English, identifiers in any spelling; no index needed.

An identifier is found however its parts are joined: `SO-2026-17`, `SO2026 17` and `so202617` are
one. What stands in quotation marks is looked for as it is written, and goes before all else.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = rf"[^\W_{_HAN}]"
_IS_HAN = re.compile(f"[{_HAN}]")
_UNIT = re.compile(rf"(?P<han>[{_HAN}]+)|{_LETTER}+(?:[-_./:@#+]+{_LETTER}+)*")
_JOINTS = r"-_./:,@#+"
_SPACED = re.compile(rf"{_LETTER}{{1,12}}(?: (?=[^ ]*\d){_LETTER}{{1,12}})+")
"""A name that may be an identifier in parts, such as `MSKU 703123`."""
_BETWEEN = re.compile(r"[\W_]+")
_QUOTED = re.compile('["“”„«]([^"“”„«»]+)["”“»]|「([^」]+)」|『([^』]+)』')
LOOSE_CHARS = 5
"""A name of so many letters or digits may be spelled with signs between them."""
VERBATIM, ALL_WORDS, SOME_WORDS = 2, 1, 0
Count = Callable[[str], int]


def terms_of(query: str) -> set[str]:
    """Return the terms that a query asks for."""
    return set(_terms(query))


def closeness(text: str, query: str) -> int:
    """Return how near a text comes to a query: `VERBATIM`, `ALL_WORDS` or `SOME_WORDS`.

    Verbatim: it holds each quoted phrase, or the whole query where nothing is quoted.
    """
    return _nearness(query)(text)


@lru_cache(maxsize=64)
def _nearness(query: str) -> Callable[[str], int]:
    phrases = phrases_of(query)
    units = [_said(found[0]) for found in _UNIT.finditer(_folded(query))]

    def near(text: str) -> int:
        spaced = _spaced(_folded(text))
        if all(phrase in spaced for phrase in phrases):
            return VERBATIM
        return ALL_WORDS if units and all(is_said(spaced) for is_said in units) else SOME_WORDS

    return near


def phrases_of(query: str) -> list[str]:
    """Return what a query wants word for word, folded: what is quoted, else all of it."""
    folded = _folded(query)
    quoted = [next(filter(None, found.groups())) for found in _QUOTED.finditer(folded)]
    return [spaced for one in quoted or [folded] if (spaced := _spaced(one))]


def first_place(text: str, query: str) -> int:
    """Return where in a text what is asked begins: a phrase, else the longest word; 0: nowhere."""
    folded = text.lower()
    words = sorted(terms_of(query), key=lambda term: (-len(term), term))
    for wanted in (*phrases_of(query), *words):
        if (at := folded.find(wanted)) >= 0:
            return at
        if found := _pattern(wanted).search(folded):
            return found.start()
    return 0


def places_of(text: str, query: str, most: int) -> list[int]:
    """Return where a long text holds what is asked: its phrases and its rarest word, in order.

    At most so many places of each. It costs a look at the text for each word, no more.
    """
    folded = text.lower()
    found: set[int] = set()
    for phrase in phrases_of(query):
        found |= {one.start() for one in islice(re.finditer(re.escape(phrase), folded), most)}
    closed = _closed(folded)
    counted = [(max(folded.count(term), closed.count(term)), term) for term in terms_of(query)]
    for count, term in sorted(counted):
        rarest = islice(_pattern(term).finditer(folded), most) if count else ()
        if places := {one.start() for one in rarest}:
            found |= places
            break
    return sorted(found)


def weight(text: str, query: str) -> float:
    """Return how much of what is asked a text holds: longer words say more."""
    folded = _folded(text)
    return float(sum(len(term) for term in terms_of(query) if _counter(term)(folded)))


def _said(unit: str) -> Callable[[str], bool]:
    """Return what tells whether a folded text holds a word, or an identifier whole or in parts."""
    joined = _BETWEEN.sub("", unit)
    whole = _counter(joined)
    parts = [_counter(one) for one in _terms(unit) if one not in (unit, joined)]
    return lambda text: bool(whole(text)) or (bool(parts) and all(one(text) for one in parts))


def _counter(term: str) -> Count:
    """Return what counts a term in a folded text; its pattern is made where it is needed."""
    if _IS_HAN.match(term):
        return lambda text: text.count(term)
    return lambda text: (
        len(_pattern(term).findall(text)) if term in text or term in _closed(text) else 0
    )


def _closed(text: str) -> str:
    """Take out the signs between words: a look at it spares most texts the search."""
    for sign in f"{_JOINTS} ":
        text = text.replace(sign, "")
    return text


def _is_identifier(term: str) -> bool:
    long = len(term) >= LOOSE_CHARS and not _BETWEEN.search(term)
    return long and any(sign.isdigit() for sign in term)


@lru_cache(maxsize=512)
def _pattern(term: str) -> re.Pattern[str]:
    """Return what finds a term: whole, and with signs between its letters where it is long."""
    if _IS_HAN.match(term):
        return re.compile(re.escape(term))
    signs = f"[{_JOINTS} ]{{0,2}}" if _is_identifier(term) else "[-_.]?"
    long = len(term) >= LOOSE_CHARS and not _BETWEEN.search(term)
    between = signs.join(map(re.escape, term)) if long else re.escape(term)
    return re.compile(rf"(?<!{_LETTER}){between}(?!{_LETTER})")


def _folded(text: str) -> str:
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _terms(text: str) -> Iterator[str]:
    """Spell a query in terms: words, identifiers whole, joined and in parts, Han pairs.

    Words with digits that follow another word may be parts of one identifier, and are joined, too.
    """
    for unit in _UNIT.finditer(_folded(text)):
        run = unit[0]
        if unit["han"]:
            yield from (run[at : at + 2] for at in range(max(len(run) - 1, 1)))
            continue
        parts = _BETWEEN.split(run)
        yield from (run,) if len(parts) == 1 else (run, "".join(parts), *parts)
    for spaced in _SPACED.finditer(_folded(text)):
        if any(map(str.isdigit, joined := spaced[0].replace(" ", ""))):
            yield joined
