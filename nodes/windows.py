"""How much a model takes in: from its own profile, else from a small table. Pure.

Hosts differ (a local server often runs a model with less), so a run's own setting goes before
both; a figure that is too small only compacts sooner.
"""

import re
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True)
class Limits:
    """A model's limits, in tokens."""

    window: int
    """Prompt and answer together; for a few models (gpt-5 to gpt-5.2) the prompt alone."""
    output: int | None = None
    """The longest answer; None: not known."""


def window_of(model: BaseChatModel) -> int | None:
    """Return the model's context window in tokens; None: nobody knows, the caller says so."""
    limits = limits_of(model)
    return limits.window if limits else None


def limits_of(model: BaseChatModel) -> Limits | None:
    """Return the model's limits: its profile's, else the table's for its name.

    A profile's `max_input_tokens` is the whole window, but for gpt-5 to gpt-5.2, where it is
    what the window of 400,000 leaves beside the longest answer. Taken as the window, that is safe.
    """
    profile = model.profile or {}
    window = profile.get("max_input_tokens")
    if window:  # 0 for models that make pictures or vectors
        return Limits(window, profile.get("max_output_tokens") or None)
    return known_limits(name_of(model))


def name_of(model: BaseChatModel | str) -> str:
    """Return the name under which the provider knows the model; else its class's name."""
    if isinstance(model, str):
        return model
    given: Any = (
        getattr(model, attribute, None) for attribute in ("model_name", "model", "model_id")
    )
    return next((name for name in given if isinstance(name, str) and name), type(model).__name__)


def known_limits(name: str) -> Limits | None:
    """Return the table's limits for the longest of its entries that the name begins with.

    A name begins anew after a provider: `openai:gpt-4o`, `deepseek/deepseek-flash`,
    `us.anthropic.claude-sonnet-4`.
    """
    name = name.lower()
    starts = [0, *(match.end() for match in re.finditer(r"[/:.@]", name))]
    found = [prefix for prefix in TABLE for start in starts if name.startswith(prefix, start)]
    return TABLE[max(found, key=len)] if found else None


TABLE: dict[str, Limits] = {
    "claude": Limits(200_000),
    "codestral": Limits(256_000),
    "deepseek": Limits(128_000),
    "deepseek-flash": Limits(1_000_000, 384_000),
    "deepseek-v4": Limits(1_000_000, 384_000),
    "gemini": Limits(1_048_576),
    "gemini-1.5-pro": Limits(2_097_152),
    "glm-4": Limits(128_000),
    "glm-4-long": Limits(1_000_000),
    "glm-4.6": Limits(200_000),
    "glm-4.7": Limits(200_000),
    "glm-5": Limits(200_000),
    "glm-5.2": Limits(1_000_000),
    "gpt-3.5": Limits(16_385),
    "gpt-4": Limits(8_192),
    "gpt-4-0125": Limits(128_000),
    "gpt-4-1106": Limits(128_000),
    "gpt-4-32k": Limits(32_768),
    "gpt-4-turbo": Limits(128_000),
    "gpt-4.1": Limits(1_047_576, 32_768),
    "gpt-4o": Limits(128_000, 16_384),
    "gpt-5": Limits(272_000, 128_000),
    "gpt-5.3": Limits(400_000, 128_000),
    "gpt-5.4": Limits(1_050_000, 128_000),
    "gpt-5.4-mini": Limits(400_000, 128_000),
    "gpt-5.4-nano": Limits(400_000, 128_000),
    "gpt-5.5": Limits(1_050_000, 128_000),
    "gpt-5.6": Limits(1_050_000, 128_000),
    "gpt-6": Limits(1_050_000, 128_000),
    "gpt-oss": Limits(131_072),
    "grok-3": Limits(131_072),
    "grok-4": Limits(256_000),
    "kimi": Limits(131_072),
    "kimi-k2.5": Limits(262_144),
    "kimi-k2.6": Limits(262_144),
    "kimi-k2.7": Limits(262_144),
    "kimi-k3": Limits(1_048_576),
    "llama-3": Limits(8_192),
    "llama-3.1": Limits(131_072),
    "llama-3.2": Limits(131_072),
    "llama-3.3": Limits(131_072),
    "llama-4": Limits(131_072),
    "llama3": Limits(8_192),
    "llama3.1": Limits(131_072),
    "llama3.2": Limits(131_072),
    "llama3.3": Limits(131_072),
    "llama4": Limits(131_072),
    "m2-her": Limits(65_536),
    "meta-llama-3": Limits(8_192),
    "meta-llama-3.1": Limits(131_072),
    "minimax-m2": Limits(204_800),
    "minimax-m3": Limits(1_000_000),
    "mistral": Limits(32_768),
    "mistral-large": Limits(128_000),
    "mistral-medium": Limits(128_000),
    "mistral-small": Limits(128_000),
    "moonshot-v1": Limits(131_072),
    "moonshot-v1-32k": Limits(32_768),
    "moonshot-v1-8k": Limits(8_192),
    "o1": Limits(200_000, 100_000),
    "o1-mini": Limits(128_000, 65_536),
    "o1-preview": Limits(128_000, 32_768),
    "o3": Limits(200_000, 100_000),
    "o4": Limits(200_000, 100_000),
    "qvq": Limits(131_072),
    "qwen": Limits(32_768),
    "qwen-flash": Limits(1_000_000),
    "qwen-long": Limits(10_000_000),
    "qwen-plus": Limits(131_072),
    "qwen-turbo": Limits(1_000_000),
    "qwen2.5": Limits(131_072),
    "qwen3": Limits(131_072),
    "qwen3-0.6b": Limits(32_768),
    "qwen3-1.7b": Limits(32_768),
    "qwq": Limits(131_072),
}
"""By the beginning of the name. Source: the providers' pages and AgentScope Java's table."""
