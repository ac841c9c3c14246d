"""What texts and queries become in the index."""

import pytest

from everlong.stores.lexicon import MOST_TERM_CHARS, Unit, terms_of, units_of


def finds(query: str, text: str) -> bool:
    """Tell whether each unit of a query is among a text's terms."""
    terms = list(terms_of(text))
    asked = units_of(query)
    return bool(asked) and all(_is_in(unit, terms) for unit in asked)


def _is_in(unit: Unit, terms: list[str]) -> bool:
    if unit.is_prefix:
        return any(term.startswith(unit.spellings) for term in terms)
    return not set(unit.spellings).isdisjoint(terms)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("ports", "Our port is Shanghai."),
        ("port", "All ports of call."),
        ("shipping", "They shipped it."),
        ("上海港", "我们的出口只走上海港, 不走宁波。"),
        ("港", "只走上海港。"),
        ("CTX-009", "The task is CTX-009, said she."),
        ("ctx009", "The task is CTX-009."),
        ("ctx 009", "The task is CTX-009."),
        ("packing_list_v3.xlsx", "See /srv/in/packing_list_v3.xlsx for it"),
        ("5550142", "her phone is 555-0142"),
        ("555-0142", "her phone is 555-0142"),
        ("ＣＴＸ－００９", "The task is CTX-009."),
        ("café", "the CAFÉ at noon"),
        ("порт", "Наш порт открыт"),
        ("部署 whale", "部署 decision: plan blue whale, port 9580"),
        ("東京", "東京タワーへ行く"),
        ("서울", "서울역에서 만나요"),
    ],
)
def test_a_text_is_found_by(query, text):
    assert finds(query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("CTX-009", "CTX-010 and task 9"),
        ("上海港", "上海的港口很多"),
        ("port", "Portuguese"),
        ("whale", "while"),
    ],
)
def test_a_text_is_not_found_by(query, text):
    assert not finds(query, text)


@pytest.mark.parametrize("query", ["", "  ", "the of and", "?!", "的", "what's it"])
def test_a_query_without_words_asks_for_nothing(query):
    assert units_of(query) == []


def test_an_identifier_found_whole_weighs_more_than_its_parts():
    weights = {unit.spellings: unit.weight for unit in units_of("CTX-009")}
    assert weights[("ctx-009", "ctx009")] > 1 > weights[("009",)]


def test_a_word_that_comes_twice_is_asked_for_once():
    assert len(units_of("port ports Port")) == 1


def test_terms_are_bounded():
    assert all(len(term) <= MOST_TERM_CHARS for term in terms_of("x" * 5_000 + " " + "y-1" * 500))
