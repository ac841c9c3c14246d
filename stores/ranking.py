"""Rank a few thousand texts by words: BM25 over the terms of `stores/lexicon.py`. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from everlong.stores.lexicon import Unit, terms_of, units_of

SATURATION, LENGTH_SHARE = 0.9, 0.3
"""BM25's k1 and b. Messages are short: their length says little."""


def scores(
    texts: Sequence[str], query: str, rarities: Mapping[Unit, float] | None = None
) -> list[float]:
    """Score each text by BM25; 0 where it holds nothing of what is asked.

    `rarities`: how rare what is asked for is where the texts were chosen from, by what is asked;
    else among the texts, which are all there are.
    """
    asked = units_of(query)
    counted = [Counter(terms_of(text)) for text in texts] if asked else []
    if not counted:
        return [0.0] * len(texts)
    held = [[_count(unit, counts) for unit in asked] for counts in counted]
    known = rarities or {
        unit: rarity(sum(bool(one[at]) for one in held), len(texts))
        for at, unit in enumerate(asked)
    }
    weights = [unit.weight * known.get(unit, 0.0) for unit in asked]
    lengths = [sum(counts.values()) for counts in counted]
    usual = max(sum(lengths) / len(lengths), 1)
    rooms = [SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * one / usual) for one in lengths]
    return [
        sum(
            weight * count * (SATURATION + 1) / (count + room)
            for weight, count in zip(weights, counts, strict=True)
            if count
        )
        for counts, room in zip(held, rooms, strict=True)
    ]


def rarity(holding: float, texts: float) -> float:
    """Return how much a unit says that so many of the texts hold; more than 0."""
    return math.log(1 + (max(texts - holding, 0.0) + 0.5) / (holding + 0.5))


def _count(unit: Unit, counts: Counter[str]) -> int:
    if unit.is_prefix:
        return sum(counts[term] for term in counts if term.startswith(unit.spellings))
    return max(counts[term] for term in unit.spellings)
