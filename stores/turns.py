"""One at a time: for what is read, decided and then written."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from langgraph.store.base import BaseStore

Name = tuple[str, ...]


@dataclass
class _Turn:
    """The lock of a name, while somebody has it or waits for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0


_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, defaultdict[Name, _Turn]] = WeakKeyDictionary()


@asynccontextmanager
async def alone(*name: str, store: BaseStore | None = None) -> AsyncGenerator[None]:
    """Wait for the turn of a name, and hold it; never one inside another.

    Among the processes that share `store` where it keeps its items in Postgres. Those that share
    another one are not waited for: keys make what a second writer writes harmless.
    """
    turns = _TURNS.setdefault(asyncio.get_running_loop(), defaultdict(_Turn))
    turn = turns[name]
    turn.users += 1
    try:
        async with turn.lock, _among_processes(store, name):
            yield
    finally:
        turn.users -= 1
        if not turn.users:
            turns.pop(name, None)


def _among_processes(store: BaseStore | None, name: Name) -> AbstractAsyncContextManager[None]:
    if getattr(store, "conn", None) is None:
        return nullcontext()
    from everlong.stores.table_turns import held  # noqa: PLC0415 - Postgres' driver, with it

    return held(store, name)
