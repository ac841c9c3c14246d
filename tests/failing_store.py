"""A store in front of another one, whose writes or reads can be made to fail."""

from collections.abc import Iterable
from typing import Any

from langgraph.store.base import BaseStore, Op, PutOp, Result


class FailingStore(BaseStore):
    """Passes everything on, or raises: `fail_writes` and `fail_reads` hold the error to raise."""

    def __init__(self, inner: BaseStore) -> None:
        self.inner = inner
        self.fail_writes: Exception | None = None
        self.fail_reads: Exception | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        raise NotImplementedError

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        writes = [op for op in given if isinstance(op, PutOp)]
        if writes and self.fail_writes is not None:
            raise self.fail_writes
        if len(writes) < len(given) and self.fail_reads is not None:
            raise self.fail_reads
        return await self.inner.abatch(given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
