"""Whose thread it is, and stays: who had it run."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.store.base import BaseStore
from langgraph.types import Command

from everlong.graph.callers import Caller
from everlong.nodes.errors import InvalidInputError
from everlong.stores.namespaces import asking
from everlong.stores.tombstones import user_is_marked

log = logging.getLogger("everlong.call")


def refuse_other_owner(given: Any, owner: str) -> None:
    """Refuse to make a thread another's by an edit, or by what a command writes.

    A thread that nobody had run is whose request it is, where a server knows.

    Raises:
        InvalidInputError: it would be another's.
    """
    update: Any = given.update if isinstance(given, Command) else given
    named: Any = cast("Any", update).get("owner") if isinstance(update, Mapping) else None
    if isinstance(update, list | tuple):
        pairs = cast("Sequence[Any]", update)
        named = next((pair[1] for pair in pairs if pair[0] == "owner"), None)
    own = owner or asking.get()
    if own and named not in (None, own):
        msg = f"`owner`: expected none, or {own!r}, whose thread it is; got {named!r}"
        raise InvalidInputError(msg)


def refuse_stranger(user_id: str, thread_id: str, owner: str) -> None:
    """Refuse a run of another user's thread.

    Raises:
        InvalidInputError: it is one.
    """
    if owner not in ("", user_id):
        msg = (
            f"`thread_id`: {thread_id!r} is not a thread of {user_id!r}. "
            "Use an id of your own; a new id begins a new thread."
        )
        raise InvalidInputError(msg)


async def is_forgotten(store: Any, user_id: str) -> bool:
    """Tell whether nothing may be written for the user; a store that fails is no reason."""
    if not isinstance(store, BaseStore):
        return False
    try:
        return await user_is_marked(store, user_id)
    except Exception:
        log.exception("The store cannot be read; the call goes on without it")
        return False


async def owner_of(caller: Caller, thread_id: str) -> str:
    """Return whose thread it is now; our own saver tells without loading it.

    Inside another graph the thread is that one's, and what is held under our node tells.
    """
    saver = caller.saver
    if saver is None or caller.is_inside:
        return ""
    tell = getattr(saver, "owner_of", None)
    if tell is not None:
        return await tell(thread_id)
    found = await saver.aget_tuple({"configurable": {"thread_id": thread_id}})
    return str(found.checkpoint["channel_values"].get("owner", "")) if found else ""
