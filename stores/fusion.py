"""Make one ranking of two: by words, and by meaning. Pure."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
FLATNESS = 10
"""Reciprocal rank fusion's k: how little the first places of a ranking differ."""
BY_MEANING = 0.5
"""Weight of a place in the ranking by meaning beside one in that by words."""


def fused(by_words: Sequence[Key], by_meaning: Sequence[Key]) -> dict[Key, float]:
    """Return the score of everything that is in either ranking."""
    found: dict[Key, float] = {}
    for weight, ranking in ((1.0, by_words), (BY_MEANING, by_meaning)):
        for place, key in enumerate(ranking, start=1):
            found[key] = found.get(key, 0.0) + weight / (FLATNESS + place)
    return found
