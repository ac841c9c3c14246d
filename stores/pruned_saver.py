"""A checkpointer that lets go of old checkpoints, and whose readers do not mind."""

import logging
from collections.abc import AsyncIterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, get_checkpoint_id
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg_pool import AsyncConnectionPool

from everlong.stores import checkpoint_pruning as pruning
from everlong.stores.checkpoint_messages import Place

log = logging.getLogger("everlong.postgres")

SET_UP = {
    "checkpoints_run": "CREATE INDEX CONCURRENTLY IF NOT EXISTS checkpoints_run"
    " ON checkpoints ((metadata->>'run_id')) WHERE metadata->>'run_id' IS NOT NULL"
}
"""Finds the checkpoints of a run; a program's runs have no ids and cost nothing."""
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

GONE: Any = object()
"""In the place of a checkpoint that was pruned while it was read."""
MOST_REMEMBERED = 1_000


class CheckpointGoneError(LookupError):
    """A run was to go on from a checkpoint that is not there."""


class PrunedSaver(AsyncPostgresSaver):
    """LangGraph's checkpointer; `kept` is how many checkpoints a thread keeps; 0: all."""

    UPSERT_CHECKPOINTS_SQL = pruning.UPSERT

    def __init__(
        self, pool: AsyncConnectionPool[Any], *, serde: SerializerProtocol, kept: int
    ) -> None:
        super().__init__(pool, serde=serde)
        self._kept = kept
        self._absent: dict[str, None] = {}
        """Ids of checkpoints that somebody asked for and that are not there."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint; where the newest was pruned meanwhile, the one that is it now."""
        found, asked = await super().aget_tuple(config), get_checkpoint_id(config)
        while found is GONE and not asked:
            found = await super().aget_tuple(config)
        if asked:
            self._absent.pop(asked, None)
        if asked and found in (None, GONE):
            self._absent[asked] = None
            if len(self._absent) > MOST_REMEMBERED:
                self._absent.pop(next(iter(self._absent)))
        return None if found is GONE else found

    def refuse_absent(self, config: RunnableConfig) -> None:
        """Refuse to go on from a checkpoint that was not there when the run began.

        Raises:
            CheckpointGoneError: it was not; nothing is written.
        """
        asked = get_checkpoint_id(config)
        if asked in self._absent:
            msg = (
                f"`checkpoint_id`: {asked!r} is no checkpoint of its thread, or not any more. Go "
                "on from one that its history lists; EVERLONG_CHECKPOINTS_KEPT keeps more."
            )
            raise CheckpointGoneError(msg)

    async def alist(
        self, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        """List checkpoints, newest first, without those that were pruned meanwhile."""
        async for found in super().alist(config, **options):
            if found is not GONE:
                yield found

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints but the newest, or all; and the messages that none needs.

        A thread that somebody writes to at this moment keeps all, until the next prune.
        """
        if isinstance(thread_ids, str) or strategy not in ("keep_latest", "delete"):
            await super().aprune(thread_ids, strategy=strategy)  # refuses
        for thread_id in map(str, thread_ids):
            if strategy == "delete":
                await self.adelete_thread(thread_id)
            else:
                await self.keep_newest(thread_id, kept=1)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what the runs wrote; a server's `rollback` needs it, the base class lacks it.

        Their messages go with the next prune: a run that has begun meanwhile may need one again.
        """
        async with self._cursor() as cur:
            await cur.execute(DELETE_RUNS, {"runs": list(run_ids)})

    async def keep_newest(self, thread_id: str, *, kept: int) -> int | None:
        """Keep the newest checkpoints of each namespace; return how many went.

        None where somebody writes to the thread at this moment: then none goes.
        """
        async with self._cursor() as cur:
            return await pruning.prune(cur, thread_id, kept)

    async def waiting_of(self, thread_id: str) -> list[str]:
        """Return the ids of the thread's checkpoints at which a person is asked, newest first."""
        async with self._cursor() as cur:
            await cur.execute(pruning.WAITING, {"thread": thread_id})
            return [str(row["id"]) for row in await cur.fetchall()]

    async def resting_threads(self, *, since: str, after: str, limit: int) -> tuple[list[str], str]:
        """Look at the next threads after `after`; return those to prune, and where to go on.

        That is those with something to prune and nothing newer than checkpoint id `since`. An empty
        place to go on: there are no more.
        """
        given = {"since": since, "after": after, "limit": limit}
        async with self._cursor() as cur:
            await cur.execute(pruning.RESTING_THREADS, given)
            rows = await cur.fetchall()
        due = [str(row["thread_id"]) for row in rows if row["is_due"]]
        return due, str(rows[-1]["thread_id"]) if len(rows) == limit else ""

    async def prune_after(self, written: RunnableConfig, step: int) -> None:
        """Prune after a step, where it is due; a failure costs no answer: a later step tries."""
        thread_id = str(written.get("configurable", {}).get("thread_id"))
        self._absent.pop(get_checkpoint_id(written) or "", None)
        if not pruning.is_due(self._kept, step):
            return
        try:
            await self.keep_newest(thread_id, kept=self._kept)
        except Exception:
            log.exception("Old checkpoints of thread %s could not be let go of", thread_id)

    async def has(self, place: Place, checkpoint_id: str) -> bool:
        """Tell whether a checkpoint is there."""
        async with self._cursor() as cur:
            await cur.execute(pruning.IS_THERE, (*place, checkpoint_id))
            return await cur.fetchone() is not None
