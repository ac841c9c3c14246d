"""Read and write many items of a store."""

from collections.abc import Sequence
from typing import Any

from langgraph.store.base import BaseStore, PutOp, SearchItem

PUTS_AT_ONCE = 500
FIRST_LIMIT = 10_000


async def all_items(
    store: BaseStore, namespace: tuple[str, ...], *, matching: dict[str, Any] | None = None
) -> list[SearchItem]:
    """Return every item below a namespace, in no order.

    One search with room for all: pages by offset lose items that others move by writing.
    """
    limit = FIRST_LIMIT
    while len(found := await store.asearch(namespace, filter=matching, limit=limit)) == limit:
        limit *= 4
    return found


async def put_all(store: BaseStore, puts: Sequence[PutOp], *, at_once: int = PUTS_AT_ONCE) -> None:
    """Write in order, in batches that no store is too small for."""
    for first in range(0, len(puts), at_once):
        await store.abatch(puts[first : first + at_once])
