"""What tells a fact, and how passages that say it are struck out."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from everlong.stores.passages import signs_in, struck, struck_message, told_by, without


def saying(fact):
    told = told_by(fact)

    def says(signs, within=None):
        words = told.words <= signs.words if within is None else told.words & signs.words
        return bool(told.codes & signs.codes or words)

    return says


PHONE = saying("phone is 555-0142")


@pytest.mark.parametrize(
    ("fact", "words", "codes"),
    [
        ("2026-04-03 phone is 555-0142", {"phone", "5550142"}, {"5550142"}),
        ("The user lives in Oslo", {"live", "oslo"}, set()),
        ("用户的电话是5550142", {"电话", "5550142"}, {"5550142"}),
        ("User's mail is kim@x.example", {"mail", "kimxexample"}, {"kimxexample"}),
        ("Order PX-4471 ships on 2026-05-02", {"order", "px4471", "ship", "20260502"}, {"px4471"}),
        ("phone +47 555 01 42", {"phone", "475550142"}, {"475550142"}),
        ("earns 5000 since 2019", {"earn", "5000", "sinc", "2019"}, set()),
        ("meets at 10:30 in room 7", {"meet", "1030", "room", "7"}, set()),
        ("", set(), set()),
    ],
)
def test_a_fact_is_told_by_its_words_and_by_codes_that_are_no_date(fact, words, codes):
    told = told_by(fact)
    assert (set(told.words), set(told.codes)) == (words, codes)


@pytest.mark.parametrize(
    "spelled", ["555-0142", "5550142", "(555) 0142", "555 0142", "tel:555.0142"]
)
def test_a_code_is_one_in_all_its_spellings(spelled):
    assert PHONE(signs_in(f"reach me under {spelled}!"))


@pytest.mark.parametrize("other", ["555-01429", "1555-0142x", "0142-555", "555, 0142", "5-55-0143"])
def test_another_code_is_another(other):
    assert not PHONE(signs_in(f"reach me under {other}!"))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Nothing of it. 你好。", "Nothing of it. 你好。"),
        ("Call 555-0142. Then rest.", "[forgotten] Then rest."),
        ("Call 555-0142 and bring tea.", "[forgotten] and bring tea."),
        ("# Kim\n- Phone: 555-0142\n- tea", "# Kim\n- [forgotten]\n- tea"),
        (
            "My phone is new, its number 555-0142, and I like tea.",
            "[forgotten], [forgotten], and I like tea.",
        ),
        ("- 555-0142", "- [forgotten]"),
        ("电话5550142，住在卑尔根。", "[forgotten]，住在卑尔根。"),
        ("555-0142\n\n555-0142", "[forgotten]\n\n[forgotten]"),
    ],
)
def test_the_passage_is_struck_and_nothing_beside_it(text, left):
    assert without(text, PHONE) == left
    assert without(left, PHONE) is left


def test_a_text_without_it_is_the_same_object():
    for value in ("none", {"a": ["b", 1, None]}, [1.5, True], HumanMessage("none")):
        assert struck(value, PHONE) is value


def test_one_long_line_loses_only_a_part():
    text = "word " * 2_000 + "555-0142 " + "word " * 2_000
    left = without(text, PHONE)
    assert "0142" not in left
    assert left.count("word") > 3_900


def test_json_stays_json_and_its_numbers_count():
    given = {"name": "555-0142", "number": 5550142, "when": [1, "5550142"], "city": "Bergen"}
    left = json.loads(without(json.dumps(given), PHONE))
    assert left == {
        "name": "[forgotten]",
        "number": "[forgotten]",
        "when": [1],
        "city": "Bergen",
    }


def test_a_message_keeps_its_id_its_calls_and_what_only_its_provider_reads():
    message = AIMessage(
        [
            {"type": "thinking", "thinking": "555-0142?", "signature": "s"},
            {"type": "text", "text": "I dial 555-0142. Wait."},
            {"type": "tool_use", "id": "c", "name": "dial", "input": {"name": "555-0142"}},
        ],
        id="a",
        tool_calls=[{"name": "dial", "args": {"name": "555-0142"}, "id": "c"}],
    )
    left = struck_message(message, PHONE)
    assert left.id == "a"
    assert [block["type"] for block in left.content] == ["text", "tool_use"]
    assert left.tool_calls[0]["args"] == {"name": "[forgotten]"}
    assert left.content[1]["input"] == {"name": "[forgotten]"}
    assert left.tool_calls[0]["id"] == left.content[1]["id"] == "c"


def test_a_megabyte_takes_seconds_at_most():
    lines = "\n".join(f"{number} some words, and 555-{number:04d}" for number in range(30_000))
    assert "555-0142" not in without(lines, PHONE).splitlines()[142]
