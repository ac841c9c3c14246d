"""What is an overflow, what is not, and which numbers are read out of it; beside case A13."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.exceptions import ContextOverflowError

from everlong.nodes.overflow import Overflow, overflow_in
from provider_errors import ProviderError

OTHERS = """
# OpenAI, Azure, OpenAI's responses
128000 130001 This model's maximum context length is 128,000 tokens. However, your messages resulted in 130,001 tokens.
272000 300000 Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens. Please reduce the length of the messages.
- - Your input exceeds the context window of this model. Please adjust it.
# DeepSeek
131072 139265 This model's maximum context length is 131072 tokens. However, you requested 139265 tokens (135169 in the messages, 4096 in the completion).
# Anthropic
200000 207951 input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000, decrease input length or `max_tokens` and try again
# Vertex, Bedrock
32767 32770 Unable to submit request because the input token count is 32770 but model only supports up to 32767.
- - Input Tokens Exceeded: Number of input tokens exceeds maximum length.
# DashScope, Moonshot, MiniMax, Zhipu, Volcengine, SiliconFlow
98304 - InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]
262144 300123 Your request exceeded model token limit: 262144 (requested: 300123)
- - invalid params, context window exceeds limit (2013)
- - Prompt 超长
- - Total tokens of image and text exceed max message tokens.
32768 33000 Input length 33000 exceeds the maximum length 32768
32768 32790 length of prompt_tokens (32790) must be less than max_seq_len (32768).
- - 输入内容过长，超过模型最大上下文 32768
# xAI, Groq, OpenRouter, Cerebras, Fireworks, Mistral, Cohere, watsonx
131072 537812 This model's maximum prompt length is 131072 but the request contains 537812 tokens.
- - Please reduce the length of the messages or completion.
131072 146520 This endpoint's maximum context length is 131072 tokens. However, you requested about 146520 tokens (146520 of text input).
8192 9000 Please reduce the length of the messages. Current length is 9000 while limit is 8192
131071 140919 The prompt is too long: 140919, model maximum context length: 131071
32768 46231 Prompt contains 46231 tokens and 0 draft tokens, too large for model with 32768 maximum context length
4081 4150 too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4150.
4096 5000 the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model
# vLLM, SGLang, TGI, llama.cpp, LM Studio, Ollama
40960 40961 You passed 40961 input tokens and requested 0 output tokens. However, the model's context length is only 40960 tokens, resulting in a maximum input length of 40960 tokens.
4096 5000 The decoder prompt (length 5000) is longer than the maximum model length of 4096.
4096 5000 The input (5000 tokens) is longer than the model's context length (4096 tokens).
8192 7000 'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 8192 tokens and your request has 7000 input tokens (2000 > 8192 - 7000).
8193 9000 `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens
4095 5000 `inputs` must have less than 4095 tokens. Given: 5000
8192 12345 request (12345 tokens) exceeds the available context size (8192 tokens)
4096 - Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.
- - tokens to keep from the initial prompt is greater than the context length
- - the input length exceeds the context length
# Numbers in other clothes
128000 - The context window of 128k tokens is exceeded
1000000 - maximum context length is 1M tokens
1048576 - maximum context length is 1_048_576 tokens
"""  # noqa: E501 - the providers' words, as they come
"""Limit, requested and text of plain 400s."""

NEVER = """
429 - Too many tokens, please wait before trying again.
- - (ThrottlingException) Too many tokens per day, please wait before trying again.
400 - max_tokens is too large: 50000. This model supports at most 16384 completion tokens
400 - InvalidParameter: Range of max_tokens should be [1, 8192]
400 - Invalid max_tokens value, the valid range of max_tokens is [1, 8192]
429 - Quota exceeded for metric: paid_tier_input_token_count, limit: 1000000.
429 - This would exceed your organization's rate limit of 40,000 input tokens per minute.
429 - Rate limit reached on requests per day (RPD): Limit 1000, Used 999, Requested 1000.
429 - Rate limit reached on tokens per min (TPM): Limit 0, Used 0, Requested 500
400 - Invalid 'tools': array too long. Expected an array with maximum length 128
400 - Invalid 'messages[1].tool_calls[0].id': string too long. Expected maximum length 40
400 - image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes
400 - The `reasoning_content` in the thinking mode must be passed back to the API.
404 - The model `gpt-9` does not exist: its maximum context length is unknown
- - You have exceeded the token limit per minute of your plan.
503 - Model is overloaded, please try again later
400 - 'max_tokens' is too large: 90000. This model's maximum context length is 8192 tokens and your request has 100 input tokens.
- - Connection error.
"""  # noqa: E501 - the providers' words, as they come
"""Status, code, text."""


def rows(table: str, columns: int) -> list[list[Any]]:
    """Return the cells of each line: numbers, words, None for `-`, and the text that ends it."""
    lines = [line for line in table.strip().splitlines() if not line.startswith("# ")]
    cells = [line.split(" ", columns - 1) for line in lines]
    return [[None if c == "-" else int(c) if c.isdigit() else c for c in row] for row in cells]


@pytest.mark.parametrize(("limit", "requested", "text"), rows(OTHERS, 3))
def test_each_providers_wording_is_an_overflow(
    limit: int | None, requested: int | None, text: str
) -> None:
    assert overflow_in(ProviderError(text, 400)) == Overflow(limit, requested)
    assert overflow_in(ValueError({"message": text})) == Overflow(limit, requested)


@pytest.mark.parametrize(("status", "code", "text"), rows(NEVER, 3))
def test_something_else_is_no_overflow(status: int | None, code: str | None, text: str) -> None:
    assert overflow_in(ProviderError(text, status, code)) is None


def wrapped(error: Exception, by: Exception) -> Exception:
    with pytest.raises(type(by)) as caught:
        raise by from error
    return caught.value


def while_handling(error: Exception, by: Exception, *, hide: bool = False) -> Exception:
    by.__context__, by.__suppress_context__ = error, hide
    return by


FIRST = ProviderError("prompt is too long: 214411 tokens > 200000 maximum", 400)


def test_a_wrapped_overflow_is_found() -> None:
    once = wrapped(FIRST, RuntimeError("model node failed"))
    assert overflow_in(wrapped(once, ValueError("run failed"))) == Overflow(200000, 214411)


def test_an_overflow_in_whose_handling_another_error_came_is_found() -> None:
    assert overflow_in(while_handling(FIRST, ValueError("odd"))) == Overflow(200000, 214411)


def test_a_context_that_was_cut_off_is_not_searched() -> None:
    assert overflow_in(while_handling(FIRST, ValueError("odd"), hide=True)) is None


def test_an_overflow_in_a_group_is_found() -> None:
    group = ExceptionGroup("two", [ValueError("x"), ExceptionGroup("one", [FIRST])])
    assert overflow_in(group) == Overflow(200000, 214411)


def test_a_chain_that_bites_its_tail_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    assert overflow_in(one) is None


def test_langchains_own_error_is_an_overflow_whatever_it_says() -> None:
    assert overflow_in(ContextOverflowError("no words")) == Overflow(None, None)


def test_the_report_that_names_a_limit_is_taken() -> None:
    vague = wrapped(FIRST, ContextOverflowError("too long"))
    assert overflow_in(vague) == Overflow(200000, 214411)


def test_the_code_alone_is_enough() -> None:
    assert overflow_in(ProviderError("Bad request", 400, "context_length_exceeded"))
    assert overflow_in(ProviderError("Bad request", 400, body={"code": "context_length_exceeded"}))


def test_llama_cpps_numbers_are_read_from_the_body() -> None:
    body = {"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9412, "n_ctx": 8192}}
    assert overflow_in(ProviderError("Bad request", 400, body=body)) == Overflow(8192, 9412)


def test_botocores_errors_carry_their_status_in_a_mapping() -> None:
    error = ProviderError("Too large")
    error.response = {"ResponseMetadata": {"HTTPStatusCode": 413}}  # type: ignore[attr-defined]
    assert overflow_in(error) == Overflow(None, None)


def test_a_request_that_the_provider_repeats_is_not_read_as_its_words() -> None:
    text = "Invalid value. Input: " + "x" * 5_000 + " prompt is too long"
    assert overflow_in(ProviderError(text, 400)) is None


WORDS = st.sampled_from(
    ["maximum context length is", "prompt is too long:", "limit", "requested", "+", ">", "tokens"]
)
NUMBERS = st.from_regex(r"[\d,_.]{1,400}[ ]?[km]?", fullmatch=True)


@given(st.lists(WORDS | NUMBERS | st.text(max_size=5)))
def test_no_text_breaks_the_reading(words: list[str]) -> None:
    found = overflow_in(ProviderError(" ".join(words), 413))
    assert found
    assert found.limit is None or found.limit >= 256
