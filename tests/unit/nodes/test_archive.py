"""Where the transcript has each message of the history, without asking the store."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from everlong.nodes.archive import anchors, numbered
from everlong.nodes.transcript import SUMMARY_NAME

SUMMARY = HumanMessage("so far", name=SUMMARY_NAME, id="sum")


def message(number: int) -> BaseMessage:
    kinds = {5: SystemMessage, 1: HumanMessage}
    return kinds.get(number, AIMessage)(f"message {number}", id=f"m{number}")


def test_messages_are_counted_back_from_the_newest() -> None:
    history = [message(number) for number in range(7)]
    assert numbered(history, {"count": 7}) == {f"m{number}": number for number in range(7)}
    assert numbered([SUMMARY, *history[4:]], {"count": 7}) == {"m4": 4, "m5": 5, "m6": 6}
    assert numbered([], {"count": 7}) == {}


@pytest.mark.parametrize(
    ("stays", "listed"),
    [
        ([7, 8, 9], {}),
        ([5, 9], {"m5"}),
        ([1, 5, 6, 9], {"m1", "m6"}),
        ([5, 1, 7, 9], {"m5", "m1", "m7"}),
        ([5, 1, 2, 8, 9], {"m5", "m2"}),
        ([1], {"m1"}),
        ([], {}),
    ],
)
def test_what_stays_keeps_its_number_and_only_gaps_are_listed(stays, listed):
    history = [message(number) for number in range(10)]
    archived = {"through": "m9", "count": 10}
    kept = [message(number) for number in stays]
    found = anchors([SUMMARY, *kept], numbered(history, archived), archived)
    assert set(found) == set(listed)
    after = archived | {"anchors": found}
    assert numbered([SUMMARY, *kept], after) == {f"m{number}": number for number in stays}
    more = [*kept, message(10), message(11)]
    grown = after | {"count": 12}
    assert numbered(more, grown) == {f"m{number}": number for number in [*stays, 10, 11]}
