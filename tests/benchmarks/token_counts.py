"""Count the samples with real tokenizers, and print the table of docs/token-estimate.md.

python tests/benchmarks/token_counts.py [qwen.tiktoken]

Needs `bpe-openai`. The vocabulary of Qwen is a file of the package `dashscope`; without it, the
counts of Qwen stay as they are.
"""

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path

import bpe_openai
import tiktoken

sys.path.insert(0, str(Path(__file__).parents[1]))
import token_samples

Count = Callable[[str], int]
QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def qwen(vocabulary: Path) -> Count:
    """Return what counts as Qwen does."""
    lines = [line.split() for line in vocabulary.read_bytes().splitlines() if line]
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    encoding = tiktoken.Encoding("qwen", pat_str=QWEN, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode(text))


def openai(name: str) -> Count:
    """Return what counts as a tokenizer of OpenAI's does."""
    encoding = bpe_openai.get_encoding(name)
    return lambda text: len(encoding.encode(text))


def main(vocabulary: str = "") -> None:
    """Write the counts and print the table."""
    counts = {name: openai(name) for name in ("o200k_base", "cl100k_base")}
    if vocabulary:
        counts["qwen"] = qwen(Path(vocabulary))
    known = json.loads(token_samples.COUNTS.read_text("utf-8"))
    new = {
        name: {
            "of": token_samples.mark(text),
            "tokens": known.get(name, {}).get("tokens", {})
            | {tokenizer: count(text) for tokenizer, count in counts.items()},
        }
        for name, text in token_samples.texts().items()
    }
    token_samples.COUNTS.write_text(json.dumps(new, indent=1) + "\n", "utf-8")
    sys.stdout.write(token_samples.table())


if __name__ == "__main__":
    main(*sys.argv[1:])
