"""The word index of a Postgres store: brought up to date when it is asked, not when one writes.

A namespace's items are indexed in blocks: those whose keys begin alike. A write only leaves a note
of the block that it changed; a search first indexes the blocks below its namespace that have notes.
Notes that were read before the items are gone only with what was made of these, all or none: so
of two who index a block at once the later look at it stands, and none is lost.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from langgraph.store.base import BaseStore

from everlong.stores import lexical
from everlong.stores.lexicon import Unit
from everlong.stores.turns import alone

if TYPE_CHECKING:  # a search on another store needs no driver
    from psycopg import AsyncConnection
    from psycopg.rows import DictRow
    from psycopg_pool import AsyncConnectionPool

    Connection = AsyncConnection[DictRow]
    Pool = AsyncConnectionPool[Connection]

Namespace = tuple[str, ...]
Value = dict[str, Any]
TextsOf = Callable[[Namespace, Sequence[Value]], Awaitable[Sequence[str]]]
"""What of a namespace's items is indexed."""

AT_ONCE = 200
"""Blocks that are indexed in one go."""
MOST_DUE = 100_000
"""Notes that are read at once."""
COUNTED_FOR_SECONDS = 300.0
"""How long Postgres' counts of common terms are believed; they only steer."""
_LAST_DIGITS = re.compile(r"\d+$")


@dataclass(frozen=True, order=True)
class Block:
    """Some items of one namespace."""

    namespace: Namespace
    block: str
    """What their keys begin with; it ends in a digit."""

    @property
    def prefix(self) -> str:
        """The namespace as the store spells it."""
        return ".".join(self.namespace)

    @property
    def beyond(self) -> str:
        """What the first key after the last one begins with at least."""
        return _LAST_DIGITS.sub(
            lambda found: str(int(found[0]) + 1).zfill(len(found[0])), self.block
        )


@dataclass(frozen=True, kw_only=True)
class Found:
    """An item in a block."""

    block: Block
    namespace: Namespace
    key: str
    value: Value


@dataclass(frozen=True, kw_only=True)
class Best:
    """The blocks that hold most of what is asked, best first."""

    blocks: Sequence[Block] = ()
    """At the end those that are not indexed whole."""
    rarities: Mapping[Unit, float] = field(default_factory=dict[Unit, float])
    """How rare what is asked for is below the namespace."""


async def set_up(connection: "Connection") -> None:
    """Create the tables, where they are not yet; all that the store holds is due then."""
    is_noted = await (await connection.execute(lexical.IS_NOTED)).fetchone() is not None
    for statement in lexical.SET_UP:
        await connection.execute(statement)
    if not is_noted:
        async with connection.transaction():
            for statement in lexical.BEGIN_NOTING:
                await connection.execute(statement)


def words_of(store: BaseStore) -> "WordTable | None":
    """Return the word index of a store; None where it has none."""
    found = getattr(store, "words", None)
    return found if isinstance(found, WordTable) else None


