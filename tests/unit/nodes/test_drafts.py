"""A flush's answer as weak models write it."""

import pytest

from everlong.nodes.drafts import Draft, drafts_in


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("- likes tea [12, 14]", (12, 14)),
        ("* likes tea [12][14]", (12, 14)),
        ("• likes tea 【12、14】", (12, 14)),
        ("1. likes tea [user 12]", (12,)),
        ("2) likes tea (user 12, assistant 13)", (12, 13)),
        ("+ likes tea [12-14]", (12, 13, 14)),
        ("– likes tea [messages: 12 and 14]", (12, 14)),
        ("- [12] likes tea", (12,)),
        ("- [user 12]: likes tea", (12,)),
        ("likes tea [12]", (12,)),
        ("- likes tea [#12]", (12,)),
        ("- likes tea [user 12, 2026-03-02]", (12,)),
        ("- likes tea [99]", ()),
        ("- likes tea [12, 99]", (12,)),
        ("- likes tea [0]", ()),
        ("- likes tea", ()),
        ("· likes tea", ()),
    ],
)
def test_marks_are_read_however_they_are_written(line: str, numbers: tuple[int, ...]) -> None:
    assert drafts_in(line, 20) == [Draft("likes tea", numbers)]


def test_a_stop_after_or_before_the_mark_is_kept() -> None:
    assert drafts_in("- Likes tea [3].", 5) == [Draft("Likes tea.", (3,))]
    assert drafts_in("- Likes tea. [3]", 5) == [Draft("Likes tea.", (3,))]


@pytest.mark.parametrize(
    "text", ["joined in [2019]", "a team of engineers (12)", "uses array[3]x", "[draft] is a tag"]
)
def test_other_brackets_are_text(text: str) -> None:
    assert drafts_in(f"- {text}", 5) == [Draft(text)]


@pytest.mark.parametrize(
    "answer",
    ["", "NO_REPLY", "- NO_REPLY", "There is nothing to keep.", "## Facts", "---", "- ", "**"],
)
def test_no_reply_prose_and_headings_are_no_facts(answer: str) -> None:
    assert drafts_in(answer, 5) == []


def test_each_fact_comes_once() -> None:
    answer = "Here are the facts:\n\n- likes tea [1]\n- likes tea [2]\n- lives in Oslo"
    assert drafts_in(answer, 5) == [Draft("likes tea", (1,)), Draft("lives in Oslo")]
