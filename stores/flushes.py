"""When a user was last flushed, for the throttle (R43): durable, and one for all processes."""

from collections.abc import Callable

from langgraph.store.base import BaseStore, PutOp

from everlong.stores.namespaces import space
from everlong.stores.records import put_all
from everlong.stores.turns import alone

KEY = "last"


async def take_turn(
    store: BaseStore, user_id: str, instant: str, *, may: Callable[[str], bool]
) -> str | None:
    """Note a flush at `instant` where `may`, asked of the last one, allows; else return None.

    Returns the instant of the one before, empty where there was none: `give_back` takes it.
    """
    place = space(user_id, "flushes")
    async with alone("flushes", user_id, store=store):
        item = await store.aget(place, KEY)
        last = str(item.value["at"]) if item else ""
        if not may(last):
            return None
        await put_all(store, [PutOp(place, KEY, {"at": instant}, index=False)])
    return last


async def give_back(store: BaseStore, user_id: str, instant: str, last: str) -> None:
    """Take the note of a flush at `instant` back, which came to nothing."""
    place = space(user_id, "flushes")
    async with alone("flushes", user_id, store=store):
        item = await store.aget(place, KEY)
        if item is not None and item.value["at"] == instant:
            value = {"at": last} if last else None
            await put_all(store, [PutOp(place, KEY, value, index=False)])
