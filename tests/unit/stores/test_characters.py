import pytest

from everlong.stores.characters import safe_end, safe_start

SEEN_AS_ONE = [
    "👨‍👩‍👧",
    "e\u0301",
    "🇳🇴",
    "👍🏽",
    "☝️",
    "\u1100\u1161\u11a8",
    "\r\n",
    "🏴\U000e0067\U000e007f",
]


@pytest.mark.parametrize("sign", SEEN_AS_ONE, ids=ascii)
def test_a_cut_inside_a_sign_moves_before_it_or_after_it(sign: str) -> None:
    text = f"ab{sign}{sign}cd"
    whole = {2, 2 + len(sign), 2 + 2 * len(sign)}
    for at in range(3, 2 + 2 * len(sign)):
        assert safe_end(text, 0, at) == max(place for place in whole if place <= at)
        assert safe_start(text, at) == min(place for place in whole if place >= at)


@pytest.mark.parametrize("sign", SEEN_AS_ONE, ids=ascii)
def test_a_page_smaller_than_a_sign_still_gets_on(sign: str) -> None:
    assert safe_end(sign, 0, 1) == 1


def test_a_place_beyond_the_text_is_its_end() -> None:
    assert safe_end("abc", 0, 9) == 3
    assert safe_end("abc", 5, 9) == 3
    assert safe_start("abc", 3) == 3


def test_endless_accents_are_no_sign_and_may_be_cut() -> None:
    text = "a" + "\u0301" * 1_000
    assert safe_end(text, 0, 500) == 500
