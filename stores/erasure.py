"""Forget a user: every record, file and checkpoint, and nothing written again (R49).

The mark comes first: what is under way for the user is refused from then on. Then everything goes,
until a look finds nothing: what was written just before the mark was seen goes in the next round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore, PutOp

from everlong.stores import tombstones
from everlong.stores.namespaces import OWNER, raw
from everlong.stores.sweeping import namespaces_of, update_index
from everlong.stores.users import SWEEP, sweep_is_at

Saver = BaseCheckpointSaver[Any]
ROUNDS = 5
ITEMS_AT_ONCE = 50
"""Each may be near a megabyte."""
OF_THREADS = frozenset({"transcripts", "compactions", "finished_calls"})
"""Kinds whose next label is a thread's id."""


@runtime_checkable
class OwnSaver(Protocol):
    """Our checkpointer: it knows whose threads it has, and refuses a forgotten user's."""

    async def threads_of(self, user_id: str) -> list[str]: ...  # noqa: D102 - as `PooledSaver`

    async def owner_of(self, thread_id: str) -> str: ...  # noqa: D102

    async def refuse_user(self, user_id: str) -> None: ...  # noqa: D102

    async def allow_user(self, user_id: str) -> None: ...  # noqa: D102


@dataclass(frozen=True, kw_only=True)
class Erased:
    """What was erased of a user."""

    records: int
    threads: tuple[str, ...]
    """The ids of the user's threads, whose checkpoints are gone as far as `saver` had them."""
    left: int = 0
    """Records and threads that a last look still found; 0, unless somebody goes on writing."""


async def forget_user(
    store: BaseStore, user_id: str, *, saver: Saver | None = None, at: str
) -> Erased:
    """Erase everything of a user; from now on nothing is written for the id.

    Without `saver`, or with one that is not ours, a call that is under way may still write the
    thread's next checkpoint; a server's own list of threads is the server's to clear.
    """
    await tombstones.mark_user(store, user_id, at=at)
    if isinstance(saver, OwnSaver):
        await saver.refuse_user(user_id)
    records, threads = 0, set[str]()
    for _ in range(ROUNDS):
        found = await threads_of(store, user_id, saver)
        removed = await _empty(store, user_id)
        deleted = await _delete(saver, user_id, found)
        records, threads = records + removed, threads | set(found)
        if not removed and not deleted:
            break
    await update_index(store, user_id)
    if await sweep_is_at(store, user_id, threads):
        await store.adelete(*SWEEP)  # it begins anew
    left = await _held(store, user_id) + len(await _in_saver(saver, user_id))
    return Erased(records=records, threads=tuple(sorted(threads)), left=left)


async def allow_again(store: BaseStore, user_id: str, *, saver: Saver | None = None) -> bool:
    """Let the id of a user who was forgotten be used again; return whether it was forgotten."""
    was = await tombstones.user_is_marked(store, user_id)
    await tombstones.allow_user(store, user_id)
    if isinstance(saver, OwnSaver):
        await saver.allow_user(user_id)
    return was


async def threads_of(store: BaseStore, user_id: str, saver: Saver | None) -> list[str]:
    """Return the ids of the user's threads: those with records, and those with checkpoints.

    So those are found that keep no transcript, and those whose first call was cut off.
    """
    places = await namespaces_of(store, user_id)
    recorded = {raw(one[3]) for one in places if len(one) > 3 and one[2] in OF_THREADS}  # noqa: PLR2004 - a thread's
    return sorted(recorded | set(await _in_saver(saver, user_id)))


async def _held(store: BaseStore, user_id: str) -> int:
    """Return in how many namespaces of the user there is still something."""
    places = await namespaces_of(store, user_id)
    return sum([len(await store.asearch(place, limit=1)) for place in places])


async def _in_saver(saver: Saver | None, user_id: str) -> list[str]:
    if saver is None:
        return []
    if isinstance(saver, OwnSaver):
        return await saver.threads_of(user_id)
    found: set[str] = set()
    async for one in saver.alist(None):
        values = one.checkpoint["channel_values"]
        metadata = cast("dict[str, Any]", one.metadata)
        if user_id in (values.get("owner"), metadata.get(OWNER)):
            found.add(str(one.config.get("configurable", {}).get("thread_id")))
    return sorted(found)


async def _delete(saver: Saver | None, user_id: str, threads: Sequence[str]) -> int:
    """Delete the threads' checkpoints; an id that is now another user's thread is left alone."""
    if saver is None:
        return 0
    own = set(await _in_saver(saver, user_id))
    for thread_id in threads:
        if thread_id in own or not await _has_owner(saver, thread_id):
            await saver.adelete_thread(thread_id)
    return len(own)


async def _has_owner(saver: Saver, thread_id: str) -> bool:
    if isinstance(saver, OwnSaver):
        return bool(await saver.owner_of(thread_id))
    found = await saver.aget_tuple({"configurable": {"thread_id": thread_id}})
    return bool(found and found.checkpoint["channel_values"].get("owner"))


async def _empty(store: BaseStore, user_id: str) -> int:
    """Remove every item of every namespace of the user, some at a time; return how many."""
    count = 0
    for place in await namespaces_of(store, user_id):
        while found := await store.asearch(place, limit=ITEMS_AT_ONCE):
            own = [item for item in found if item.namespace[:2] == place[:2]]
            await store.abatch([PutOp(item.namespace, item.key, None) for item in own])
            count += len(own)
            if not own:
                break
    return count
