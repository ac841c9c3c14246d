"""The transcript of each thread: every message, whole, and when it was said (R17, R62).

One item per message. A message that was moved out of the history before it came here keeps the
reference to its text in `additional_kwargs` (`everlong_evicted`), which `full_text` follows.
"""

import asyncio
import base64
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, message_to_dict, messages_from_dict
from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from everlong.stores import files
from everlong.stores.namespaces import key, raw, space
from everlong.stores.records import FIRST_LIMIT, all_items, put_all
from everlong.stores.search import scores, terms_of
from everlong.stores.text import clean, clean_text

EVICTED = "everlong_evicted"
NOT_KEPT = ("response_metadata", "usage_metadata")
MOST_CHARS = 200_000
"""Longer messages go to the user's files, so that no value is over a megabyte."""
NEIGHBOURS = 2
NEIGHBOUR_WEIGHT = 0.25


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One message of a transcript."""

    thread_id: str
    number: int
    """Its place in the thread, from 0; two branches of a thread may hold the same."""
    message_id: str
    role: str
    """human, ai, tool or system."""
    at: str
    """When its call began: ISO 8601, UTC."""
    text: str
    """What it says and the calls it makes: the first 200,000 characters."""
    stored: str
    """The message as JSON; `messages_of` makes it a message again. Empty in a hit, where long."""
    path: str
    """The user's file that holds `stored`, where it is long."""


@dataclass(frozen=True, kw_only=True)
class Hit:
    """An entry that a search found, among its neighbours."""

    entry: Entry
    score: float
    before: tuple[Entry, ...]
    after: tuple[Entry, ...]


async def append(  # noqa: PLR0913 - whose, what, where, when
    store: BaseStore,
    user_id: str,
    thread_id: str,
    messages: Sequence[BaseMessage],
    *,
    first: int,
    instant: str,
    may_be_there: bool = True,
) -> int:
    """Add messages, numbered from `first`; return how many were new.

    One that is there already stays as it is, so a preview never takes the place of its original;
    a caller that knows better (`may_be_there`) spares the look.
    """
    place = space(user_id, "transcripts", thread_id)
    names = [f"{n:08d}-{key(one.id or _spelled(one))}" for n, one in enumerate(messages, first)]
    held = await _held(store, place, names) if may_be_there else set[str]()
    puts: list[PutOp] = []
    for number, (name, message) in enumerate(zip(names, messages, strict=True), first):
        if name not in held:
            value = {
                "number": f"{number:08d}",
                "message_id": message.id or "",
                "role": message.type,
                "at": instant,
            } | await pack(store, user_id, message)
            text = _says(message)[:MOST_CHARS]
            if text != message.content or not value["stored"]:
                value["text"] = text  # else `stored` has the very same
            puts.append(PutOp(place, name, clean(value), index=["text"]))
    await put_all(store, puts)
    return len(puts)


async def read(
    store: BaseStore, user_id: str, thread_id: str, *, first: int = 0, limit: int | None = None
) -> list[Entry]:
    """Return the thread's entries from a number on, in order, at most `limit`.

    Raises:
        LookupError: the file of a long message is gone.
    """
    end = None if limit is None else first + limit
    found = await _between(store, user_id, thread_id, first, end)
    if limit is not None and len(found) < limit:  # a gap in the numbers, or the end
        found += await _between(store, user_id, thread_id, first + limit)
    return [
        replace(entry, stored=await unpack(store, user_id, entry.stored, entry.path))
        for entry in found[:limit]
    ]


async def threads(store: BaseStore, user_id: str) -> list[str]:
    """Return the ids of the user's threads that have a transcript."""
    above = space(user_id, "transcripts")
    limit = FIRST_LIMIT
    while len(found := await store.alist_namespaces(prefix=above, limit=limit)) == limit:
        limit *= 4
    return sorted(raw(namespace[len(above)]) for namespace in found)


async def full_text(store: BaseStore, user_id: str, entry: Entry) -> str:
    """Return what the message said before anything of it was moved away or cut."""
    stored = await unpack(store, user_id, entry.stored, entry.path)
    (message,) = messages_from_dict([json.loads(stored)])
    reference = message.additional_kwargs.get(EVICTED)
    path = cast("dict[str, Any]", reference).get("path") if isinstance(reference, dict) else None
    whole = None
    with suppress(ValueError):  # whoever sent the message may have made the reference up
        whole = await files.read_text(store, user_id, path) if isinstance(path, str) else None
    return _says(message) if whole is None else whole


