"""What may say what is asked: all of a plain store, or what a word index chooses.

From an index come the blocks that hold most of what is asked; how rare that is in all of them comes
along, since among the chosen ones it no longer is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar, cast

from langgraph.store.base import BaseStore, GetOp, Item

from everlong.stores import entries, ledger, ledger_archive, semantic, transcripts
from everlong.stores.lexicon import Unit, units_of
from everlong.stores.namespaces import raw, space
from everlong.stores.word_table import words_of

BLOCKS = 24
NEIGHBOURS = 2
"""Messages around a block that are read with it: they add weight, or are short and answer."""
NEAR = 20
"""What a search by meaning adds to one by words."""
Entry = TypeVar("Entry")


@dataclass(frozen=True, kw_only=True)
class Candidates(Generic[Entry]):
    """Entries among which those are that say what is asked."""

    entries: Sequence[Entry] = ()
    rarities: Mapping[Unit, float] | None = None
    """How rare what is asked for is; None where these are all entries."""


async def messages(
    store: BaseStore, user_id: str, query: str, *, thread_id: str | None
) -> Candidates[transcripts.Entry]:
    """Return messages of a thread, or of all, by thread and number."""
    if not units_of(query) or thread_id == "":
        return Candidates()
    words = words_of(store)
    if words is None:
        threads = await transcripts.threads(store, user_id) if thread_id is None else [thread_id]
        read = [one for name in threads for one in await transcripts.glance(store, user_id, name)]
        return Candidates(entries=read)
    below = () if thread_id is None else (thread_id,)
    best = await words.best(space(user_id, "transcripts", *below), query, limit=BLOCKS)
    found = await words.items(best.blocks, margin=NEIGHBOURS)
    likely = [transcripts.entry_of(raw(item.namespace[-1]), item.value) for item in found]
    return Candidates(entries=likely, rarities=best.rarities)


async def facts(
    store: BaseStore, user_id: str, query: str, *, archived: bool
) -> Candidates[entries.Entry]:
    """Return entries of the ledger, or of its archive, as verdicts on their facts leave them."""
    if not units_of(query):
        return Candidates()
    words = words_of(store)
    if words is None:
        read = ledger_archive.entries if archived else ledger.entries
        return Candidates(entries=await read(store, user_id))
    kind = (ledger_archive.KIND,) if archived else ("ledger", "entries")
    best = await words.best(space(user_id, *kind), query, limit=BLOCKS)
    likely = [entries.entry_of(item.value) for item in await words.items(best.blocks)]
    if not archived:
        likely = await _standing(store, user_id, likely)
    return Candidates(entries=likely, rarities=best.rarities)


async def near_facts(
    store: BaseStore, user_id: str, query: str, *, archived: bool
) -> list[entries.Entry]:
    """Return the entries whose meaning is nearest; none where the store does not embed."""
    kind = (ledger_archive.KIND,) if archived else ("ledger", "entries")
    found = await semantic.nearest(store, space(user_id, *kind), query, limit=NEAR)
    near = [entries.entry_of(item.value) for item in found]
    return near if archived else await _standing(store, user_id, near)


async def near_messages(
    store: BaseStore, user_id: str, query: str, *, thread_id: str | None
) -> list[transcripts.Entry]:
    """Return the messages whose meaning is nearest; none where the store does not embed."""
    if thread_id == "":
        return []
    below = () if thread_id is None else (thread_id,)
    place = space(user_id, "transcripts", *below)
    found = await semantic.nearest(store, place, query, limit=NEAR)
    return [transcripts.entry_of(raw(item.namespace[-1]), item.value) for item in found]


async def _standing(
    store: BaseStore, user_id: str, read: Sequence[entries.Entry]
) -> list[entries.Entry]:
    """Return entries of the ledger as verdicts on their facts leave them."""
    keys = [fact.key for entry in read for fact in entry.facts]
    place = space(user_id, "ledger", "verdicts")
    items = cast("list[Item | None]", await store.abatch([GetOp(place, key) for key in keys]))
    verdicts = {item.key: item.value for item in items if item is not None}
    return [replace(one, facts=tuple(ledger.standing(one.facts, verdicts))) for one in read]
