"""What a model says a request cost, in whichever shape it says it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage


@dataclass(frozen=True)
class Usage:
    """The provider's own figures for one request, in tokens."""

    input: int
    """The whole prompt, with what came from the provider's cache."""
    cached: int
    """The part of `input` that came from the cache."""
    output: int


def usage_of(message: AIMessage) -> Usage | None:
    """Return what the provider reported with the answer; None: it reported nothing."""
    raw = _raw_of(message)
    known = message.usage_metadata
    if known and known["input_tokens"]:
        details = cast("Mapping[str, Any]", known.get("input_token_details") or {})
        # `priority_cache_read`, `flex_cache_read`: the service tier comes before it.
        cached = sum(_count(v) for k, v in details.items() if k.endswith("cache_read"))
        cached = cached or cached_tokens(raw) or 0
        return Usage(known["input_tokens"], cached, known["output_tokens"])
    return _usage_in(raw)


def cached_tokens(raw: Mapping[str, Any]) -> int | None:
    """Return the cached tokens that a provider's own usage record names; None: it names none."""
    places = (
        (raw.get("prompt_tokens_details"), "cached_tokens"),  # OpenAI, Qwen, GLM, vLLM
        (raw.get("input_tokens_details"), "cached_tokens"),  # OpenAI's responses
        (raw, "prompt_cache_hit_tokens"),  # DeepSeek
        (raw, "cached_tokens"),  # Moonshot
        (raw, "cache_read_input_tokens"),  # Anthropic
        (raw, "cacheReadInputTokens"),  # Bedrock
        (raw, "cached_content_token_count"),  # Gemini
    )
    for place, name in places:
        value = cast("Mapping[str, Any]", place).get(name) if isinstance(place, Mapping) else None
        if isinstance(value, int):
            return value
    return None


def _raw_of(message: AIMessage) -> Mapping[str, Any]:
    """Return the provider's own record, under the name that its package keeps it."""
    metadata: Mapping[str, Any] = message.response_metadata
    for name in ("token_usage", "usage", "usage_metadata"):
        if isinstance(metadata.get(name), Mapping):
            return metadata[name]
    return {}


def _usage_in(raw: Mapping[str, Any]) -> Usage | None:
    cached = cached_tokens(raw) or 0
    prompt = _first(raw, "prompt_tokens", "prompt_token_count")
    if not prompt:
        prompt = _first(raw, "input_tokens", "inputTokens")
        if {"cache_read_input_tokens", "cacheReadInputTokens"} & set(raw):
            # Anthropic and Bedrock count what was read from or written to the cache apart.
            prompt += cached + _first(raw, "cache_creation_input_tokens", "cacheWriteInputTokens")
    output = _first(
        raw, "completion_tokens", "output_tokens", "outputTokens", "candidates_token_count"
    )
    return Usage(prompt, cached, output) if prompt else None


def _first(raw: Mapping[str, Any], *names: str) -> int:
    return next((_count(raw[name]) for name in names if _count(raw.get(name))), 0)


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0
