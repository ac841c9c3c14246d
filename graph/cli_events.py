"""What a run tells while it works, each event in one line. Pure."""

from collections.abc import Mapping
from typing import Any


def line_of(event: Mapping[str, Any]) -> str:
    """Return the line that tells an event."""
    kind = str(event.get("type", "event"))
    tell = _LINES.get(kind)
    return tell(event) if tell else kind


def _started(event: Mapping[str, Any]) -> str:
    reason = _TRIGGERS.get(event["trigger"], event["trigger"])
    return f"compacting {event['messages']:,} messages, {event['tokens']:,} tokens ({reason}) ..."


def _finished(event: Mapping[str, Any]) -> str:
    outcome = event["outcome"]
    if outcome == "nothing to replace":
        return "nothing to compact: all that is there is what would be kept"
    if outcome == "shortened":
        return f"shortened: {event['tokens_before']:,} → {event['tokens_after']:,} tokens"
    if outcome != "done":
        return f"not compacted ({outcome}): {event['reason']}"
    summary = int(event["by"] != "window")
    kept = event["messages_after"] - summary
    made = "1 summary + " if summary else ""
    by_code = " (an extract made by code: no summary could be had)"
    return (
        f"compacted: {event['messages_before']:,} messages → {made}{kept:,}; "
        f"{event['tokens_before']:,} → {event['tokens_after']:,} tokens"
        f"{by_code if event['by'] == 'digest' else ''}"
    )


def _evicted(event: Mapping[str, Any]) -> str:
    what = event.get("what", "tool result")
    return f"evicted: a {what} of {event['chars']:,} characters → {event['path']}"


def _flushed(event: Mapping[str, Any]) -> str:
    facts = event["facts"]
    if not facts:
        return "memory: nothing new to keep"
    unverified = f", {event['unverified']} unverified" if event.get("unverified") else ""
    return f"memory: {facts} fact{'' if facts == 1 else 's'} written to the ledger{unverified}"


def _queued(event: Mapping[str, Any]) -> str:
    count = event["messages"]
    return f"memory: {count} message{'' if count == 1 else 's'} left to a worker"


def _consolidated(event: Mapping[str, Any]) -> str:
    entries = event["entries"]
    noun = "entry" if entries == 1 else "entries"
    return f"memory: MEMORY.md rewritten from {entries} ledger {noun}"


_TRIGGERS = {
    "messages": "at the limit of messages",
    "tokens": "at the limit of tokens",
    "overflow": "too long for the model",
    "manual": "as asked",
}
_LINES = {
    "compaction.started": _started,
    "compaction.finished": _finished,
    "eviction": _evicted,
    "memory.flushed": _flushed,
    "memory.queued": _queued,
    "memory.consolidated": _consolidated,
}
