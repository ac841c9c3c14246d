"""What a flush reads: head and tail of what is too long for its model."""

import pytest

from everlong.nodes.facts import _bounded
from everlong.nodes.tokens import estimate_text

HAN, WORDS = "鹭" * 9_000, "herons in the pond " * 1_000


@pytest.mark.parametrize("most_tokens", [0, 40, 900, 4_800])
@pytest.mark.parametrize("text", [HAN, WORDS, HAN + WORDS * 3 + HAN, WORDS + HAN + WORDS, ""])
def test_a_text_fits_however_unevenly_its_tokens_are_spread(text, most_tokens):
    kept = _bounded(text, 60_000, most_tokens=most_tokens)
    frame = estimate_text("\n... 99999 characters left out ...\n")
    assert estimate_text(kept) <= max(most_tokens, frame)
    if most_tokens > frame and text:
        assert kept[:5] == text[:5]
        assert kept[-5:] == text[-5:]


def test_a_text_that_fits_stays_and_one_over_the_characters_does_not():
    assert _bounded(WORDS, 60_000, most_tokens=60_000) == WORDS
    assert len(_bounded("x" * 70_000, 60_000, most_tokens=60_000)) < 60_050
