"""Whether enough time has passed, by the call's own instant."""

from datetime import datetime, timedelta
from typing import Any

from langgraph.store.base import BaseStore

from everlong.nodes.run import Run
from everlong.nodes.tokens import estimate_text
from everlong.stores import flushes


def minutes_between(earlier: str, later: str) -> float:
    """Return the minutes between two ISO instants; infinite when the earlier one is empty."""
    if not earlier:
        return float("inf")
    span = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    return span / timedelta(minutes=1)


async def flush_turn(run: Run, store: BaseStore) -> str | None:
    """Take the call's turn to flush (R43); None where the user's flush rule gives it none.

    Under a throttle the turn is noted in the store: whoever asks next, in whichever process, waits
    for the gap. Returns what `turn_back` needs where the flush comes to nothing.

    Raises:
        Exception: the store's own, when the last turn cannot be read or this one not be noted.
    """
    rule = run.context.memory.flush
    if isinstance(rule, str):
        return "" if rule == "always" else None

    def may(last: str) -> bool:
        return minutes_between(last, run.instant) >= rule

    return await flushes.take_turn(store, run.user_id, run.instant, may=may)


async def turn_back(run: Run, store: BaseStore, turn: str) -> None:
    """Let the next call flush where this one could not."""
    if not isinstance(run.context.memory.flush, str):
        await flushes.give_back(store, run.user_id, run.instant, turn)


def consolidation_gap_passed(run: Run, recalled: dict[str, Any]) -> bool:
    """Tell whether an automatic consolidation may run: at once the first time, then by the gap.

    Also where MEMORY.md, with what was saved since, is over its limit (R48).
    """
    settings = run.context.memory
    if settings.consolidate != "auto":
        return False
    if estimate_text(str(recalled.get("text", ""))) > settings.document_tokens:
        return True
    last = str(recalled.get("consolidated_at", ""))
    return minutes_between(last, run.instant) >= settings.consolidate_every_minutes
