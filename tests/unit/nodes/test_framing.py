"""The list of a summary message is cut to fit, and never the reason why the message is refused."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everlong.nodes.budget import limits_of
from everlong.nodes.context import Compaction
from everlong.nodes.framing import framed, invented, too_big
from everlong.nodes.plan import Plan, Sizes, plan
from everlong.nodes.summary import (
    SHORT_SUMMARY_TOKENS,
    summary_carried,
    summary_left,
    summary_message,
)
from everlong.nodes.tokens import estimate_message, estimate_messages, estimate_text

SETTINGS = Compaction(keep_messages=2)


def planned(messages: list[BaseMessage], trigger: Any, window: int = 100_000) -> Plan:
    total = estimate_messages(messages)
    return plan(
        messages,
        settings=SETTINGS,
        trigger=trigger,
        limits=limits_of(SETTINGS, window),
        sizes=Sizes(total=total, request=total + 500, fixed=500),
    )


def talk(names: list[str], words: int = 0) -> list[BaseMessage]:
    said = [
        HumanMessage(f"{name} " + "as agreed " * words, id=f"h{at}")
        for at, name in enumerate(names)
    ]
    return [*said, HumanMessage("go on", id="q"), AIMessage("Noted.", id="a")]


def frame(one: Plan, text: str, most: int = 1_500) -> BaseMessage:
    return framed(one, text, most_tokens=most, where="in the archive")


@given(
    count=st.integers(1, 300),
    body=st.integers(0, 1_200),
    words=st.integers(0, 40),
    trigger=st.sampled_from(["messages", "tokens", "manual", "overflow"]),
)
def test_a_summary_that_passes_without_its_list_passes_with_it(count, body, words, trigger) -> None:
    one = planned(talk([f"PX-{4000 + n}" for n in range(count)], words), trigger)
    text = "They spoke of it. " * (body // 4)
    bare = summary_message(text, (), most_tokens=0)
    message = frame(one, text)
    listed = summary_carried(message)
    if not too_big(one, bare):
        assert not too_big(one, message)
    assert estimate_text("\n".join(listed)) <= 1_500
    assert len(listed) + summary_left(message) == count or message == bare


def test_neither_the_list_nor_its_count_makes_a_small_gain_a_loss() -> None:
    one = planned(talk(["PX-4471", "PX-4472"], 50), "tokens")
    before = estimate_messages(one.split.replaced)
    gains = set[bool]()
    for words in range(60, 125):
        text = "They agreed. " + "as planned " * words
        bare = summary_message(text, (), most_tokens=0)
        if not too_big(one, bare):
            message = frame(one, text)
            assert estimate_message(message) < before
            gains.add(message == bare)
    assert gains == {True, False}


def test_the_list_takes_no_more_than_half_of_what_is_freed() -> None:
    names = [f"https://a.example/orders/{number}" for number in range(400)]
    one = planned(talk(names), "tokens")
    message = frame(one, "They spoke.", most=100_000)
    freed = estimate_messages(one.split.replaced) - estimate_message(message)
    assert summary_left(message) > 0
    assert estimate_text("\n".join(summary_carried(message))) <= freed


def test_a_short_conversation_keeps_all_its_numbers_where_a_short_summary_passes() -> None:
    names = [f"PX-{4000 + number}" for number in range(60)]
    for trigger in ("messages", "manual"):
        message = frame(planned(talk(names), trigger), "They spoke.")
        assert set(summary_carried(message)) == set(names)
        assert estimate_message(message) <= SHORT_SUMMARY_TOKENS


def test_what_an_earlier_list_left_is_counted_on() -> None:
    old = summary_message("They spoke.", ["PX-1"], most_tokens=100, left=12)
    message = frame(planned([old, *talk(["PX-2"], 40)], "messages"), "They spoke.")
    assert summary_carried(message) == ["PX-2", "PX-1"]
    assert summary_left(message) == 12


def test_the_list_leaves_the_request_its_room() -> None:
    names = [f"https://a.example/orders/{number}" for number in range(400)]
    one = planned(talk(names), "tokens", window=3_000)
    message = frame(one, "They spoke.")
    assert estimate_message(message) <= one.summary_room


def test_only_what_somebody_stated_is_no_invention() -> None:
    known = [
        HumanMessage("Order PX-1 of $300."),
        AIMessage("", tool_calls=[{"name": "read", "args": {"path": "src/main/a.py"}, "id": "c"}]),
        AIMessage("It is ZX-2."),
    ]
    text = "PX-1, $300, ZX-2, src/main/a.py, QQ-3, PX-12 and KK-4."
    assert invented(text, known, instructions="keep KK-4") == ["QQ-3", "PX-12"]


def test_what_was_doubtful_stays_so_until_somebody_states_it() -> None:
    old = summary_message("PX-77 is late.", (), most_tokens=0)
    assert invented("PX-77", [old], instructions="", doubtful=["PX-77"]) == ["PX-77"]
    stated = [old, HumanMessage("PX-77 it is")]
    assert invented("PX-77", stated, instructions="", doubtful=["PX-77"]) == []
