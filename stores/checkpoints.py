"""The checkpointer: LangGraph's on a pool, with each message stored once.

LangGraph writes the whole list of messages at every step that changes it. Here the list is a list
of keys, and the messages are rows of their own, so that a step costs its new messages.
"""

import contextlib
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
from psycopg.rows import DictRow
from psycopg_pool import AsyncConnectionPool

from everlong.stores import checkpoint_erasure as erasure
from everlong.stores import checkpoint_pruning as pruning
from everlong.stores import checkpoint_versions as versions
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
    keyed,
    load,
)
from everlong.stores.namespaces import OWNER, asking
from everlong.stores.pruned_saver import GONE
from everlong.stores.text import clean, clean_text

SPECIAL = frozenset({*WRITES_IDX_MAP, "__return__", "__pregel_tasks"})
"""Writes that resuming needs: results of tasks, interrupts, answers, errors."""

_with_the_next_write: ContextVar[Sequence[Row]] = ContextVar("everlong_messages", default=())
_written: ContextVar[str | None] = ContextVar("everlong_thread", default=None)
"""The thread whose checkpoint is written."""


class PooledSaver(erasure.ErasableSaver):
    """A checkpointer for a pool: reads do not wait behind writes, and bad text is refused early.

    The base class holds one lock over the whole pool (langgraph issue 7259); a pooled connection
    is never shared, so the lock protects nothing. `lone_nodes` are nodes that never run beside
    another one: their writes are in the next checkpoint anyway and are not stored twice.
    `left_out` names what of a run's `configurable` is not written into its checkpoints. `kept` is
    how many of its newest checkpoints a thread keeps; 0: all.
    """

    def __init__(
        self,
        pool: AsyncConnectionPool[Any],
        *,
        lone_nodes: Collection[str] = (),
        left_out: Callable[[RunnableConfig], Collection[str]] = lambda _: (),
        kept: int = 0,
    ) -> None:
        super().__init__(pool, serde=KeyedSerializer(), kept=kept)
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
            CheckpointGoneError: the run began from a checkpoint that is not there.
        """
        given = _slim(config, metadata, self._left_out(config))
        checkpoint, new_versions = versions.as_stored(checkpoint, new_versions)
        owner = erasure.owner_in(given[0], checkpoint["channel_values"])
        thread_id = _place(config)[0]
        outside = _written.set(thread_id)
        try:
            with erasure.refusing(owner):
                written = await self._aput(*given, checkpoint, new_versions)
        except pruning.ORIGIN_GONE:  # others pruned it meanwhile: this one is written whole
            self.refuse_absent(config)
            given[0]["configurable"].pop("checkpoint_id")
            with erasure.refusing(owner):
                written = await self._aput(*given, checkpoint, checkpoint["channel_versions"])
        finally:
            _written.reset(outside)
        await self.prune_after(written, metadata.get("step", 0))
        return written

    async def _aput(
        self,
        config: RunnableConfig,
        metadata: CheckpointMetadata,
        checkpoint: Checkpoint,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        messages: Any = checkpoint["channel_values"].get(CHANNEL)
        place, origin = _place(config), config.get("configurable", {}).get("checkpoint_id")
        known = self._stored.at(place, str(origin)) if origin else set[bytes]()
        if CHANNEL not in new_versions or not _are_messages(messages):
            written = await super().aput(config, checkpoint, metadata, new_versions)
            self._stored.remember(place, checkpoint["id"], known)
            return written
        keys, rows = await keyed(self.serde, place, messages, known)
        values = checkpoint["channel_values"] | {CHANNEL: keys}
        checkpoint = cast("Checkpoint", checkpoint | {"channel_values": values})
        outside = _with_the_next_write.set(rows)
        try:
            written = await super().aput(config, checkpoint, metadata, new_versions)
        finally:
            _with_the_next_write.reset(outside)
        self._stored.remember(place, checkpoint["id"], keys.keys)
        return written

    @contextlib.asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[Any]:
        """Open a cursor; a checkpoint's messages go in the same round trip and transaction."""
        async with super()._cursor(pipeline=pipeline) as cur:
            await erasure.refuse(cur)
            if pipeline and (thread_id := _written.get()) is not None:
                await pruning.hold(cur, thread_id)
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

    def get_next_version(self, current: str | None, channel: None) -> str:  # noqa: ARG002 - base
        """Return the version after `current`."""
        return versions.next_version(current)

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        """Put the messages in the place of their keys; they are what is known to be stored."""
        found = await super()._load_checkpoint_tuple(value)
        found = found._replace(checkpoint=versions.sortable(found.checkpoint))
        keys: Any = found.checkpoint["channel_values"].get(CHANNEL)
        place = _place(found.config)
        self._stored.forget(place)
        if isinstance(keys, MessageKeys):
            try:
                async with self._cursor() as cur:
                    messages = await load(cur, self.serde, place, keys)
            except LookupError:
                if await self.has(place, found.checkpoint["id"]):
                    raise
                return GONE
            found.checkpoint["channel_values"][CHANNEL] = messages
            self._stored.remember(place, found.checkpoint["id"], keys.keys)
        return found


def _slim(
    config: RunnableConfig, metadata: CheckpointMetadata, left_out: Collection[str]
) -> tuple[Any, Any]:
    """Return what is written about a run, cleaned: no `left_out`, save what it is marked with.

    What a server writes outside a run is marked with whose request it is, whatever that says. It
    belongs to no run; nor does the copy of a thread, which names a run in `metadata` alone.
    """
    mark = {OWNER: user_id} if (user_id := asking.get()) else {}
    attached: dict[str, Any] = (config.get("metadata") or {}) | mark
    gone = set(left_out) - attached.keys()
    if mark or "run_id" not in attached | config.get("configurable", {}):
        gone.add("run_id")
    fields: dict[str, Any] = dict(config) | {"metadata": attached}
    for name in ("metadata", "configurable"):
        given: dict[str, Any] = fields.get(name) or {}
        fields[name] = {
            key: clean_text(value) if isinstance(value, str) else value
            for key, value in given.items()
            if key not in gone
        }
    told = {name: value for name, value in metadata.items() if name not in gone}
    return fields, clean(told) | mark


def _are_messages(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(one, BaseMessage) for one in cast("list[Any]", value))


def _place(config: RunnableConfig) -> Place:
    configurable = config.get("configurable", {})
    return str(configurable.get("thread_id")), str(configurable.get("checkpoint_ns", ""))
