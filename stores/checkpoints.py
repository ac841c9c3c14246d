"""The checkpointer: LangGraph's on a pool, with each message stored once.

LangGraph writes the whole list of messages at every step that changes it. Here the list is a list
of keys, and the messages are rows of their own, so that a step costs its new messages.
"""

import asyncio
import base64
import contextlib
import hashlib
import random
from collections.abc import AsyncGenerator, Collection, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg.rows import DictRow
from psycopg_pool import AsyncConnectionPool

from everlong.stores.text import clean, clean_text

CHANNEL = "messages"
KEYS_TYPE = "everlong.messages"
KEY_BYTES = 12
MOST_REMEMBERED_THREADS = 2_000
MOST_PACKED_IN_THE_LOOP = 200
SPECIAL = frozenset({*WRITES_IDX_MAP, "__return__", "__pregel_tasks"})
"""Writes that resuming needs: results of tasks, interrupts, answers, errors."""

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
DELETE_UNUSED = (
    "DELETE FROM checkpoint_messages WHERE thread_id = %s AND checkpoint_ns = %s AND key <> ALL(%s)"
)

DELETE_RUNS = """
WITH gone AS (
    DELETE FROM checkpoints WHERE metadata->>'run_id' = ANY(%(runs)s)
    RETURNING thread_id, checkpoint_ns, checkpoint_id, checkpoint->'channel_versions' AS versions
), writes AS (
    DELETE FROM checkpoint_writes w USING gone
    WHERE w.thread_id = gone.thread_id AND w.checkpoint_ns = gone.checkpoint_ns
    AND w.checkpoint_id = gone.checkpoint_id
)
DELETE FROM checkpoint_blobs b USING gone
WHERE b.thread_id = gone.thread_id AND b.checkpoint_ns = gone.checkpoint_ns
AND b.version = gone.versions->>b.channel
AND NOT EXISTS (
    SELECT FROM checkpoints kept
    WHERE kept.thread_id = b.thread_id AND kept.checkpoint_ns = b.checkpoint_ns
    AND coalesce(kept.metadata->>'run_id', '') <> ALL(%(runs)s)
    AND kept.checkpoint->'channel_versions'->>b.channel = b.version
)"""


Row = tuple[str, str, bytes, str, bytes]
_with_the_next_write: ContextVar[Sequence[Row]] = ContextVar("everlong_messages", default=())


@dataclass(frozen=True)
class MessageKeys:
    """What a checkpoint holds in the place of its messages."""

    keys: tuple[bytes, ...]


