"""Texts of our own with the tokens that real tokenizers count in them, and our estimate of each.

`tests/benchmarks/token_counts.py` counts them anew.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from langchain_core.messages import HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from everlong.nodes.tokens import estimate_text

HERE = Path(__file__).parent
COUNTS = HERE / "golden" / "tokens.json"
HEAD = (
    "| text | o200k_base | estimate | cl100k_base | Qwen | approximate |\n"
    "|---|---:|---:|---:|---:|---:|\n"
)


@dataclass(frozen=True)
class Sample:
    """One text."""

    name: str
    text: str
    tokens: Mapping[str, int]
    """By tokenizer."""

    def error_of(self, estimate: int, tokenizer: str = "o200k_base") -> float:
        """Return by which share an estimate differs from the truth."""
        return estimate / self.tokens[tokenizer] - 1


def texts() -> dict[str, str]:
    """Return the texts by name."""
    return {path.stem: path.read_text("utf-8") for path in sorted((HERE / "samples").glob("*.txt"))}


@cache
def samples() -> dict[str, Sample]:
    """Return the samples by name.

    Raises:
        ValueError: a text is new or changed since it was counted.
    """
    counted = json.loads(COUNTS.read_text("utf-8"))
    found = texts()
    stale = {name for name, text in found.items() if counted.get(name, {}).get("of") != mark(text)}
    if stale or set(counted) != set(found):
        msg = f"expected counts of {sorted(found)}; {sorted(stale)} changed: run token_counts.py"
        raise ValueError(msg)
    return {name: Sample(name, text, counted[name]["tokens"]) for name, text in found.items()}


def mark(text: str) -> str:
    """Return what tells a text from a changed one."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def table() -> str:
    """Return the table of the documentation: how far the estimate is from each tokenizer."""
    return HEAD + "".join(_row(sample) for sample in samples().values())


def _row(sample: Sample) -> str:
    estimate = estimate_text(sample.text)
    approximate = count_tokens_approximately([HumanMessage(sample.text)])
    errors = [
        f"{sample.error_of(one, name):+.0%}".replace("-0%", "+0%")
        for one, name in (
            (estimate, "o200k_base"),
            (estimate, "cl100k_base"),
            (estimate, "qwen"),
            (approximate, "o200k_base"),
        )
    ]
    return f"| {sample.name} | {sample.tokens['o200k_base']:,} | {' | '.join(errors)} |\n"
