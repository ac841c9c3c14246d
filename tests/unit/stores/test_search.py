import pytest

from everlong.stores.search import (
    ALL_WORDS,
    SOME_WORDS,
    VERBATIM,
    closeness,
    first_place,
    places_of,
    weight,
)

SPELLINGS = ("SO-2026-17", "so202617", "SO 2026 17", "SO2026-17", "so_2026/17", "ＳＯ２０２６１７")


def is_found(text: str, query: str) -> bool:
    return weight(text, query) > 0


@pytest.mark.parametrize("written", SPELLINGS)
@pytest.mark.parametrize("asked", SPELLINGS)
def test_an_identifier_is_found_in_any_spelling(written: str, asked: str) -> None:
    assert is_found(f"the order {written} left", asked)
    assert is_found(f"订单{written}已发货", asked)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("SO-2026-171", "SO202617"),
        ("7SO-2026-17", "SO202617"),
        ("a whale", "hale"),
        ("部署", "署决"),
        ("anything", "?!"),
        ("anything", ""),
    ],
)
def test_a_part_of_a_word_is_no_word(text: str, query: str) -> None:
    assert not is_found(text, query)


@pytest.mark.parametrize(
    ("written", "asked"), [("read_file", "readfile"), ("readfile", "read-file"), ("v3.2", "v3.2")]
)
def test_names_of_letters_are_found_joined_or_not(written: str, asked: str) -> None:
    assert is_found(f"call {written} now", asked)


@pytest.mark.parametrize(
    ("text", "query", "how"),
    [
        ("She said: never again by sea.", '"never again"', VERBATIM),
        ("She said: never  again\nby sea.", '"never again by"', VERBATIM),
        ("again, never", '"never again"', ALL_WORDS),
        ("never mind", '"never again"', SOME_WORDS),
        ("甲方要求“不见提单不付款”。", "「不见提单不付款」", VERBATIM),
        ("name is my own", "my name", ALL_WORDS),
        ("order SO-2026-17", "SO202617", ALL_WORDS),
    ],
)
def test_the_closest_text_holds_the_phrase_then_all_words(text: str, query: str, how: int) -> None:
    assert closeness(text, query) == how


def test_where_it_stands_is_the_phrase_then_the_longest_word() -> None:
    text = "again and again: never again by sea, order SO-2026-17"
    assert first_place(text, '"never again"') == text.index("never again")
    assert first_place(text, "so202617 again") == text.index("SO-2026-17")
    assert first_place(text, "giraffe") == 0


def test_the_places_of_a_long_text_are_those_of_its_rarest_word() -> None:
    text = "value 1\n" * 10_000 + "value SO-2026-17\n" + "value 2\n" * 10_000
    assert places_of(text, "value SO202617", 5) == [text.index("SO-2026-17")]
    assert len(places_of(text, "value", 5)) == 5
    assert places_of(text, "giraffe", 5) == []