class _Serializer(JsonPlusSerializer):
    """LangGraph's serializer, which knows a list of keys, too."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        if isinstance(obj, MessageKeys):
            return KEYS_TYPE, b"".join(obj.keys)
        return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, blob = data
        if kind == KEYS_TYPE:
            return MessageKeys(_split(blob))
        return super().loads_typed(data)


def _split(blob: bytes) -> tuple[bytes, ...]:
    return tuple(blob[at : at + KEY_BYTES] for at in range(0, len(blob), KEY_BYTES))


class PooledSaver(AsyncPostgresSaver):
    """A checkpointer for a pool: reads do not wait behind writes, and bad text is refused early.

    The base class holds one lock over the whole pool (langgraph issue 7259); a pooled connection
    is never shared, so the lock protects nothing. `lone_nodes` are nodes that never run beside
    another one: their writes are in the next checkpoint anyway and are not stored twice.
    """

    def __init__(self, pool: AsyncConnectionPool[Any], *, lone_nodes: Collection[str] = ()) -> None:
        super().__init__(pool, serde=_Serializer())
        self.lock = contextlib.nullcontext()  # pyright: ignore[reportAttributeAccessIssue] - above
        self._lone_paths = frozenset(f"~__pregel_pull, {name}" for name in lone_nodes)
        self._stored: dict[tuple[str, str], set[bytes]] = {}

    async def setup(self) -> None:
        """Bring the tables up to date."""
        await super().setup()
        async with self._cursor() as cur:
            await cur.execute(TABLE)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint.

        Raises:
            ValueError: the thread id holds a character that Postgres cannot store.
        """
        thread_id = str(config.get("configurable", {}).get("thread_id", ""))
        if thread_id != clean_text(thread_id):
            msg = (
                f"`thread_id`: expected text without NUL and lone surrogates; got {thread_id!r}. "
                "Choose another id."
            )
            raise ValueError(msg)
        found = await super().aget_tuple(config)
        if found is None:  # deleted, perhaps by another process
            self._stored.pop(_place(config), None)
        return found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint; what callers attach to a run is cleaned, since it becomes JSON."""
        cleaned = _with_clean_texts(config)
        messages: Any = checkpoint["channel_values"].get(CHANNEL)
        if CHANNEL not in new_versions or not _are_messages(messages):
            return await super().aput(cleaned, checkpoint, clean(metadata), new_versions)
        keys, rows = await self._keyed(_place(cleaned), messages)
        values = checkpoint["channel_values"] | {CHANNEL: MessageKeys(keys)}
        checkpoint = cast("Checkpoint", checkpoint | {"channel_values": values})
        outside = _with_the_next_write.set(rows)
        try:
            written = await super().aput(cleaned, checkpoint, clean(metadata), new_versions)
        finally:
            _with_the_next_write.reset(outside)
        self._remember(_place(cleaned), keys)
        return written

    @contextlib.asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[Any]:
        """Open a cursor; a checkpoint's messages go in the same round trip and transaction."""
        async with super()._cursor(pipeline=pipeline) as cur:
            if rows := _with_the_next_write.get():
                _with_the_next_write.set(())
                await cur.executemany(INSERT, rows)
            yield cur

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote; nothing where the next checkpoint holds all of it."""
        needed = any(channel in SPECIAL for channel, _ in writes)
        if needed or task_path not in self._lone_paths:
            await super().aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        await super().adelete_thread(thread_id)
        self._forget(str(thread_id))
        async with self._cursor() as cur:
            await cur.execute(
                "DELETE FROM checkpoint_messages WHERE thread_id = %s", (str(thread_id),)
            )

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints but the newest (or all), and the messages that none needs."""
        await super().aprune(thread_ids, strategy=strategy)
        for thread_id in map(str, thread_ids):
            self._forget(thread_id)
            await self._delete_unused(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what the runs wrote; a server's `rollback` needs it, the base class lacks it.

        Their messages go with the next prune: a run that has begun meanwhile may need one again.
        """
        async with self._cursor() as cur:
            await cur.execute(DELETE_RUNS, {"runs": list(run_ids)})

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002 - base
        """Return the version after `current`, in a third of the base class's characters.

        Each checkpoint names some twenty versions. They sort as texts, after longer ones of the
        base class, too; the random part keeps forks of one checkpoint apart.
        """
        number = int(str(current).partition(".")[0]) + 1 if current else 1
        apart = base64.urlsafe_b64encode(random.randbytes(6)).decode()  # noqa: S311 - no secret
        return f"{number:08d}.{apart}"

    async def owner_of(self, thread_id: str) -> str:
        """Return whose thread it is, without loading it; empty where nobody has written to it."""
        async with self._cursor() as cur:
            await cur.execute(
                "SELECT checkpoint->'channel_values'->>'owner' AS owner FROM checkpoints"
                " WHERE thread_id = %s AND checkpoint_ns = '' ORDER BY checkpoint_id DESC LIMIT 1",
                (thread_id,),
            )
            row = await cur.fetchone()
        return str((row and row["owner"]) or "")

    async def _keyed(
        self, place: tuple[str, str], messages: Sequence[BaseMessage]
    ) -> tuple[tuple[bytes, ...], list[Row]]:
        """Return the messages' keys, and rows for those that are not known to be stored."""
        few = len(messages) <= MOST_PACKED_IN_THE_LOOP
        packed = self._packed(messages) if few else await asyncio.to_thread(self._packed, messages)
        known = self._stored.get(place, set())
        rows = [(*place, key, kind, blob) for key, kind, blob in packed if key not in known]
        return tuple(key for key, _, _ in packed), rows

    def _remember(self, place: tuple[str, str], keys: Sequence[bytes]) -> None:
        """Note what is stored of a thread, for the threads that were used last."""
        self._stored.pop(place, None)
        self._stored[place] = set(keys)
        if len(self._stored) > MOST_REMEMBERED_THREADS:
            self._stored.pop(next(iter(self._stored)))

    def _forget(self, thread_id: str) -> None:
        for place in [place for place in self._stored if place[0] == thread_id]:
            del self._stored[place]

    def _packed(self, messages: Sequence[BaseMessage]) -> list[tuple[bytes, str, bytes]]:
        packed: list[tuple[bytes, str, bytes]] = []
        for message in messages:
            kind, blob = self.serde.dumps_typed(message)
            packed.append((hashlib.blake2b(blob, digest_size=KEY_BYTES).digest(), kind, blob))
        return packed

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        """Put the messages in the place of their keys; they are what is known to be stored."""
        found = await super()._load_checkpoint_tuple(value)
        keys: Any = found.checkpoint["channel_values"].get(CHANNEL)
        place = _place(found.config)
        self._stored.pop(place, None)
        if isinstance(keys, MessageKeys):
            found.checkpoint["channel_values"][CHANNEL] = await self._load_messages(place, keys)
            self._remember(place, keys.keys)
        return found

    async def _load_messages(
        self, place: tuple[str, str], wanted: MessageKeys
    ) -> list[BaseMessage]:
        async with self._cursor() as cur:
            await cur.execute(SELECT, (*place, list(set(wanted.keys))), binary=True)
            rows = await cur.fetchall()
        messages = {
            bytes(row["key"]): self.serde.loads_typed((row["type"], bytes(row["blob"])))
            for row in rows
        }
        if missing := set(wanted.keys) - messages.keys():
            msg = f"thread {place[0]!r}: {len(missing)} messages of a checkpoint are gone"
            raise LookupError(msg)
        return [messages[key] for key in wanted.keys]

    async def _delete_unused(self, thread_id: str) -> None:
        """Delete the messages that no checkpoint of the thread refers to."""
        async with self._cursor() as cur:
            await cur.execute(
                "SELECT m.checkpoint_ns AS ns, array_agg(b.blob) AS blobs"
                " FROM (SELECT DISTINCT checkpoint_ns FROM checkpoint_messages"
                " WHERE thread_id = %s) m LEFT JOIN checkpoint_blobs b"
                " ON b.thread_id = %s AND b.checkpoint_ns = m.checkpoint_ns"
                " AND b.channel = %s AND b.type = %s GROUP BY m.checkpoint_ns",
                (thread_id, thread_id, CHANNEL, KEYS_TYPE),
            )
            for row in await cur.fetchall():
                used = {key for blob in row["blobs"] if blob for key in _split(bytes(blob))}
                await cur.execute(DELETE_UNUSED, (thread_id, row["ns"], list(used)))


def _with_clean_texts(config: RunnableConfig) -> Any:
    """Clean the texts that become a checkpoint's metadata; nothing below them does."""
    fields: dict[str, Any] = dict(config)
    for name in ("metadata", "configurable"):
        found: dict[str, Any] = fields.get(name) or {}
        if any(
            isinstance(value, str) and clean_text(value) is not value for value in found.values()
        ):
            fields[name] = {
                key: clean_text(value) if isinstance(value, str) else value
                for key, value in found.items()
            }
    return fields


def _are_messages(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(one, BaseMessage) for one in cast("list[Any]", value))


def _place(config: RunnableConfig) -> tuple[str, str]:
    configurable = config.get("configurable", {})
    return str(configurable.get("thread_id")), str(configurable.get("checkpoint_ns", ""))
