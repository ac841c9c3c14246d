"""What `everlong memory review` does: facts that could not be verified, and a person's verdict."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from langgraph.store.base import BaseStore

from everlong.graph.agent import utc_now
from everlong.graph.cli_memory_lines import MARGIN, quoted
from everlong.graph.cli_open import opened_store
from everlong.graph.cli_settings import context_for
from everlong.graph.cli_tables import put_json
from everlong.graph.terminal import err, put
from everlong.stores import ledger, memory, provenance
from everlong.stores.entries import Entry, Fact
from everlong.stores.provenance import Origin

Verdict = Literal["confirm", "reject"]
SHOWN_IDS = 10


async def listing(user_id: str, *, as_json: bool, dsn: str | None) -> int:
    """Print the facts that wait for a review, oldest first, each with its doubt and sources."""
    async with opened_store(dsn) as store:
        found = await memory.review(store, user_id)
        known = provenance.Ledger(store, user_id)
        origins = await known.origins([fact.key for _, fact in found])
    rows = [(entry, fact, one) for (entry, fact), one in zip(found, origins, strict=True)]
    if as_json:
        put_json([_as_data(*row) for row in rows])
        return 0
    for row in rows:
        _put(*row)
    if not rows:
        put(f"Nothing of {user_id} waits for a review.", style="dim", to=err)
    else:
        own = f"everlong memory review --user {user_id}"
        put(f"`{own} confirm ID` makes one a saved fact; `reject ID` drops it.", style="dim")
    return 0


async def judge(user_id: str, verdict: Verdict, ident: str, *, dsn: str | None) -> int:
    """Confirm or reject a fact.

    Raises:
        LookupError: none of this id waits for a review, or more than one.
    """
    context = context_for(user_id, None)
    async with opened_store(dsn) as store:
        fact = await _find(store, user_id, ident)
        if verdict == "reject":
            await ledger.reject(store, user_id, fact.key)
            put(f"Rejected: {fact.text}", indent="  ")
            return 0
        await ledger.confirm(
            store, user_id, fact.key, instant=utc_now().isoformat(), zone=context.time_zone
        )
    put(f"Confirmed, and part of MEMORY.md from now on: {fact.text}", indent="  ")
    return 0


def short(fact_key: str) -> str:
    """Return a fact's key without the time that it begins with."""
    return fact_key.rpartition("-")[2]


async def _find(store: BaseStore, user_id: str, ident: str) -> Fact:
    """Return the fact of this id, or the only one whose id begins so."""
    waiting = [fact for _, fact in await memory.review(store, user_id)]
    exact = [fact for fact in waiting if ident in (fact.key, short(fact.key))]
    begun = [fact for fact in waiting if ident and _begins(fact.key, ident)]
    found: Sequence[Fact] = exact or begun
    if len(found) == 1:
        return found[0]
    ids = ", ".join(short(fact.key) for fact in (found or waiting)[:SHOWN_IDS])
    what = "more of the fact's id" if found else f"the id of an unverified fact of {user_id}"
    msg = f"expected {what}; got {ident!r}; there is: {ids or 'none'}."
    raise LookupError(msg)


def _begins(fact_key: str, ident: str) -> bool:
    return fact_key.startswith(ident) or short(fact_key).startswith(ident)


def _put(entry: Entry, fact: Fact, origin: Origin) -> None:
    put(f"  {fact.text}", lead=short(fact.key), lead_style="bold cyan", indent=MARGIN)
    put(f"doubt: {fact.doubt}", lead=MARGIN, indent=MARGIN + "  ")
    put(f"Source: {origin.source} [{entry.kind}, {entry.at}]", style="dim", lead=MARGIN)
    for said in origin.said:
        put(quoted(said), style="dim", lead=MARGIN, indent=MARGIN + "  ")


def _as_data(entry: Entry, fact: Fact, origin: Origin) -> dict[str, Any]:
    return {
        "id": short(fact.key),
        "key": fact.key,
        "text": fact.text,
        "doubt": fact.doubt,
        "at": entry.at,
        "thread": entry.thread_id,
        "source": origin.source,
        "said": [asdict(said) for said in origin.said],
    }
