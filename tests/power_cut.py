"""Stores that lose power at a chosen write: what was written before stays, nothing comes after."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore


class PowerCut(BaseException):
    """The process is gone: no `except Exception` of ours lives to see it."""


@dataclass
class Power:
    """Counts writes; before number `cut` everything ends, until it is `on` again."""

    cut: int = 0
    """0: never."""
    hiccup: Exception | None = None
    """Nothing ends: that one write raises this."""
    writes: int = 0
    on: bool = True

    def used(self, *, writing: bool) -> None:
        """Note a use; end it where the power is cut."""
        self.writes += writing
        if writing and self.writes == self.cut:
            if self.hiccup:
                raise self.hiccup
            self.on = False
        if not self.on:
            raise PowerCut

    async def until_cut(self, work: Callable[[], Awaitable[object]]) -> bool:
        """Do something while there is power; tell whether it was cut, and have it on again."""
        try:
            await work()
        except BaseException:
            if self.on:
                raise
        was_cut, self.on = not self.on, True
        return was_cut


class CutStore(BaseStore):
    """A plain store; a batch is written whole or not at all, as Postgres does it."""

    def __init__(self, power: Power) -> None:
        self.power = power
        self.inner = InMemoryStore()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        raise NotImplementedError

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        self.power.used(writing=any(isinstance(op, PutOp) for op in given))
        return await self.inner.abatch(given)


class CutSaver(InMemorySaver):
    """A checkpointer on the same power."""

    def __init__(self, power: Power) -> None:
        super().__init__()
        self.power = power

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        self.power.used(writing=True)
        return await super().aput(*args, **kwargs)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        self.power.used(writing=True)
        await super().aput_writes(*args, **kwargs)
