"""R6: the estimate against real tokenizers, on texts of every kind; counts are recorded."""

from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

import token_samples
from everlong.nodes.tokens import estimate_message, estimate_text

DOCUMENT = Path(__file__).parents[3] / "docs" / "token-estimate.md"
KINDS = ("chat-zh", "chat-en", "code", "json", "table", "result")
LONG_TOKENS = 300


@pytest.mark.parametrize("sample", token_samples.samples().values(), ids=lambda one: one.name)
def test_the_estimate_is_within_a_quarter_of_o200k(sample: token_samples.Sample) -> None:
    assert abs(sample.error_of(estimate_text(sample.text))) <= 0.25


@pytest.mark.parametrize("sample", token_samples.samples().values(), ids=lambda one: one.name)
def test_in_a_message_or_a_tool_result_a_text_costs_what_it_costs_alone(
    sample: token_samples.Sample,
) -> None:
    alone = estimate_text(sample.text)
    said = (HumanMessage(sample.text), ToolMessage(sample.text, tool_call_id="c1"))
    for message in (*said, HumanMessage([{"type": "text", "text": sample.text}])):
        assert alone <= estimate_message(message) <= alone + 20


@pytest.mark.parametrize("sample", token_samples.samples().values(), ids=lambda one: one.name)
def test_in_a_calls_arguments_a_text_costs_about_what_it_costs_alone(
    sample: token_samples.Sample,
) -> None:
    call = {"name": "write", "args": {"text": sample.text}, "id": "c1", "type": "tool_call"}
    alone = estimate_text(sample.text)
    assert alone <= estimate_message(AIMessage("", tool_calls=[call])) <= 1.35 * alone + 40


def test_there_are_long_texts_of_every_kind() -> None:
    for kind in KINDS:
        of_kind = [each for name, each in token_samples.samples().items() if name.startswith(kind)]
        assert of_kind, kind
        assert all(each.tokens["o200k_base"] > LONG_TOKENS for each in of_kind)


def test_the_documentation_says_what_was_measured() -> None:
    assert token_samples.table() in DOCUMENT.read_text("utf-8"), "run token_counts.py"
