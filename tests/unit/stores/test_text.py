import json
from typing import Any

import pytest

from everlong.stores.text import clean, clean_text

SPOILT = [
    ("a\x00b", "a\ufffdb"),
    ("ab\ud83dcd", "ab\ufffdcd"),
    ("ab\ude00", "ab\ufffd"),
    ("\ude00\ud83d", "\ufffd\ufffd"),
    ("\ud83d\ude00", "😀"),
    ("\ud83d\ud83d\ude00", "\ufffd😀"),
]
SOUND = [
    "",
    "plain",
    "literal backslash-u0000: \\u0000",
    "family 👨‍👩‍👧 café",
    "部署",
    "\u2028\x01",
]


@pytest.mark.parametrize(("given", "expected"), SPOILT)
def test_nul_and_lone_surrogates_become_the_replacement_character(
    given: str, expected: str
) -> None:
    assert clean_text(given) == expected


@pytest.mark.parametrize("given", SOUND)
def test_a_sound_text_is_returned_as_it_is(given: str) -> None:
    assert clean_text(given) is given


def test_a_value_with_nothing_wrong_is_the_same_object() -> None:
    value: dict[str, Any] = {"a": [1, 2.5, None, True, {"b": "中文"}], "c": {}}
    assert clean(value) is value


def test_only_what_is_wrong_is_built_anew() -> None:
    sound = {"x": [1]}
    value = {"sound": sound, "spoilt": ["\x00"]}
    cleaned = clean(value)
    assert cleaned == {"sound": sound, "spoilt": ["\ufffd"]}
    assert cleaned["sound"] is sound
    assert value["spoilt"] == ["\x00"]


def test_keys_are_cleaned_and_become_texts() -> None:
    assert clean({"a\x00": 1, 2: "two", None: 3}) == {"a\ufffd": 1, "2": "two", "null": 3}


def test_two_keys_that_clean_to_one_leave_one() -> None:
    assert clean({"\x00": 1, "\ufffd": 2}) == {"\ufffd": 2}


def test_numbers_that_json_lacks_become_none_and_tuples_lists() -> None:
    value = {"n": float("nan"), "i": float("-inf"), "t": (1, ("x",))}
    cleaned = clean(value)
    assert cleaned == {"n": None, "i": None, "t": [1, ["x"]]}
    assert json.loads(json.dumps(cleaned, allow_nan=False)) == cleaned


def test_what_is_not_json_like_is_left_alone() -> None:
    thing = object()
    assert clean({"thing": thing})["thing"] is thing


def test_cleaning_twice_changes_nothing_more() -> None:
    once = clean({"a\x00": ("\ud83d", float("inf"))})
    assert clean(once) is once
