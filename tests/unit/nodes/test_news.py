"""Which facts are new, and which say again what is known."""

import pytest

from everlong.nodes.news import news, restates
from everlong.stores.entries import Fact


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("likes tea", "Likes tea."),
        ("The user likes tea", "I like tea"),
        ("My badge number is 5512.", "Badge number: 5512"),
        ("用户的出口只走上海港", "我们的出口只走上海港"),
        ("Exports go through Shanghai only", "Our exports go through Shanghai only"),
        ("Exports go via Shanghai port only", "Exports always go via Shanghai port only"),
    ],
)
def test_the_same_in_nearly_the_same_words_is_known(said: str, known: str) -> None:
    assert restates(said, known)
    assert news([Fact(said)], [Fact(known)]) == []


@pytest.mark.parametrize(
    ("said", "known"),
    [
        ("likes tea", "does not like tea"),
        ("likes tea", "no longer likes tea"),
        ("不喝茶", "喝茶"),
        ("Anna manages Ben", "Ben manages Anna"),
        ("lives in Oslo, near the harbour", "lives in Oslo"),
        ("lives in Oslo", "lives in Oslo, near the harbour"),
        ("badge number is 5513", "badge number is 5512"),
        ("Exports go via Shanghai", "Exports go via Shanghai only"),
        ("likes tea", ""),
        ("!", "!!"),
    ],
)
def test_what_differs_is_new(said: str, known: str) -> None:
    if any(map(str.isalnum, said)):
        assert not restates(said, known)
        assert news([Fact(said)], [Fact(known)]) == [Fact(said)]


def test_a_value_that_comes_back_is_new_again() -> None:
    held = [Fact("lives in Oslo"), Fact("lives in Bergen")]
    assert news([Fact("lives in Oslo")], held) == [Fact("lives in Oslo")]
    assert news([Fact("lives in Bergen")], held) == []


def test_one_answer_says_each_thing_once() -> None:
    facts = [Fact("likes tea", ("h1",)), Fact("The user likes tea", ("h2",))]
    assert news(facts, []) == facts[:1]


def test_what_was_in_doubt_is_new_when_it_is_said() -> None:
    doubted = Fact("prefers Ningbo", doubt="only the assistant said so")
    assert news([Fact("prefers Ningbo")], [doubted]) == [Fact("prefers Ningbo")]
    assert news([doubted], [doubted]) == []
    assert news([doubted], [Fact("prefers Ningbo")]) == []
