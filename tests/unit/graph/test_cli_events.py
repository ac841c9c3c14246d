"""The lines that tell what a run does."""

import pytest

from everlong.graph.cli_events import line_of

DONE = {
    "type": "compaction.finished",
    "outcome": "done",
    "by": "model",
    "reason": "",
    "messages_before": 50,
    "messages_after": 21,
    "tokens_before": 41_200,
    "tokens_after": 6_100,
}

COMPACTED = "compacted: 50 messages → 1 summary + 20; 41,200 → 6,100 tokens"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"type": "compaction.started", "trigger": "tokens", "messages": 50, "tokens": 41_200},
            "compacting 50 messages, 41,200 tokens (at the limit of tokens) ...",
        ),
        (DONE, COMPACTED),
        (
            DONE | {"by": "window"},
            "compacted: 50 messages → 21; 41,200 → 6,100 tokens",
        ),
        (
            DONE | {"by": "digest"},
            f"{COMPACTED} (an extract made by code: no summary could be had)",
        ),
        (
            DONE | {"outcome": "refused", "reason": "it is empty"},
            "not compacted (refused): it is empty",
        ),
        (
            DONE | {"outcome": "nothing to replace", "reason": "no change"},
            "nothing to compact: all that is there is what would be kept",
        ),
        (
            DONE | {"outcome": "shortened", "reason": "3 messages shortened"},
            "shortened: 41,200 → 6,100 tokens",
        ),
        (
            {"type": "eviction", "chars": 90_000, "path": "large_tool_results/a.txt"},
            "evicted: a tool result of 90,000 characters → large_tool_results/a.txt",
        ),
        ({"type": "memory.flushed", "facts": 0}, "memory: nothing new to keep"),
        ({"type": "memory.flushed", "facts": 1}, "memory: 1 fact written to the ledger"),
        ({"type": "memory.flushed", "facts": 2}, "memory: 2 facts written to the ledger"),
        (
            {"type": "memory.consolidated", "entries": 2},
            "memory: MEMORY.md rewritten from 2 ledger entries",
        ),
        ({"type": "something.new", "n": 1}, "something.new"),
    ],
)
def test_each_event_is_one_line(event, line):
    assert line_of(event) == line
