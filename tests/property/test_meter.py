"""R6: the running count is the count, whatever happens to the history."""

from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

import strategies
from everlong.nodes.meter import after_answer, counted, recounted, request_tokens, uncounted
from everlong.nodes.state import Meter
from everlong.nodes.tokens import estimate_messages


@settings(max_examples=60)
@given(strategies.transcripts(), st.data())
def test_counting_on_equals_counting_anew(messages, data):
    cut = data.draw(st.integers(0, len(messages)))
    meter = counted(messages[:cut], Meter())
    assert counted(messages, meter).get("tokens") == recounted(messages).get("tokens")


@settings(max_examples=60)
@given(strategies.transcripts(), st.data())
def test_a_history_that_lost_a_message_is_counted_anew(messages, data):
    if len(messages) < 2:
        return
    meter = recounted(messages)
    gone = data.draw(st.integers(0, len(messages) - 2))
    left = [*messages[:gone], *messages[gone + 1 :]]
    assert counted(left, meter).get("tokens") == estimate_messages(left)


def test_only_new_messages_are_looked_at():
    old = [HumanMessage("a" * 1000, id=f"m{number}") for number in range(50)]
    meter = recounted(old)
    new = HumanMessage("b", id="new")
    assert list(uncounted([*old, new], meter)) == [new]


def test_what_the_provider_reported_replaces_the_estimate_of_its_prefix():
    asked = [HumanMessage("x" * 400, id="h1")]
    answer = AIMessage("fine", id="a1")
    meter = after_answer(counted(asked, Meter()), answer, input_tokens=5_000, fixed_tokens=700)
    history = [*asked, answer, HumanMessage("next", id="h2")]
    now = counted(history, meter)
    size = request_tokens(now, fixed_tokens=700)
    assert 5_000 < size < 5_050
    assert request_tokens(now, fixed_tokens=900) == size + 200


def test_a_recount_forgets_what_was_reported():
    meter = recounted([HumanMessage("x", id="h1")])
    assert request_tokens(meter, fixed_tokens=10) == meter.get("tokens", 0) + 10
