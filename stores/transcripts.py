"""The transcript of each thread: every message, whole, and when it was said (R17, R62).

One item per message. A message that was moved out of the history before it came here keeps the
reference to its text in `additional_kwargs` (`everlong_evicted`), which `full_text` follows.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from langchain_core.messages import BaseMessage, messages_from_dict
from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from everlong.stores import files
from everlong.stores.namespaces import key, raw, space
from everlong.stores.records import FIRST_LIMIT, all_items, put_all
from everlong.stores.semantic import may_embed
from everlong.stores.spelling import says, spelled
from everlong.stores.text import clean, clean_text

EVICTED = "everlong_evicted"
MOST_CHARS = 200_000
"""Longer messages go to the user's files, so that no value is over a megabyte."""
CALLS = '"tool_calls": ['
"""In the JSON of a message that makes calls, and in no other: a text's quotes are escaped."""
MOST_EMBEDDED = 4_000


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
    """What it says and the calls it makes: the first 200,000 characters; a hit has all."""
    stored: str
    """The message as JSON; `messages_of` makes it a message again. Empty in a hit, where long."""
    path: str
    """The user's file that holds `stored`, where it is long."""


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
    names = [f"{n:08d}-{key(one.id or spelled(one))}" for n, one in enumerate(messages, first)]
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
            value["text"] = says(message)[:MOST_CHARS]
            index = index_of(value) if may_embed(store) else False
            if value["text"] == message.content and value["stored"] and not index:
                del value["text"]  # `stored` has the very same
            puts.append(PutOp(place, name, clean(value), index=index))
    await put_all(store, puts)
    return len(puts)


def index_of(value: Mapping[str, Any]) -> list[str] | Literal[False]:
    """Return what of a message a store embeds that does so: what was said, not what tools found.

    Of long texts one vector says little, and embedders take no more than a few pages.
    """
    is_said = value["role"] in ("human", "ai") and CALLS not in value["stored"]
    return ["text"] if is_said and 0 < len(value.get("text", "")) <= MOST_EMBEDDED else False


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


async def read_between(
    store: BaseStore, user_id: str, thread_id: str, first: int, last: int
) -> list[Entry]:
    """Return the entries with numbers from `first` to `last`, in order; of every branch.

    Raises:
        LookupError: the file of a long message is gone.
    """
    found = await _between(store, user_id, thread_id, first, last + 1)
    return [
        replace(entry, stored=await unpack(store, user_id, entry.stored, entry.path))
        for entry in found
    ]


async def of_message(
    store: BaseStore, user_id: str, thread_id: str, message_id: str
) -> list[Entry]:
    """Return the entries of the message with this id, as a search needs them; of every branch."""
    place = space(user_id, "transcripts", thread_id)
    items = await all_items(store, place, matching={"message_id": clean_text(message_id)})
    return [entry_of(thread_id, item.value) for item in sorted(items, key=lambda item: item.key)]


async def glance(store: BaseStore, user_id: str, thread_id: str) -> list[Entry]:
    """Return all of a thread's entries as a search needs them: what is long is left where it is."""
    return await _between(store, user_id, thread_id, 0)


async def threads(store: BaseStore, user_id: str) -> list[str]:
    """Return the ids of the user's threads that have a transcript."""
    above = space(user_id, "transcripts")
    limit = FIRST_LIMIT
    while len(found := await store.alist_namespaces(prefix=above, limit=limit)) == limit:
        limit *= 4
    return sorted(raw(namespace[len(above)]) for namespace in found)


async def full_text(store: BaseStore, user_id: str, entry: Entry) -> str:
    """Return what the message said before anything of it was moved away or cut."""
    message = await _message(store, user_id, entry)
    path, whole = _moved_to(message.additional_kwargs.get(EVICTED)), None
    with suppress(ValueError):  # whoever sent the message may have made the reference up
        whole = await files.read_text(store, user_id, path) if path else None
    return says(message) if whole is None else whole


async def whole(store: BaseStore, user_id: str, entry: Entry) -> Entry:
    """Return the entry with all that the message says, however long; not what was moved away.

    Raises:
        LookupError: the file of a long message is gone.
    """
    if len(entry.text) < MOST_CHARS:
        return entry
    return replace(entry, text=says(await _message(store, user_id, entry)))


def moved_to(entry: Entry) -> str:
    """Return the path of the text that was moved out of the message before it came here, if any."""
    if EVICTED not in entry.stored:
        return ""
    kwargs = json.loads(entry.stored)["data"].get("additional_kwargs", {})
    return _moved_to(kwargs.get(EVICTED))


def _moved_to(reference: Any) -> str:
    path = cast("dict[str, Any]", reference).get("path") if isinstance(reference, dict) else None
    return path if isinstance(path, str) else ""


async def _message(store: BaseStore, user_id: str, entry: Entry) -> BaseMessage:
    stored = await unpack(store, user_id, entry.stored, entry.path)
    (message,) = messages_from_dict([json.loads(stored)])
    return message


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
    stored = spelled(message)
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


async def _between(
    store: BaseStore, user_id: str, thread_id: str, first: int, end: int | None = None
) -> list[Entry]:
    """Return the entries with numbers from `first` to before `end`, in order."""
    bounds = {"$gte": f"{first:08d}"} | ({} if end is None else {"$lt": f"{end:08d}"})
    place = space(user_id, "transcripts", thread_id)
    items = await all_items(store, place, matching={"number": bounds})
    return [entry_of(thread_id, item.value) for item in sorted(items, key=lambda item: item.key)]


def entry_of(thread_id: str, value: dict[str, Any]) -> Entry:
    """Return the entry that an item of the store holds."""
    fields: dict[str, Any] = value | {"thread_id": thread_id, "number": int(value["number"])}
    if "text" not in fields:
        fields["text"] = json.loads(fields["stored"])["data"]["content"]
    return Entry(**fields)


async def _held(store: BaseStore, place: tuple[str, ...], names: Sequence[str]) -> set[str]:
    items = cast("list[Item | None]", await store.abatch([GetOp(place, name) for name in names]))
    return {item.key for item in items if item is not None}
