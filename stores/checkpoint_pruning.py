"""What a thread keeps of its checkpoints: the newest, and what somebody may still go on from.

A prune never removes what is being built on. Who writes a checkpoint holds the thread's lock shared
and sees that the one it comes from is still there, in the same transaction; a prune, one
transaction, too, needs the lock alone. A checkpoint whose origin was pruned meanwhile, in a run
that took long while others went on, is written whole.
"""

from datetime import UTC, datetime
from typing import Any

from langgraph.checkpoint.serde.types import INTERRUPT
from psycopg.errors import InvalidArgumentForPowerFunction

from everlong.stores.checkpoint_messages import CHANNEL, KEY_BYTES, KEYS_TYPE

LOCK = 0x6576_6C70  # "evlp"
GREGORIAN = datetime(1582, 10, 15, tzinfo=UTC)
"""Where the time in a UUID of version 6 begins, which a checkpoint's id is."""
LEAST_STEPS = 25
"""Between two prunes of a thread by its own steps."""

HOLD = "SELECT pg_advisory_xact_lock_shared(%s, hashtext(%s))"
ALONE = "SELECT pg_try_advisory_xact_lock(%s, hashtext(%s)) AS held"
UPSERT = """
INSERT INTO checkpoints
    (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
SELECT given.* FROM (VALUES (%s, %s, %s, %s, %s::jsonb, %s::jsonb))
    AS given (thread, ns, id, origin, checkpoint, metadata)
WHERE origin IS NULL OR sqrt(-1 + (
    SELECT count(*) FROM checkpoints
    WHERE thread_id = thread AND checkpoint_ns = ns AND checkpoint_id = origin
)::float8) = 0
ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
DO UPDATE SET checkpoint = EXCLUDED.checkpoint, metadata = EXCLUDED.metadata
"""
"""LangGraph's, but it fails, and the transaction with it, where the origin is gone."""
ORIGIN_GONE = InvalidArgumentForPowerFunction
"""How it fails."""

