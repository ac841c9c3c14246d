"""Words as the index knows them: Chinese, English and identifiers, for texts and for queries.

A run of Han, kana or hangul becomes pairs of signs; an English word its stem, unless it is too
common to say anything; an identifier stands whole, joined and in parts.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import Stemmer

WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
MOST_TERM_CHARS = 100
WHOLE_WEIGHT, PART_WEIGHT = 3.0, 0.5
"""An identifier found whole says more than a word, each part of it less."""
_UNIT = re.compile(rf"(?P<wide>[{WIDE}]+)|[^\W_{WIDE}](?:[^\W{WIDE}]|[-./:@#&+]+(?=[^\W_{WIDE}]))*")
_SEGMENT = re.compile(r"[/@#:&+]+")
_PART = re.compile(r"[^\W\d_]+|\d+")
_COMMON_ENGLISH = (
    "a about also am an and any are as at be because been being but by can could did do does for "
    "from had has have he her him his how i if in into is it its just like me my no not of on or "
    "our she should so some than that the their them then there these they this to too us very "
    "was we were what when where which who why will with would you your "
    "d didn doesn don isn ll m re s t ve"
)
_COMMON_CHINESE = "的 了 是 在 和 与 吗 呢 吧 啊 什么 怎么 哪个 哪些 请问 多少 为什么 如何 几个"
_COMMON = frozenset(f"{_COMMON_ENGLISH} {_COMMON_CHINESE}".split())
_stem = cast("Callable[[str], str]", Stemmer.Stemmer("english").stemWord)


@dataclass(frozen=True)
class Unit:
    """One thing that a query asks for, in any of its spellings."""

    spellings: tuple[str, ...]
    weight: float = 1.0
    is_prefix: bool = False
    """A single Han sign: any term that begins with it answers."""


def terms_of(text: str) -> list[str]:
    """Return the terms of a text, in its order, as often as they are there."""
    found: list[str] = []
    for unit in _UNIT.finditer(_folded(text)):
        run = unit[0]
        if unit.lastindex:  # wide; the last sign stands alone, so that each sign begins a term
            found += [run[at : at + 2] for at in range(len(run))]
        elif not run.isalpha():
            found += (*_spelled(run), *map(_word, _parts(run)))
        elif run not in _COMMON:
            found.append(_word(run))
    return found


def units_of(query: str) -> list[Unit]:
    """Return what a query asks for, each once, in its order."""
    found: dict[tuple[str, ...], Unit] = {}
    for unit in _UNIT.finditer(_folded(query)):
        for asked in _asked(unit[0], is_wide=bool(unit["wide"])):
            known = found.get(asked.spellings)
            if known is None or known.weight < asked.weight:
                found[asked.spellings] = asked
    return list(found.values())


def _asked(run: str, *, is_wide: bool) -> Iterator[Unit]:
    if is_wide:
        if len(run) == 1:
            yield from () if run in _COMMON else (Unit((run,), is_prefix=True),)
        pairs = (run[at : at + 2] for at in range(len(run) - 1))
        yield from (Unit((pair,)) for pair in pairs if pair not in _COMMON)
    elif run.isalpha():
        yield from () if run in _COMMON else (Unit((_word(run),)),)
    else:
        yield Unit(_spellings(run), WHOLE_WEIGHT)
        yield from (Unit((_word(part),), PART_WEIGHT) for part in _parts(run))


def _spelled(run: str) -> list[str]:
    """Return the spellings of an identifier, and of each segment of a path or an address."""
    segments = [one for one in _SEGMENT.split(run) if one != run and not one.isalpha()]
    return [term for one in (run, *segments) for term in _spellings(one)]


def _spellings(run: str) -> tuple[str, ...]:
    """Return an identifier whole, and joined where that differs: `ctx-009`, `ctx009`."""
    joined = "".join(_PART.findall(run))
    return tuple(term[:MOST_TERM_CHARS] for term in dict.fromkeys((run, joined)))


def _parts(run: str) -> list[str]:
    parts = _PART.findall(run)
    return parts if len(parts) > 1 else []


@lru_cache(maxsize=50_000)
def _word(word: str) -> str:
    return (_stem(word) if word.isascii() and word.isalpha() else word)[:MOST_TERM_CHARS]


def _folded(text: str) -> str:
    return (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()
