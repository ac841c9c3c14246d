"""What a person's answer to a call that waits means."""

import pytest
from pydantic import ValidationError

from everlong.nodes.approval import Answer


@pytest.mark.parametrize(
    ("said", "decision", "reason"),
    [
        ("yes", "approve", ""),
        (" OK. ", "approve", ""),
        (True, "approve", ""),
        ("同意", "approve", ""),
        ("no", "reject", ""),
        ("No: it was paid,\nyes", "reject", "it was paid,\nyes"),
        ("不，地址错了", "reject", "地址错了"),
        (False, "reject", ""),
        ({"type": "reject", "message": "m"}, "reject", "m"),
    ],
)
def test_a_person_may_answer_in_a_word(said, decision, reason):
    (found,) = Answer.model_validate(said).decisions
    assert (found.type, found.message) == (decision, reason)


@pytest.mark.parametrize("said", ["", "yes, but only half", "nothing", "不是这个", "maybe", None])
def test_what_says_neither_yes_nor_no_is_no_answer(said):
    with pytest.raises(ValidationError, match="approve"):
        Answer.model_validate(said)
