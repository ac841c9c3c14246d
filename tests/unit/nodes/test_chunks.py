"""A conversation in parts that a summariser's window holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everlong.nodes.chunks import chunks
from everlong.nodes.rendering import render_messages
from everlong.nodes.tokens import estimate_text

TALK = [
    HumanMessage(f"Order PX-{number}. " + "as agreed " * 20, id=f"h{number}") for number in range(9)
]


def sizes(parts):
    return [estimate_text(render_messages(part)) for part in parts]


@given(st.integers(min_value=60, max_value=2_000))
def test_every_message_is_in_one_part_in_order_and_no_part_is_too_long(most):
    parts = chunks(TALK, most)
    assert [message for part in parts for message in part] == TALK
    assert max(sizes(parts)) <= most + len(TALK)


@pytest.mark.parametrize(
    "message",
    [
        HumanMessage("HEAD " + "word " * 9_000 + "TAIL"),
        HumanMessage("HEAD " + "订单已确认" * 9_000 + "TAIL"),
        AIMessage(
            "HEAD " + "word " * 9_000, tool_calls=[{"name": "t", "args": {"x": "TAIL"}, "id": "c"}]
        ),
        AIMessage(
            "HEAD",
            tool_calls=[{"name": "t", "args": {"x": "word " * 9_000 + "TAIL"}, "id": "c"}],
        ),
        ToolMessage("HEAD " + "word " * 9_000 + "TAIL", tool_call_id="c", name="t"),
    ],
    ids=["user", "Chinese", "assistant", "arguments", "result"],
)
def test_one_message_over_the_limit_keeps_head_and_tail(message):
    parts = chunks([*TALK[:2], message, *TALK[2:4]], 700)
    assert max(sizes(parts)) <= 700
    rendered = "\n".join(map(render_messages, parts))
    assert "HEAD" in rendered
    assert "TAIL" in rendered
    assert "characters left out" in rendered
    assert all(one.text in rendered for one in TALK[:4])


def test_an_empty_conversation_is_one_empty_part():
    assert chunks([], 100) == [[]]
