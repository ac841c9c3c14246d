"""Work that outlives the call that left it (R50): one record, in the user's namespace, per call.

A record says which messages have to be flushed: where the transcript has them, or, where no
transcript is kept, it holds them. `work_queue` claims records and settles them.
"""

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal
from uuid import uuid4

from langchain_core.messages import BaseMessage, messages_from_dict
from langgraph.store.base import BaseStore, Item, PutOp

from everlong.stores import transcripts
from everlong.stores.namespaces import space
from everlong.stores.records import put_all
from everlong.stores.text import clean, clean_text
from everlong.stores.turns import alone

KIND = "work"
Status = Literal["due", "done", "failed"]
_TOKEN = uuid4().hex[:16]
_LISTENERS: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a call has left to do, and how far that is."""

    key: str
    user_id: str
    thread_id: str
    instant: str
    """When the call began, which is when its facts were said: ISO 8601, UTC."""
    first: str = ""
    """Id of the call's first new message."""
    ids: tuple[str, ...] = ()
    """The messages to flush; none: only a consolidation may be due."""
    places: tuple[tuple[int, int], ...] = ()
    """Where the transcript has them: first and last number, each."""
    messages: tuple[str, ...] = ()
    """Themselves, as JSON, where no transcript has them."""
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of the call, as far as they matter."""
    unnamed: bool = False
    """Its model has no name that another process could make one of."""
    process: str = ""
    """Which process wrote it."""
    status: Status = "due"
    by: str = ""
    """Who is at it."""
    free_at: float = 0.0
    """Seconds since 1970, by the database's clock: nobody else takes it before."""
    tries: int = 0
    reason: str = ""
    """Why the last try failed."""

    @property
    def place(self) -> str:
        """Whose it is and of which thread, for people."""
        return f"{self.user_id} / {self.thread_id}" if self.thread_id else self.user_id


def process() -> str:
    """Name this process."""
    return f"{_TOKEN}-{os.getpid()}"


def key_of(instant: str, thread_id: str, ids: Sequence[str], *, first: int = 0) -> str:
    """Return the key of a record: the same messages of a call have one record.

    It sorts by time, then by the first message's place in its thread.
    """
    spelled = json.dumps([clean_text(one) for one in (thread_id, *ids)]).encode()
    moment = re.sub(r"[^0-9TZ]", "", instant)
    return f"{moment}-{first:08d}-{hashlib.sha256(spelled).hexdigest()[:16]}"


async def add(store: BaseStore, work: Work, *, again: bool = False) -> bool:
    """Write a record, unless it is there already, done or not; return whether it was new.

    `again`: one that is done or has failed is no reason not to.

    Raises:
        UserForgottenError: the user was forgotten.
    """
    place = space(work.user_id, KIND)
    async with alone(KIND, work.user_id, store=store):
        found = await store.aget(place, work.key)
        if found is not None and not (again and found.value["status"] != "due"):
            return False
        await put_all(store, [PutOp(place, work.key, value_of(work), index=False)])
    wake()
    return True


async def messages_of(store: BaseStore, work: Work) -> list[BaseMessage]:
    """Return the messages of a record, in order, as far as they are still there."""
    if work.messages:
        return messages_from_dict([json.loads(one) for one in work.messages])
    wanted = set(work.ids)
    found: dict[str, transcripts.Entry] = {}
    for first, last in work.places:
        entries = await transcripts.read_between(store, work.user_id, work.thread_id, first, last)
        found |= {one.message_id: one for one in entries if one.message_id in wanted}
    if wanted - set(found):  # the history was edited, and its numbers are others
        entries = await transcripts.read(store, work.user_id, work.thread_id)
        found |= {one.message_id: one for one in entries if one.message_id in wanted}
    return transcripts.messages_of(sorted(found.values(), key=lambda one: one.number))


def value_of(work: Work) -> dict[str, Any]:
    """Return a record as it is stored; its namespace says whose it is."""
    value = asdict(work)
    return clean({name: value[name] for name in value if name not in ("key", "user_id")})


def work_of(user_id: str, key: str, value: dict[str, Any]) -> Work:
    """Return the record that was stored as `value`; what a newer version added is left out."""
    known = {one.name for one in fields(Work)}
    given: dict[str, Any] = {name: each for name, each in value.items() if name in known}
    given |= {"key": key, "user_id": user_id, "ids": tuple(value["ids"])}
    given["messages"] = tuple(value.get("messages", ()))
    given["places"] = tuple((first, last) for first, last in value["places"])
    return Work(**given)


def works_of(user_id: str, items: Iterable[Item]) -> list[Work]:
    """Return the records that items of a user's hold."""
    return [work_of(user_id, one.key, one.value) for one in items]


@contextmanager
def listening() -> Generator[asyncio.Event]:
    """Yield an event of the running loop that is set when this process writes or ends a record."""
    listener = (asyncio.get_running_loop(), asyncio.Event())
    _LISTENERS.add(listener)
    try:
        yield listener[1]
    finally:
        _LISTENERS.discard(listener)


def wake() -> None:
    """Tell whoever listens in this process that a record has changed."""
    for loop, event in list(_LISTENERS):
        if not loop.is_closed():
            loop.call_soon_threadsafe(event.set)