class WordTable:
    """Ranks blocks of a store's items by words."""

    def __init__(self, pool: "Pool", texts_of: TextsOf) -> None:
        """Work on the store's own pool."""
        self._pool = pool
        self._texts_of = texts_of
        self._common = lexical.Common()
        self._counted_at = float("-inf")

    async def best(self, namespace: Namespace, query: str, *, limit: int) -> Best:
        """Return the blocks below a namespace that hold most of what is asked."""
        await self.update(namespace)
        async with self._pool.connection() as connection:
            common = await self._counted(connection)
            asked = lexical.ranking(namespace, query, limit=limit, common=common)
            if asked is None:
                return Best()
            statement: Any = asked.statement  # built from numbers alone, which no type can say
            rows = await (await connection.execute(statement, asked.values)).fetchall()
            cut = await connection.execute(lexical.CUT_BLOCKS, (lexical.cut_below(namespace),))
            rows += await cut.fetchall()
        blocks = [Block(tuple(row["prefix"].split(".")), row["block"]) for row in rows]
        rarities = asked.rarities(rows[0] if rows else {})
        return Best(blocks=list(dict.fromkeys(blocks)), rarities=rarities)

    async def items(self, blocks: Sequence[Block], *, margin: int = 0) -> list[Found]:
        """Return the blocks' items, in the order of namespaces and keys.

        Where keys begin with a number, `margin` of it before and after each block, too.
        """
        wanted = [(one.prefix, one.block, *_bounds(one, margin)) for one in blocks]
        columns = [list(column) for column in zip(*wanted, strict=True)]
        if not columns:
            return []
        async with self._pool.connection() as connection:
            rows = await (await connection.execute(lexical.ITEMS, columns)).fetchall()
        found: dict[tuple[str, str], Found] = {}
        for row in rows:
            namespace = tuple(row["prefix"].split("."))
            block = Block(namespace, row["block"])
            found[row["prefix"], row["key"]] = Found(
                block=block, namespace=namespace, key=row["key"], value=row["value"]
            )
        return list(found.values())

    async def update(self, namespace: Namespace) -> int:
        """Index what has changed below a namespace until now; return how many blocks.

        What has gone is in the index no more.
        """
        count, asked = 0, _below(namespace)
        async with self._pool.connection() as connection:
            row = await (await connection.execute(lexical.IS_DUE, asked)).fetchone()
        if row is None or not row["is_due"]:
            return count
        asked |= {"before": row["now"], "limit": str(MOST_DUE)}
        async with alone("words", str(id(self)), *namespace):  # who comes next finds it done
            while due := await self._look(asked):
                for first in range(0, len(due), AT_ONCE):
                    await self._index(dict(islice(due.items(), first, first + AT_ONCE)))
                count += len(due)
        return count

    async def _index(self, due: Mapping[Block, Sequence[str]]) -> None:
        vectors = await self._vectors(due)
        async with self._pool.connection() as connection, connection.transaction():
            await _settle(connection, due, vectors)

    async def _look(self, asked: Mapping[str, Any]) -> dict[Block, list[str]]:
        async with self._pool.connection() as connection:
            return await _due(connection, asked)

    async def _vectors(self, blocks: Sequence[Block] | Mapping[Block, Any]) -> dict[Block, str]:
        """Return what is indexed of each block that has items; no connection is held meanwhile."""
        held: dict[Block, list[Value]] = {}
        for item in await self.items(list(blocks)):
            held.setdefault(item.block, []).append(item.value)
        texts = {block: await self._texts_of(block.namespace, some) for block, some in held.items()}
        return await asyncio.to_thread(
            lambda: {
                block: lexical.vector_of(block.namespace, some) for block, some in texts.items()
            }
        )

    async def _counted(self, connection: "Connection") -> lexical.Common:
        if time.monotonic() - self._counted_at > COUNTED_FOR_SECONDS:
            row = await (await connection.execute(lexical.COMMON_TERMS)).fetchone()
            if row:
                terms: Sequence[str] = row["terms"] or ()
                shares = dict(zip(terms, row["shares"] or (), strict=False))
                self._common = lexical.Common(max(row["rows"], 0.0), shares)
            self._counted_at = time.monotonic()
        return self._common


def _below(namespace: Namespace) -> dict[str, str]:
    prefix = ".".join(namespace)
    return {"at": prefix, "below": f"{prefix}.", "beyond": f"{prefix}/"}


def _bounds(block: Block, margin: int) -> tuple[str, str]:
    if not margin:
        return block.block, block.beyond
    tens = 10  # a block of numbers leaves out their last digit
    digits = len(block.block) + 1
    first = max(int(block.block) * tens - margin, 0)
    beyond = int(block.beyond) * tens + margin
    return str(first).zfill(digits), str(beyond).zfill(digits)


async def _due(connection: "Connection", asked: Mapping[str, Any]) -> dict[Block, list[str]]:
    """Return the notes of some blocks that are due."""
    rows = await (await connection.execute(lexical.DUE, asked)).fetchall()
    found: dict[Block, list[str]] = {}
    for row in rows:
        block = Block(tuple(row["prefix"].split(".")), row["block"])
        found.setdefault(block, []).append(row["note"])
    return found


async def _settle(
    connection: "Connection", due: Mapping[Block, Sequence[str]], vectors: Mapping[Block, str]
) -> None:
    """Write what was made of blocks whose notes are all still there, and remove these."""
    notes = _columns([(one.prefix, one.block, note) for one in due for note in due[one]])
    rows = await (await connection.execute(lexical.HELD, notes)).fetchall()
    held = {(row["prefix"], row["block"]): row["notes"] for row in rows}
    ours = [one for one in due if held.get((one.prefix, one.block)) == len(due[one])]
    done = [(one.prefix, one.block, note) for one in ours for note in due[one]]
    written = [(one.prefix, one.block, vectors[one]) for one in ours if one in vectors]
    gone = [(one.prefix, one.block) for one in ours if one not in vectors]
    if done:
        await connection.execute(lexical.DONE, _columns(done))
    if written:
        await connection.execute(lexical.WRITE, _columns(written))
    if gone:
        await connection.execute(lexical.REMOVE, _columns(gone))


def _columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [list(column) for column in zip(*rows, strict=True)]
