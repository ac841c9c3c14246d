"""Each shape in which a cost is reported."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from everlong.nodes.usage import Usage, usage_of

KNOWN: Any = {"input_tokens": 1200, "output_tokens": 30, "total_tokens": 1230}


def raw(usage: dict[str, Any], name: str = "token_usage") -> AIMessage:
    return AIMessage("", response_metadata={name: usage})


SHAPES = [
    (
        "OpenAI",
        raw(
            {
                "prompt_tokens": 1200,
                "completion_tokens": 30,
                "prompt_tokens_details": {"cached_tokens": 1024},
            }
        ),
    ),
    (
        "OpenAI's responses",
        raw(
            {
                "input_tokens": 1200,
                "output_tokens": 30,
                "input_tokens_details": {"cached_tokens": 1024},
            }
        ),
    ),
    (
        "DeepSeek",
        raw(
            {
                "prompt_tokens": 1200,
                "completion_tokens": 30,
                "prompt_cache_hit_tokens": 1024,
                "prompt_cache_miss_tokens": 176,
            }
        ),
    ),
    ("Moonshot", raw({"prompt_tokens": 1200, "completion_tokens": 30, "cached_tokens": 1024})),
    (
        "Anthropic counts the cached apart",
        raw(
            {
                "input_tokens": 100,
                "output_tokens": 30,
                "cache_read_input_tokens": 1024,
                "cache_creation_input_tokens": 76,
            },
            "usage",
        ),
    ),
    (
        "Bedrock",
        raw(
            {
                "inputTokens": 100,
                "outputTokens": 30,
                "cacheReadInputTokens": 1024,
                "cacheWriteInputTokens": 76,
            },
            "usage",
        ),
    ),
    (
        "Gemini",
        raw(
            {
                "prompt_token_count": 1200,
                "candidates_token_count": 30,
                "cached_content_token_count": 1024,
            },
            "usage_metadata",
        ),
    ),
    (
        "LangChain's own",
        AIMessage("", usage_metadata=KNOWN | {"input_token_details": {"cache_read": 1024}}),
    ),
    (
        "LangChain's own, of a service tier",
        AIMessage(
            "", usage_metadata=KNOWN | {"input_token_details": {"priority_cache_read": 1024}}
        ),
    ),
    (
        "DeepSeek through langchain-openai",
        AIMessage(
            "",
            usage_metadata=KNOWN,
            response_metadata={"token_usage": {"prompt_cache_hit_tokens": 1024}},
        ),
    ),
]


@pytest.mark.parametrize(("message"), [m for _, m in SHAPES], ids=[name for name, _ in SHAPES])
def test_the_whole_prompt_and_its_cached_part_are_read(message: AIMessage) -> None:
    assert usage_of(message) == Usage(input=1200, cached=1024, output=30)


def test_nothing_cached_is_zero() -> None:
    assert usage_of(AIMessage("", usage_metadata=KNOWN)) == Usage(1200, 0, 30)
    assert usage_of(raw({"prompt_tokens": 9, "completion_tokens": 1})) == Usage(9, 0, 1)


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("Hello."),
        raw({}),
        AIMessage("", response_metadata={"token_usage": None}),
        raw({"prompt_tokens": None, "completion_tokens": None, "prompt_tokens_details": None}),
        AIMessage("", usage_metadata={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}),
    ],
)
def test_nothing_reported_is_none(message: AIMessage) -> None:
    assert usage_of(message) is None
