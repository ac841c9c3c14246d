"""What a list of compactions says of each attempt, whatever became of it."""

from rich.cells import cell_len

from everlong.graph.cli_receipts import fields_of, places_of, row_of, table
from everlong.stores.compactions import BEGUN, MESSAGE_IDS

DONE = {
    "id": "698bf499ae75a669",
    "number": 1,
    "at": "2026-03-01T12:20:49.852Z",
    "trigger": "messages",
    "outcome": "done",
    "reason": "",
    "by": "model",
    "model": "offline",
    "plain_cut": 7,
    "safe_cut": 6,
    "cut_reason": "the cut would part a call from its result: the pair stays",
    "replaced": 6,
    "messages_before": 9,
    "messages_after": 4,
    "tokens_before": 1240,
    "tokens_after": 305,
    "request_before": 2440,
    "request_after": 1505,
    "summary_tokens": 82,
    "carried_over": 3,
    "carried": ["PX-4471", "CTX-009", "夜莺"],
    "milliseconds": 1540,
    "requests": 1,
    "usage": {"input": 1603, "cached": 0, "output": 61},
    "transcript": [[0, 3], [5, 5]],
    MESSAGE_IDS: ["h1", "a1"],
}
UNPLANNED = {"id": "0", "at": "2026-03-01T12:20:49Z", "outcome": "failed", "reason": "OSError: no"}


def test_a_row_says_when_why_what_and_how_much():
    assert row_of(DONE) == {
        "id": "698bf499ae75a669",
        "when": "2026-03-01T12:20:49.852Z",
        "trigger": "messages",
        "messages": "9 → 4",
        "tokens": "1,240 → 305",
        "model": "offline",
        "took": "1.5 s",
        "carried over": "3",
        "summary": "82 tokens",
        "outcome": "done",
        "cut": "6 (plain 7): the cut would part a call from its result: the pair stays",
    }


def test_an_attempt_that_came_to_nothing_says_why():
    refused = {**DONE, "outcome": "refused", "reason": "not smaller: 95 tokens\nfor 56"}
    assert row_of(refused)["outcome"] == "refused: not smaller: 95 tokens for 56"
    assert row_of({**DONE, "outcome": BEGUN})["outcome"] == "begun, and not seen to end"
    row = row_of(UNPLANNED)
    assert (row["outcome"], row["cut"]) == ("failed: OSError: no", "none")
    assert (row["trigger"], row["model"], row["summary"]) == ("none",) * 3


def test_a_summary_that_no_model_made_is_told_as_such():
    digest = {**DONE, "by": "digest", "summary_tokens": 1}
    assert row_of(digest)["summary"] == "1 token, an extract made by code"
    window = {name: value for name, value in DONE.items() if name != "summary_tokens"}
    assert row_of(window | {"by": "window"})["summary"].startswith("none: ")


def test_a_receipt_in_full_leaves_nothing_out_and_says_nothing_twice():
    fields = fields_of({**DONE, "instructions": "keep the\nherons", "later": {"a": 1}})
    assert fields["identifiers"] == "PX-4471, CTX-009, 夜莺"
    assert fields["originals"] == places_of(DONE) == "#0 to #3, #5"
    assert fields["message ids"] == "h1, a1"
    assert fields["requests"].startswith("1 request for the summary: 1,603 input, 0 cached, 61 out")
    assert fields["instructions"] == "keep the herons"
    assert fields["later"] == '{"a": 1}'
    assert fields["number"] == "1"
    assert "nobody stated" not in fields
    assert list(fields.values()).count("2026-03-01T12:20:49.852Z") == 1
    assert fields_of(UNPLANNED)["outcome"] == "failed: OSError: no"


def test_a_table_is_aligned_by_cells_and_each_attempt_is_one_line():
    other = {**DONE, "model": "夜莺夜莺夜莺", "outcome": "refused", "reason": "a\x1b[2J b"}
    head, first, second = table([row_of(DONE), row_of(other)])
    at = cell_len(head.partition("TOOK")[0])
    assert cell_len(first.partition("1.5 s")[0]) == cell_len(second.partition("1.5 s")[0]) == at
    assert "\x1b" not in second
