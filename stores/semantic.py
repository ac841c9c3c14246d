"""Search by meaning, where the store embeds what it holds: LangGraph's own index (`index=`).

What is embedded: the entries of the ledger, archived or not, and what people and the assistant say.
An embedder that fails costs what it would have found, never a record and never a search.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import cast

from langgraph.store.base import BaseStore, PutOp, SearchItem, SearchOp

log = logging.getLogger("everlong.search")

SEARCH_SECONDS = 5.0
WRITE_SECONDS = 60.0


def may_embed(store: BaseStore) -> bool:
    """Tell whether a store embeds; one that hides it, as a server's own does, may."""
    return bool(getattr(store, "index_config", True))


async def nearest(
    store: BaseStore, namespace: tuple[str, ...], query: str, *, limit: int
) -> list[SearchItem]:
    """Return the items below a namespace whose meaning is nearest; none where nothing embeds.

    Asked for apart from what others ask of the store in the same tick, which would fail with it.
    """
    if not query.strip() or not may_embed(store):
        return []
    try:
        async with asyncio.timeout(SEARCH_SECONDS):
            asked = [SearchOp(namespace, None, limit, 0, query)]
            (found,) = cast("list[list[SearchItem]]", await store.abatch(asked))
    except Exception:
        log.warning("The search by meaning failed; words alone are looked for", exc_info=True)
        return []
    return [item for item in found if item.score is not None]  # without: it was not embedded


async def write(store: BaseStore, puts: Sequence[PutOp]) -> None:
    """Write; where the embedder fails, what it should have embedded is found by words alone.

    Raises:
        Exception: the store's own.
    """
    if not may_embed(store) or all(put.value is None or put.index is False for put in puts):
        await store.abatch(puts)
        return
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await store.abatch(puts)
    except Exception as error:  # noqa: BLE001 - the embedder's errors are its provider's own
        await store.abatch([put._replace(index=False) for put in puts])
        log.warning(
            "The embedder failed; %d records are found by words alone: %r", len(puts), error
        )
