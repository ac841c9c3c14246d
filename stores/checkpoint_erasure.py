"""Whose checkpoints there are, and how what they hold is changed or refused (R49)."""

import asyncio
import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg.errors import DivisionByZero

from everlong.stores.checkpoint_messages import KEYS_TYPE
from everlong.stores.namespaces import OWNER, label
from everlong.stores.pruned_saver import PrunedSaver
from everlong.stores.tombstones import UserForgottenError

TABLE = """
CREATE TABLE IF NOT EXISTS forgotten_users (
    digest text PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now()
)"""
REFUSE = "SELECT 1 / (count(*) = 0)::int FROM forgotten_users WHERE digest = %s"
"""Fails, and with it the transaction, where the user was forgotten; it costs no round trip."""
MARK = "INSERT INTO forgotten_users (digest) VALUES (%s) ON CONFLICT DO NOTHING"
ALLOW = "DELETE FROM forgotten_users WHERE digest = %s"
THREADS = (
    "SELECT DISTINCT thread_id FROM checkpoints"
    " WHERE checkpoint->'channel_values'->>'owner' = %(user)s OR metadata->>'everlong_owner' = "
    "%(user)s ORDER BY thread_id"
)
HELD: Mapping[str, tuple[str, ...]] = {
    "checkpoint_messages": ("checkpoint_ns", "key"),
    "checkpoint_blobs": ("checkpoint_ns", "channel", "version"),
    "checkpoint_writes": ("checkpoint_ns", "checkpoint_id", "task_id", "idx"),
}
"""Where a thread's values are, and what, beside the thread, tells them apart."""
ROWS_AT_ONCE = 200

Change = Callable[[Any], Any]
_written_for: ContextVar[str] = ContextVar("everlong_owner", default="")


def digest_of(user_id: str) -> str:
    """Return what a user who was forgotten is known by."""
    return hashlib.sha256(b"everlong user " + label(user_id).encode()).hexdigest()[:32]


@contextmanager
def refusing(owner: str) -> Generator[None]:
    """Have what is written meanwhile refused where the owner was forgotten.

    Raises:
        UserForgottenError: it was; nothing is written.
    """
    outside = _written_for.set(owner)
    try:
        yield
    except DivisionByZero as error:
        msg = "expected a thread of a user who may be written; this one's user was forgotten"
        raise UserForgottenError(msg) from error
    finally:
        _written_for.reset(outside)


async def refuse(cur: Any) -> None:
    """Fail the transaction that begins where it writes for a user who was forgotten."""
    if owner := _written_for.get():
        await cur.execute(REFUSE, (digest_of(owner),))


def owner_in(config: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """Return whose checkpoint is written; empty where nothing says."""
    metadata: Mapping[str, Any] = config.get("metadata") or {}
    return str(metadata.get(OWNER) or values.get("owner") or "")


async def _rewritten(cur: Any, serde: SerializerProtocol, thread_id: str, change: Change) -> int:
    """Put each value that the thread's checkpoints hold through `change`; return how many differ.

    Keys stay as they are, so whoever refers to a value finds the changed one.
    """
    return sum([await _rewrite(cur, serde, thread_id, change, table) for table in HELD])


async def _rewrite(
    cur: Any, serde: SerializerProtocol, thread_id: str, change: Change, table: str
) -> int:
    names = HELD[table]
    await cur.execute(
        f"SELECT {', '.join(names)}, type, blob FROM {table} WHERE thread_id = %s",  # noqa: S608 - our own names
        (thread_id,),
    )
    rows = await cur.fetchall()
    where = " AND ".join(f"{name} = %s" for name in names)
    update = f"UPDATE {table} SET type = %s, blob = %s WHERE thread_id = %s AND {where}"  # noqa: S608 - our own names
    count = 0
    for first in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[first : first + ROWS_AT_ONCE]
        changed = await asyncio.to_thread(_changed, serde, some, change)
        for row, (kind, blob) in changed:
            await cur.execute(update, (kind, blob, thread_id, *(row[name] for name in names)))
        count += len(changed)
    return count


def _changed(
    serde: SerializerProtocol, rows: Sequence[dict[str, Any]], change: Change
) -> list[tuple[dict[str, Any], tuple[str, bytes]]]:
    found: list[tuple[dict[str, Any], tuple[str, bytes]]] = []
    for row in rows:
        if row["blob"] is None or row["type"] in ("empty", "null", KEYS_TYPE):
            continue
        value = serde.loads_typed((row["type"], bytes(row["blob"])))
        new = change(value)
        if new is not value:
            found.append((row, serde.dumps_typed(new)))
    return found


class ErasableSaver(PrunedSaver):
    """A checkpointer that knows whose threads it has, and takes out what they had forgotten."""

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
            await cur.execute(THREADS, {"user": user_id})
            return [str(row["thread_id"]) for row in await cur.fetchall()]

    async def rewrite(self, thread_id: str, change: Change) -> int:
        """Put all that a thread's checkpoints hold through `change`; return how much differs."""
        async with self._cursor() as cur:
            return await _rewritten(cur, self.serde, thread_id, change)

    async def refuse_user(self, user_id: str) -> None:
        """Write no checkpoint of this user any more."""
        async with self._cursor() as cur:
            await cur.execute(MARK, (digest_of(user_id),))

    async def allow_user(self, user_id: str) -> None:
        """Write the user's checkpoints again."""
        async with self._cursor() as cur:
            await cur.execute(ALLOW, (digest_of(user_id),))
