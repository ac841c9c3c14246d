"""Estimates add up, never fall when something is added, and take anything."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.tokens import (
    estimate_message,
    estimate_messages,
    estimate_text,
    tail_size,
)
from strategies import QUICK, contents, json_values, transcripts

alphabet = st.sampled_from(list("abZQ 01.,-_\"'\n\t{}[]=/─汉字ありé한я😀\x00\ud800"))
texts = st.one_of(st.text(max_size=80), st.text(alphabet, max_size=40))


@QUICK
@given(texts, texts)
def test_a_longer_text_never_costs_less(text: str, more: str) -> None:
    assert estimate_text(text) <= estimate_text(text + more)


@QUICK
@given(texts, texts)
def test_texts_together_cost_about_the_sum(one: str, other: str) -> None:
    together = estimate_text(one + other)
    apart = estimate_text(one) + estimate_text(other)
    assert together <= apart + 2
    assert together >= max(estimate_text(one), estimate_text(other)) - 2


@QUICK
@given(texts)
def test_no_text_is_free_but_the_empty_one(text: str) -> None:
    assert (estimate_text(text) > 0) == bool(text)


@QUICK
@given(transcripts(), transcripts())
def test_estimates_of_messages_add_up(one: list[BaseMessage], other: list[BaseMessage]) -> None:
    both = estimate_messages([*one, *other])
    assert both == estimate_messages(one) + estimate_messages(other)
    assert all(estimate_message(each) <= tail_size(each) for each in one)


@QUICK
@given(contents)
def test_any_content_can_be_counted(content: Any) -> None:
    for message in (
        HumanMessage(content),
        AIMessage(content),
        ToolMessage(content, tool_call_id="c"),
    ):
        assert estimate_message(message) > 0


@QUICK
@given(contents, st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_a_call_never_makes_a_message_cheaper(content: Any, args: dict[str, Any]) -> None:
    calls = [{"name": "look", "args": args, "id": "c1", "type": "tool_call"}]
    without = HumanMessage(content)
    assert estimate_message(AIMessage(content, tool_calls=calls)) > estimate_message(without)
