"""Rank texts by words: Chinese and English, identifiers whole and in parts; no index needed."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_LETTER = rf"[^\W_{_HAN}]"
_UNIT = re.compile(rf"(?P<han>[{_HAN}]+)|{_LETTER}+(?:[-_./:@#+]+{_LETTER}+)*")
_BETWEEN = re.compile(r"[\W_]+")


def terms_of(query: str) -> set[str]:
    """Return the terms that a query asks for."""
    return set(_terms(query, whole_runs=False))


def scores(texts: Sequence[str], asked: set[str]) -> list[float]:
    """Score each text by BM25; 0 where it holds nothing of what is asked."""
    counted = [_counts(text, asked) for text in texts]
    usual = max(sum(map(len, texts)) / max(len(texts), 1), 1)
    holding = {term: sum(term in counts for counts in counted) for term in asked}
    rarity = {t: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for t, n in holding.items()}
    return [
        sum(
            rarity[term] * count * 2.2 / (count + 0.3 + 0.9 * len(text) / usual)
            for term, count in counts.items()
        )
        for counts, text in zip(counted, texts, strict=True)
    ]


def _counts(text: str, asked: set[str]) -> Counter[str]:
    """Count what is asked; a look at the bare letters first spares most texts the work."""
    bare = _BETWEEN.sub("", _folded(text))
    if not any(term in bare for term in asked):
        return Counter()
    return Counter(term for term in _terms(text) if term in asked)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


def _terms(text: str, *, whole_runs: bool = True) -> Iterator[str]:
    """Spell a text in terms: words, identifiers whole, joined and in parts, Han pairs and signs."""
    for unit in _UNIT.finditer(_folded(text)):
        run = unit[0]
        if unit["han"]:
            yield from (run[at : at + 2] for at in range(len(run) - 1))
            yield from run if whole_runs or len(run) == 1 else ""
            continue
        parts = _BETWEEN.split(run)
        yield from (run,) if len(parts) == 1 else (run, "".join(parts), *parts)
