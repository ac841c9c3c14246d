"""How texts are ranked by words, and how that and their meaning become one ranking."""

import pytest

from everlong.stores.fusion import fused
from everlong.stores.lexicon import units_of
from everlong.stores.ranking import rarity, scores


def test_a_rare_word_counts_for_more() -> None:
    texts = ["a port", "a whale", "port one", "port two", "port three"]
    own = scores(texts, "port whale")
    assert max(own) == own[1]


def test_how_rare_it_is_elsewhere_goes_before_how_rare_it_is_here() -> None:
    (port,), (whale,) = units_of("port"), units_of("whale")
    chosen = ["a whale", "a whale too", "a port"]  # chosen because they say `whale`
    assert scores(chosen, "port whale")[2] > scores(chosen, "port whale")[0]
    known = {port: rarity(500, 1_000), whale: rarity(2, 1_000)}
    assert scores(chosen, "port whale", known)[2] < scores(chosen, "port whale", known)[0]


def test_nothing_of_what_is_asked_scores_nothing() -> None:
    assert scores(["a ship", ""], "whale") == [0.0, 0.0]
    assert scores(["a ship"], "the of") == [0.0]
    assert scores([], "ship") == []


@pytest.mark.parametrize("holding", [0, 1, 50, 100, 1_000])
def test_what_every_text_says_still_says_something(holding: float) -> None:
    assert rarity(holding, 100) > 0


def test_what_both_rankings_have_comes_first_then_that_by_words() -> None:
    scored = fused(["word", "both"], ["meant", "both"])
    assert sorted(scored, key=lambda key: -scored[key]) == ["both", "word", "meant"]
    assert fused([], []) == {}
