"""The messages of checkpoints: rows of their own, which checkpoints refer to by keys.

A key comes from what the message says, so a message that several checkpoints hold is one row, and
a step costs its new messages only.
"""

import asyncio
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from everlong.stores.amounts import amount

CHANNEL = "messages"
KEYS_TYPE = "everlong.messages"
KEY_BYTES = 12
MOST_REMEMBERED_THREADS = 2_000
MOST_PACKED_IN_THE_LOOP = 200

TABLE = """
CREATE TABLE IF NOT EXISTS checkpoint_messages (
    thread_id text NOT NULL,
    checkpoint_ns text NOT NULL,
    key bytea NOT NULL,
    type text NOT NULL,
    blob bytea NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_ns, key)
)"""
INSERT = (
    "INSERT INTO checkpoint_messages (thread_id, checkpoint_ns, key, type, blob)"
    " VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
SELECT = (
    "SELECT key, type, blob FROM checkpoint_messages"
    " WHERE thread_id = %s AND checkpoint_ns = %s AND key = ANY(%s)"
)
DELETE_THREAD = "DELETE FROM checkpoint_messages WHERE thread_id = %s"

Place = tuple[str, str]
"""A thread and a checkpoint namespace in it."""
Row = tuple[str, str, bytes, str, bytes]


@dataclass(frozen=True)
class MessageKeys:
    """What a checkpoint holds in the place of its messages."""

    keys: tuple[bytes, ...]


class KeyedSerializer(JsonPlusSerializer):
    """LangGraph's serializer, which knows a list of keys, too."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the type of an object, and its bytes."""
        if isinstance(obj, MessageKeys):
            return KEYS_TYPE, b"".join(obj.keys)
        return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the object."""
        kind, blob = data
        if kind == KEYS_TYPE:
            return MessageKeys(_split(blob))
        return super().loads_typed(data)


class StoredKeys:
    """Which messages a checkpoint has, so that the next one need not store them again.

    Of the threads that were used last, one checkpoint each: as long as it is there, they are.
    """

    def __init__(self) -> None:
        self._of: dict[Place, tuple[str, set[bytes]]] = {}

    def at(self, place: Place, checkpoint_id: str) -> set[bytes]:
        """Return the keys that the checkpoint is known to have."""
        known, keys = self._of.get(place, ("", set[bytes]()))
        return keys if known == checkpoint_id else set()

    def remember(self, place: Place, checkpoint_id: str, keys: Collection[bytes]) -> None:
        """Note what a checkpoint has, instead of what was known of the place before."""
        self._of.pop(place, None)
        self._of[place] = checkpoint_id, set(keys)
        if len(self._of) > MOST_REMEMBERED_THREADS:
            self._of.pop(next(iter(self._of)))

    def forget(self, place: Place) -> None:
        """Know nothing of the place."""
        self._of.pop(place, None)

    def forget_thread(self, thread_id: str) -> None:
        """Know nothing of any place in the thread."""
        for place in [place for place in self._of if place[0] == thread_id]:
            del self._of[place]


async def keyed(
    serde: SerializerProtocol, place: Place, messages: Sequence[BaseMessage], known: set[bytes]
) -> tuple[MessageKeys, list[Row]]:
    """Return the messages' keys, and rows for those that are not known to be stored."""
    few = len(messages) <= MOST_PACKED_IN_THE_LOOP
    packed = _packed(serde, messages) if few else await asyncio.to_thread(_packed, serde, messages)
    rows = [(*place, key, kind, blob) for key, kind, blob in packed if key not in known]
    return MessageKeys(tuple(key for key, _, _ in packed)), rows


async def load(
    cur: Any, serde: SerializerProtocol, place: Place, wanted: MessageKeys
) -> list[BaseMessage]:
    """Return the messages of a list of keys.

    Raises:
        LookupError: some are gone.
    """
    await cur.execute(SELECT, (*place, list(set(wanted.keys))), binary=True)
    messages = {
        bytes(row["key"]): serde.loads_typed((row["type"], bytes(row["blob"])))
        for row in await cur.fetchall()
    }
    if missing := set(wanted.keys) - messages.keys():
        msg = (
            f"thread {place[0]!r}: expected every message of a checkpoint; "
            f"{amount(len(missing), 'message')} of "
            f"{len(set(wanted.keys))} gone from checkpoint_messages. Restore the table."
        )
        raise LookupError(msg)
    return [messages[key] for key in wanted.keys]


def _packed(
    serde: SerializerProtocol, messages: Sequence[BaseMessage]
) -> list[tuple[bytes, str, bytes]]:
    packed: list[tuple[bytes, str, bytes]] = []
    for message in messages:
        kind, blob = serde.dumps_typed(message)
        packed.append((hashlib.blake2b(blob, digest_size=KEY_BYTES).digest(), kind, blob))
    return packed


def _split(blob: bytes) -> tuple[bytes, ...]:
    return tuple(blob[at : at + KEY_BYTES] for at in range(0, len(blob), KEY_BYTES))
