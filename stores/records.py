"""Read and write many items of a store."""

from collections.abc import Sequence
from typing import Any

from langgraph.store.base import BaseStore, PutOp, SearchItem

from everlong.stores import gate, semantic
from everlong.stores.tombstones import UserForgottenError

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
    """Write one user's records in order, in batches that no store is too small for.

    What the user had forgotten is left out, also where that happens meanwhile.

    Raises:
        UserForgottenError: the user was forgotten; nothing is left of what was written.
    """
    user_id = gate.owner_of(puts)
    if user_id is None:
        return await _put(store, puts, at_once)
    before = await gate.known(store, user_id)
    written = gate.admitted(puts, before)
    await _put(store, written, at_once)
    try:
        after = await gate.known(store, user_id)
    except UserForgottenError:
        await _put(store, [put._replace(value=None) for put in puts], at_once)
        raise
    if after.digest != before.digest:
        left = gate.admitted(puts, after)
        await _put(store, [new for new, old in zip(left, written, strict=True) if new != old])
    return None


async def _put(store: BaseStore, puts: Sequence[PutOp], at_once: int = PUTS_AT_ONCE) -> None:
    for first in range(0, len(puts), at_once):
        await semantic.write(store, puts[first : first + at_once])
