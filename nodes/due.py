"""Whether enough time has passed, by the call's own instant."""

from datetime import datetime, timedelta
from typing import Any

from langgraph.store.base import BaseStore

from everlong.nodes.run import Run
from everlong.stores import ledger


def minutes_between(earlier: str, later: str) -> float:
    """Return the minutes between two ISO instants; infinite when the earlier one is empty."""
    if not earlier:
        return float("inf")
    span = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    return span / timedelta(minutes=1)


async def flush_due(run: Run, store: BaseStore) -> bool:
    """Tell whether the user's flush rule lets this call flush (R43)."""
    rule = run.context.memory.flush
    if isinstance(rule, str):
        return rule == "always"
    return minutes_between(await ledger.last_flush(store, run.user_id), run.instant) >= rule


def consolidation_gap_passed(run: Run, recalled: dict[str, Any]) -> bool:
    """Tell whether an automatic consolidation may run: at once the first time, then by the gap."""
    settings = run.context.memory
    if settings.consolidate != "auto":
        return False
    last = str(recalled.get("consolidated_at", ""))
    return minutes_between(last, run.instant) >= settings.consolidate_every_minutes
