"""The checkpointer: LangGraph's on a pool, with each message stored once.

LangGraph writes the whole list of messages at every step that changes it. Here the list is a list
of keys, and the messages are rows of their own, so that a step costs its new messages.
"""

import base64
import contextlib
import random
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextvars import ContextVar
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
from psycopg.rows import DictRow
from psycopg_pool import AsyncConnectionPool

from everlong.stores import checkpoint_erasure as erasure
from everlong.stores.checkpoint_messages import (
    CHANNEL,
    DELETE_THREAD,
    INSERT,
    TABLE,
    KeyedSerializer,
    MessageKeys,
    Place,
    Row,
    StoredKeys,
    delete_unused,
    keyed,
    load,
)
from everlong.stores.text import clean, clean_text

SPECIAL = frozenset({*WRITES_IDX_MAP, "__return__", "__pregel_tasks"})
"""Writes that resuming needs: results of tasks, interrupts, answers, errors."""

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

_with_the_next_write: ContextVar[Sequence[Row]] = ContextVar("everlong_messages", default=())


def _nothing(_: RunnableConfig) -> Collection[str]:
    return ()


class PooledSaver(AsyncPostgresSaver):
    """A checkpointer for a pool: reads do not wait behind writes, and bad text is refused early.

    The base class holds one lock over the whole pool (langgraph issue 7259); a pooled connection
    is never shared, so the lock protects nothing. `lone_nodes` are nodes that never run beside
    another one: their writes are in the next checkpoint anyway and are not stored twice.
    `left_out` names what of a run's `configurable` is not written into its checkpoints.
    """

    def __init__(
        self,
        pool: AsyncConnectionPool[Any],
        *,
        lone_nodes: Collection[str] = (),
        left_out: Callable[[RunnableConfig], Collection[str]] = _nothing,
    ) -> None:
        super().__init__(pool, serde=KeyedSerializer())
        self.lock = contextlib.nullcontext()  # pyright: ignore[reportAttributeAccessIssue] - above
        self._lone_paths = frozenset(f"~__pregel_pull, {name}" for name in lone_nodes)
        self._left_out = left_out
        self._stored = StoredKeys()

    async def setup(self) -> None:
        """Bring the tables up to date."""
        await super().setup()
        async with self._cursor() as cur:
            await cur.execute(TABLE)
            await cur.execute(erasure.TABLE)

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
            self._stored.forget(_place(config))
        return found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint; what callers attach to a run is cleaned, since it becomes JSON.

        Raises:
            UserForgottenError: the thread's user was forgotten; nothing is written.
        """
        with erasure.refusing(erasure.owner_in(config, checkpoint["channel_values"])):
            return await self._aput(config, checkpoint, metadata, new_versions)

    async def _aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        config, metadata = _slim(config, metadata, self._left_out(config))
        messages: Any = checkpoint["channel_values"].get(CHANNEL)
        if CHANNEL not in new_versions or not _are_messages(messages):
            return await super().aput(config, checkpoint, metadata, new_versions)
        place = _place(config)
        keys, rows = await keyed(self.serde, place, messages, self._stored.at(place))
        values = checkpoint["channel_values"] | {CHANNEL: keys}
        checkpoint = cast("Checkpoint", checkpoint | {"channel_values": values})
        outside = _with_the_next_write.set(rows)
        try:
            written = await super().aput(config, checkpoint, metadata, new_versions)
        finally:
            _with_the_next_write.reset(outside)
        self._stored.remember(place, keys.keys)
        return written

    @contextlib.asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[Any]:
        """Open a cursor; a checkpoint's messages go in the same round trip and transaction."""
        async with super()._cursor(pipeline=pipeline) as cur:
            await erasure.refuse(cur)
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
        """Store what a task wrote; nothing where the next checkpoint holds all of it.

        Raises:
            UserForgottenError: the thread's user was forgotten; nothing is written.
        """
        needed = any(channel in SPECIAL for channel, _ in writes)
        if needed or task_path not in self._lone_paths:
            with erasure.refusing(erasure.owner_in(config, {})):
                await super().aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        await super().adelete_thread(thread_id)
        self._stored.forget_thread(str(thread_id))
        async with self._cursor() as cur:
            await cur.execute(DELETE_THREAD, (str(thread_id),))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints but the newest (or all), and the messages that none needs."""
        await super().aprune(thread_ids, strategy=strategy)
        for thread_id in map(str, thread_ids):
            self._stored.forget_thread(thread_id)
            async with self._cursor() as cur:
                await delete_unused(cur, thread_id)

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

    async def threads_of(self, user_id: str) -> list[str]:
        """Return the ids of the threads that the user's runs have written."""
        async with self._cursor() as cur:
            await cur.execute(erasure.THREADS, {"user": user_id})
            return [str(row["thread_id"]) for row in await cur.fetchall()]

    async def rewrite(self, thread_id: str, change: erasure.Change) -> int:
        """Put all that a thread's checkpoints hold through `change`; return how much differs."""
        async with self._cursor() as cur:
            return await erasure.rewrite(cur, self.serde, thread_id, change)

    async def refuse_user(self, user_id: str) -> None:
        """Write no checkpoint of this user any more."""
        async with self._cursor() as cur:
            await cur.execute(erasure.MARK, (erasure.digest_of(user_id),))

    async def allow_user(self, user_id: str) -> None:
        """Write the user's checkpoints again."""
        async with self._cursor() as cur:
            await cur.execute(erasure.ALLOW, (erasure.digest_of(user_id),))

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        """Put the messages in the place of their keys; they are what is known to be stored."""
        found = await super()._load_checkpoint_tuple(value)
        keys: Any = found.checkpoint["channel_values"].get(CHANNEL)
        place = _place(found.config)
        self._stored.forget(place)
        if isinstance(keys, MessageKeys):
            async with self._cursor() as cur:
                messages = await load(cur, self.serde, place, keys)
            found.checkpoint["channel_values"][CHANNEL] = messages
            self._stored.remember(place, keys.keys)
        return found


def _slim(
    config: RunnableConfig, metadata: CheckpointMetadata, left_out: Collection[str]
) -> tuple[Any, Any]:
    """Return what is written about a run, cleaned: no `left_out`, save what it is marked with."""
    gone = set(left_out) - set(config.get("metadata") or ())
    fields: dict[str, Any] = dict(config)
    for name in ("metadata", "configurable"):
        given: dict[str, Any] = fields.get(name) or {}
        fields[name] = {
            key: clean_text(value) if isinstance(value, str) else value
            for key, value in given.items()
            if key not in gone
        }
    return fields, clean({name: value for name, value in metadata.items() if name not in gone})


def _are_messages(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(one, BaseMessage) for one in cast("list[Any]", value))


def _place(config: RunnableConfig) -> Place:
    configurable = config.get("configurable", {})
    return str(configurable.get("thread_id")), str(configurable.get("checkpoint_ns", ""))
