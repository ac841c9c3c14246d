"""How the record of a compaction looks: a row of a table, a few lines, or all of it. Pure."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from rich.cells import cell_len

from everlong.graph.wrapping import printable
from everlong.stores.amounts import amount
from everlong.stores.compactions import BEGUN, MESSAGE_IDS

Receipt = Mapping[str, Any]
NONE = "none"
GAP = "  "
SUMMARIES = {"digest": ", an extract made by code", "window": f"{NONE}: the older part is left out"}


def row_of(receipt: Receipt) -> dict[str, str]:
    """Return what a list of attempts says of one, by column; what has no bound comes last."""
    return {name: printable(tell(receipt)) for name, tell in _COLUMNS.items()}


def table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the rows in lines, column under column, below their names."""
    everything = [{name: name.upper() for name in rows[0]}, *rows]
    widths = {name: max(cell_len(row[name]) for row in everything) for name in rows[0]}
    return [
        GAP.join(
            text + " " * (widths[name] - cell_len(text)) for name, text in row.items()
        ).rstrip()
        for row in everything
    ]


def fields_of(receipt: Receipt) -> dict[str, str]:
    """Return all that a receipt says, by name: what a list says of it, then the rest."""
    known = row_of(receipt)
    more = {name: printable(tell(receipt)) for name, tell in _MORE.items()}
    rest = {
        name.replace("_", " "): printable(_plain(value))
        for name, value in receipt.items()
        if name not in _TOLD
    }
    return {name: text for name, text in (known | more | rest).items() if text}


def places_of(receipt: Receipt) -> str:
    """Say where the transcript has the originals; empty where it has none."""
    ranges = cast("Sequence[Sequence[int]]", receipt.get("transcript", ()))
    return ", ".join(f"#{a}" if a == b else f"#{a} to #{b}" for a, b in ranges)


def outcome_of(receipt: Receipt) -> str:
    """Say what came of an attempt, and why."""
    outcome, reason = str(receipt["outcome"]), str(receipt.get("reason", ""))
    if outcome == BEGUN:
        outcome = "begun, and not seen to end"
    return f"{outcome}: {' '.join(reason.split())}" if reason else outcome


def _change(receipt: Receipt, what: str) -> str:
    before, after = receipt.get(f"{what}_before", 0), receipt.get(f"{what}_after", 0)
    return f"{before:,} → {after:,}"


def _summary(receipt: Receipt) -> str:
    if receipt.get("by") == "window":
        return SUMMARIES["window"]
    if "summary_tokens" not in receipt:
        return NONE
    return amount(receipt["summary_tokens"], "token") + SUMMARIES.get(receipt.get("by", ""), "")


def _cut(receipt: Receipt) -> str:
    if "plain_cut" not in receipt:
        return NONE
    plain, safe = receipt["plain_cut"], receipt["safe_cut"]
    moved = "" if plain == safe else f" (plain {plain})"
    return f"{safe}{moved}: {receipt.get('cut_reason', '')}"


def _took(receipt: Receipt) -> str:
    milliseconds = int(receipt.get("milliseconds", 0))
    return f"{milliseconds} ms" if milliseconds < 1_000 else f"{milliseconds / 1_000:,.1f} s"  # noqa: PLR2004


def _requests(receipt: Receipt) -> str:
    count, usage = int(receipt.get("requests", 0)), receipt.get("usage", {})
    if not count:
        return NONE
    spent = ", ".join(f"{number:,} {kind}" for kind, number in usage.items())
    return f"{amount(count, 'request')} for the summary: {spent} tokens"


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        return ", ".join(_plain(one) for one in cast("list[Any]", value))
    return json.dumps(value, ensure_ascii=False, default=str)


_COLUMNS: dict[str, Callable[[Receipt], str]] = {
    "id": lambda receipt: str(receipt["id"]),
    "when": lambda receipt: str(receipt["at"]),
    "trigger": lambda receipt: str(receipt.get("trigger") or NONE),
    "messages": lambda receipt: _change(receipt, "messages"),
    "tokens": lambda receipt: _change(receipt, "tokens"),
    "model": lambda receipt: str(receipt.get("model") or NONE),
    "took": _took,
    "carried over": lambda receipt: f"{receipt.get('carried_over', 0):,}",
    "summary": _summary,
    "outcome": outcome_of,
    "cut": _cut,
}
_MORE: dict[str, Callable[[Receipt], str]] = {
    "request": lambda receipt: f"{_change(receipt, 'request')} tokens, with all fixed parts",
    "requests": _requests,
    "replaced": lambda receipt: amount(int(receipt.get("replaced", 0)), "message"),
    "originals": places_of,
    "identifiers": lambda receipt: _plain(receipt.get("carried", [])),
    "nobody stated": lambda receipt: _plain(receipt.get("invented", [])),
    "message ids": lambda receipt: _plain(receipt.get(MESSAGE_IDS, [])),
}
_TOLD = frozenset(
    {
        *("id", "at", "trigger", "model", "milliseconds", "carried_over", "outcome", "reason"),
        *(
            f"{what}_{when}"
            for what in ("messages", "tokens", "request")
            for when in ("before", "after")
        ),
        *("by", "summary_tokens", "plain_cut", "safe_cut", "cut_reason", "requests", "usage"),
        *("replaced", "transcript", "carried", "invented", MESSAGE_IDS),
    }
)
"""Fields that the names above tell."""