WAITS = f"""EXISTS (
    SELECT FROM checkpoint_writes w WHERE w.thread_id = %(thread)s AND w.checkpoint_ns = ''
    AND w.checkpoint_id = held.id AND w.channel = '{INTERRUPT}'
) AND NOT EXISTS (SELECT FROM held child WHERE child.ns = '' AND child.parent = held.id)"""  # noqa: S608 - our own names
"""Of a checkpoint of the thread itself: a person is asked there, and nobody went on from it."""
WAITING = f"""
WITH held AS (
    SELECT checkpoint_ns AS ns, checkpoint_id AS id, parent_checkpoint_id AS parent
    FROM checkpoints WHERE thread_id = %(thread)s
)
SELECT id FROM held WHERE ns = '' AND {WAITS} ORDER BY id DESC
"""  # noqa: S608 - our own names
PRUNE = f"""
WITH held AS (
    SELECT checkpoint_ns AS ns, checkpoint_id AS id, parent_checkpoint_id AS parent,
        metadata->'parents'->>'' AS root, metadata ? 'counters_since_delta_snapshot' AS is_delta,
        row_number() OVER (PARTITION BY checkpoint_ns ORDER BY checkpoint_id DESC) AS place
    FROM checkpoints WHERE thread_id = %(thread)s
), roots AS (
    SELECT id FROM held WHERE ns = '' AND (place <= %(kept)s OR {WAITS})
), kept AS (
    SELECT '' AS ns, id FROM roots
    UNION SELECT ns, id FROM held WHERE place <= %(kept)s AND ns <> '' AND (
        strpos(ns, ':') = 0 OR root IS NULL OR root IN (SELECT id FROM roots)
        OR root > (SELECT coalesce(max(id), '') FROM roots)
    )
    UNION SELECT ns, id FROM held WHERE (SELECT bool_or(is_delta) FROM held)
), used AS MATERIALIZED (
    SELECT c.checkpoint_ns AS ns, v.key AS channel, v.value AS version
    FROM checkpoints c CROSS JOIN LATERAL jsonb_each_text(c.checkpoint->'channel_versions') v
    WHERE c.thread_id = %(thread)s AND (c.checkpoint_ns, c.checkpoint_id) IN (SELECT * FROM kept)
), said AS (
    SELECT b.checkpoint_ns AS ns, substring(b.blob FROM at FOR {KEY_BYTES}) AS key
    FROM checkpoint_blobs b CROSS JOIN LATERAL generate_series(1, length(b.blob), {KEY_BYTES}) at
    WHERE b.thread_id = %(thread)s AND b.channel = '{CHANNEL}' AND b.type = '{KEYS_TYPE}'
    AND (b.checkpoint_ns, b.channel, b.version) IN (SELECT * FROM used)
), messages AS (
    DELETE FROM checkpoint_messages WHERE thread_id = %(thread)s
    AND (checkpoint_ns, key) NOT IN (SELECT * FROM said)
), blobs AS (
    DELETE FROM checkpoint_blobs WHERE thread_id = %(thread)s
    AND (checkpoint_ns, channel, version) NOT IN (SELECT * FROM used)
), writes AS (
    DELETE FROM checkpoint_writes WHERE thread_id = %(thread)s
    AND (checkpoint_ns, checkpoint_id) NOT IN (SELECT * FROM kept)
    AND (checkpoint_id < (SELECT min(id) FROM roots)
        OR (checkpoint_ns, checkpoint_id) IN (SELECT ns, id FROM held))
), orphans AS (
    UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE thread_id = %(thread)s
    AND (checkpoint_ns, checkpoint_id) IN (SELECT * FROM kept)
    AND (checkpoint_ns, parent_checkpoint_id) IN (SELECT ns, id FROM held)
    AND (checkpoint_ns, parent_checkpoint_id) NOT IN (SELECT * FROM kept)
), gone AS (
    DELETE FROM checkpoints WHERE thread_id = %(thread)s
    AND (checkpoint_ns, checkpoint_id) NOT IN (SELECT * FROM kept)
    RETURNING 1
)
SELECT count(*) AS count FROM gone
"""  # noqa: S608 - our own names
"""Of each namespace the newest `kept`; of the thread itself also where a branch waits for a person.

A subgraph that begins anew in each call, whose namespace names the task, goes with the checkpoint
that it was called from. Channels that are rebuilt from all earlier steps are left alone.
"""

RESTING_THREADS = """
SELECT thread_id,
    count(*) > count(DISTINCT checkpoint_ns) AND max(checkpoint_id) < %(since)s AS is_due
FROM checkpoints WHERE thread_id > %(after)s
GROUP BY thread_id ORDER BY thread_id LIMIT %(limit)s
"""
"""So many threads are looked at, not found: where nothing is due, the statement ends, too."""
IS_THERE = (
    "SELECT 1 FROM checkpoints WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"
)


async def hold(cur: Any, thread_id: str) -> None:
    """Keep prunes of the thread out until the transaction ends."""
    await cur.execute(HOLD, (LOCK, thread_id))


async def prune(cur: Any, thread_id: str, kept: int) -> int | None:
    """Remove what the thread does not keep; return how many checkpoints went.

    None where somebody writes to the thread at this moment: then nothing goes.
    """
    async with cur.connection.transaction():
        await cur.execute(ALONE, (LOCK, thread_id))
        row = await cur.fetchone()
        if not row["held"]:
            return None
        await cur.execute(PRUNE, {"thread": thread_id, "kept": kept})
        row = await cur.fetchone()
        return int(row["count"])


def first_id_at(instant: datetime) -> str:
    """Return what the ids of checkpoints from an instant on are not less than: they tell time."""
    since = instant - GREGORIAN
    ticks = (since.days * 86_400 + since.seconds) * 10**7 + since.microseconds * 10
    spelled = f"{ticks:015x}"
    return f"{spelled[:8]}-{spelled[8:12]}-6{spelled[12:]}"


def is_due(kept: int, step: int) -> bool:
    """Tell whether a thread's own step is one that prunes: the cost is shared by many."""
    return kept > 0 and step > 0 and step % max(kept, LEAST_STEPS) == 0
