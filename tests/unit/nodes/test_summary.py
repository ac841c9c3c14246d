"""How a summary is framed, and what it carries over."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from everlong.nodes.summary import (
    carried_over,
    summary_body,
    summary_carried,
    summary_left,
    summary_message,
)
from everlong.nodes.tokens import estimate_text
from everlong.nodes.transcript import is_summary


def test_a_summary_message_reads_back_as_its_body_and_its_list():
    message = summary_message("They spoke.", ["PX-4471", "$1,250.00"], most_tokens=100)
    assert is_summary(message)
    assert message.text.startswith("Here is a summary of the conversation to date:\n\nThey spoke.")
    assert summary_body(message) == "They spoke."
    assert summary_carried(message) == ["PX-4471", "$1,250.00"]


def test_the_list_is_cut_to_its_room_and_says_how_many_are_left():
    names = [f"PX-{number}" for number in range(1_000, 1_100)]
    message = summary_message("They spoke.", names, most_tokens=60)
    listed = summary_carried(message)
    assert 0 < len(listed) < 100
    assert f"({100 - len(listed)} more are in the archive" in message.text


@pytest.mark.parametrize("most_tokens", [0, 20, 60, 200, 1_000])
def test_the_list_with_all_its_lines_is_never_over_its_room(most_tokens):
    names = [f"订单-{number} https://a.example/{number}" for number in range(1_000, 1_100)]
    bare = summary_message("They spoke.", [], most_tokens=0)
    message = summary_message("They spoke.", names, most_tokens=most_tokens)
    left = message.text.splitlines()[-1]
    added = message.text.removeprefix(bare.text).removesuffix(left)
    assert estimate_text(added.strip()) <= most_tokens
    assert summary_left(message) + len(summary_carried(message)) == 100


def test_one_name_that_is_too_long_keeps_no_other_out_of_the_list():
    names = ["https://a.example/" + "x" * 900, "PX-4471"]
    message = summary_message("They spoke.", names, most_tokens=60)
    assert summary_carried(message) == ["PX-4471"]


@pytest.mark.parametrize("listed", [[], ["PX-4471"]], ids=["no list", "a list"])
def test_what_earlier_lists_had_left_is_still_counted(listed):
    message = summary_message("They spoke.", listed, most_tokens=100, left=7, where="elsewhere")
    assert message.text.endswith("(7 more are elsewhere.)")
    assert summary_left(message) == 7
    assert summary_body(message) == "They spoke."
    assert summary_carried(message) == listed


def test_a_summary_that_repeats_the_frame_does_not_break_it():
    frame = summary_message("They spoke.", ["PX-1001"], most_tokens=100).text
    message = summary_message(frame, ["PX-2002"], most_tokens=100)
    assert message.text.count("Here is a summary") == 1
    assert "PX-1001" in summary_body(message)
    assert summary_carried(message) == ["PX-2002"]


def test_the_same_summary_has_the_same_id():
    assert summary_message("a", [], most_tokens=0).id == summary_message("a", [], most_tokens=0).id


def test_identifiers_of_an_earlier_list_are_carried_on_and_the_newest_come_first():
    old = summary_message("They spoke.", ["PX-1001"], most_tokens=100)
    replaced = [old, HumanMessage("PX-2002 is late"), AIMessage("PX-9999"), HumanMessage("PX-3003")]
    assert carried_over(replaced, "nothing") == ["PX-3003", "PX-2002", "PX-1001"]
    assert carried_over(replaced, "PX-3003 and PX-1001") == ["PX-2002"]