def messages_of(entries: Iterable[Entry]) -> list[BaseMessage]:
    """Return the messages of entries that were read."""
    return messages_from_dict([json.loads(entry.stored) for entry in entries])


def to_jsonl(entries: Iterable[Entry]) -> str:
    """Return entries that were read as JSON Lines."""
    lines = [
        {"thread_id": e.thread_id, "number": e.number, "at": e.at, "message": json.loads(e.stored)}
        for e in entries
    ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


async def pack(store: BaseStore, user_id: str, message: BaseMessage) -> dict[str, str]:
    """Return `stored` and `path` for a message; a long one is written to the user's files."""
    stored = _spelled(message)
    if len(stored) <= MOST_CHARS:
        return {"stored": stored, "path": ""}
    path = f"transcripts/{files.digest_of(stored)}.json"
    await files.write(store, user_id, path, stored)
    return {"stored": "", "path": path}


async def unpack(store: BaseStore, user_id: str, stored: str, path: str) -> str:
    """Return the JSON of a message that `pack` packed.

    Raises:
        LookupError: its file is gone.
    """
    if not path:
        return stored
    text = await files.read_text(store, user_id, path)
    if text is None:
        msg = f"expected the file {path!r}, which holds a long message; it is gone"
        raise LookupError(msg)
    return text


async def search(
    store: BaseStore, user_id: str, query: str, *, thread_id: str | None = None, limit: int = 10
) -> list[Hit]:
    """Return the entries that say what is asked, best first; neighbours that do so add weight."""
    asked = terms_of(query)
    chosen = await threads(store, user_id) if thread_id is None else [thread_id]
    entries: list[Entry] = []
    for one in chosen if asked else ():
        entries += await _between(store, user_id, one, 0)
    own = await asyncio.to_thread(scores, [entry.text for entry in entries], asked)
    hits = [_hit(entries, own, index) for index, score in enumerate(own) if score > 0]
    best = sorted(hits, key=lambda hit: (hit.score, hit.entry.at, hit.entry.number), reverse=True)
    return best[:limit]


def _hit(entries: Sequence[Entry], own: Sequence[float], index: int) -> Hit:
    near = [
        other
        for other in range(max(index - NEIGHBOURS, 0), min(index + NEIGHBOURS + 1, len(entries)))
        if entries[other].thread_id == entries[index].thread_id
    ]
    return Hit(
        entry=entries[index],
        score=own[index] + NEIGHBOUR_WEIGHT * sum(own[other] for other in near if other != index),
        before=tuple(entries[other] for other in near if other < index),
        after=tuple(entries[other] for other in near if other > index),
    )


async def _between(
    store: BaseStore, user_id: str, thread_id: str, first: int, end: int | None = None
) -> list[Entry]:
    """Return the entries with numbers from `first` to before `end`, in order."""
    bounds = {"$gte": f"{first:08d}"} | ({} if end is None else {"$lt": f"{end:08d}"})
    place = space(user_id, "transcripts", thread_id)
    items = await all_items(store, place, matching={"number": bounds})
    return [_entry(thread_id, item.value) for item in sorted(items, key=lambda item: item.key)]


def _entry(thread_id: str, value: dict[str, Any]) -> Entry:
    fields: dict[str, Any] = value | {"thread_id": thread_id, "number": int(value["number"])}
    if "text" not in fields:
        fields["text"] = json.loads(fields["stored"])["data"]["content"]
    return Entry(**fields)


async def _held(store: BaseStore, place: tuple[str, ...], names: Sequence[str]) -> set[str]:
    items = cast("list[Item | None]", await store.abatch([GetOp(place, name) for name in names]))
    return {item.key for item in items if item is not None}


def _says(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    spelled = [f"{one['name']}({_json(clean(one['args']))})" for one in calls]
    return clean_text("\n".join([part for part in (str(message.text), *spelled) if part]))


def _spelled(message: BaseMessage) -> str:
    """Return the message as JSON: what makes it the same message again, and nothing else."""
    fields = message_to_dict(message)["data"]
    kept = {name: value for name, value in fields.items() if _says_something(name, value)}
    return _json({"type": message.type, "data": clean(kept)})


def _says_something(name: str, value: Any) -> bool:
    if name in NOT_KEPT or value is None:
        return False
    if name == "artifact":
        return _is_json(value)
    return name == "content" or value not in ([], {})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_as_text)


def _as_text(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else clean_text(str(value))


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
