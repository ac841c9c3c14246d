"""The words by which the offline model matches a question with a statement; no dictionary."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from math import log

from everlong.nodes import offline_cues as cues

_LATIN = re.compile(r"[A-Za-zÀ-ɏ0-9]+(?:[-_.@/'][A-Za-zÀ-ɏ0-9]+)*")
_CONTRACTED = re.compile(r"'(?:s|re|ve|ll|d|m|t)$", re.IGNORECASE)
_HAN = re.compile(r"[\u3400-\u9fff\u3040-\u30ff\uac00-\ud7af]+")
_PARTS = re.compile(r"[-_.@/']")
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", ""))
LEAST_STEM = 3
SINGLE, VAGUE, HEAD, LINK = 0.5, 0.5, 2.0, 3.0
"""Factors: of a lone Han character, words such as `number`, what `which` asks for, a link."""


def keywords(question: str) -> list[str]:
    """Return what a question asks about, as it is written: words, and Han runs without fillers."""
    text = unicodedata.normalize("NFKC", question)
    found = [_CONTRACTED.sub("", word) for word in _LATIN.findall(text)]
    words = [word for word in found if word.lower() not in cues.STOP_WORDS]
    runs = [run for piece in _HAN.findall(text) for run in cues.HAN_STOPS.split(piece) if run]
    return list(dict.fromkeys([*words, *runs]))


@lru_cache(maxsize=20_000)
def terms(text: str) -> frozenset[str]:
    """Return a text's terms: stems, parts of codes, Han characters singly and in pairs."""
    found: set[str] = set()
    for word in keywords(text):
        if _HAN.fullmatch(word):
            found.update(word)
            found.update(word[place : place + 2] for place in range(len(word) - 1))
            continue
        parts = [part for part in _PARTS.split(word) if part.lower() not in cues.STOP_WORDS]
        found.update(map(_stem, [word, *parts]))
    found.update(tag for tag, means in cues.LINKS.items() if means.search(text))
    return frozenset(found)


def _stem(word: str) -> str:
    stem = word.lower()
    for ending, instead in _ENDINGS:
        if stem.endswith(ending) and len(stem) - len(ending) >= LEAST_STEM and stem[-2:] != "ss":
            stem = stem.removesuffix(ending) + instead
            break
    if len(stem) > LEAST_STEM and stem[-1] == stem[-2]:
        return stem[:-1]
    return stem.removesuffix("e") if len(stem) > LEAST_STEM + 1 else stem


class Weights:
    """How much each term of a question tells: the fewer statements hold it, the more."""

    def __init__(self, question: str, statements: Iterable[frozenset[str]]) -> None:
        held = list(statements)
        self._count = len(held)
        self._holding = Counter(term for each in held for term in each)
        heads = (found["head"] for found in cues.HEAD.finditer(question))
        self._heads = frozenset(term for head in heads for term in terms(head))

    def of(self, term: str) -> float:
        """Return the weight of a term; that of one which no statement holds is the greatest."""
        weight = log(2 + self._count / (1 + self._holding[term]))
        factors = (
            (LINK, term.startswith("@")),
            (SINGLE, len(term) == 1 and not term.isascii()),
            (VAGUE, term in cues.VAGUE),
            (HEAD, term in self._heads),
        )
        return weight * next((factor for factor, fits in factors if fits), 1.0)

    def share(self, asked: frozenset[str], stated: frozenset[str]) -> float:
        """Return how much of what is asked a statement speaks of: 0 to 1."""
        whole = sum(map(self.of, asked))
        return sum(map(self.of, asked & stated)) / whole if whole else 0.0
