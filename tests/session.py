"""One session of one user, played through the whole graph and held against what must be."""

import asyncio
from collections import Counter
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import pytest
from hypothesis import event
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import BaseMessage, HumanMessage

from conversation import Conversation
from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError
from everlong.stores import transcripts
from everlong.stores.postgres import Stores, open_stores
from failing_store import FailingStore
from observed import Observed
from session_cast import SLACK_TOKENS, Cast
from session_record import Record, check_kept, check_pins

KEPT = 3
"""Checkpoints of a thread; with what comes between two prunes, a few calls."""


class World:
    """The database of all sessions, and the process's pool and stores."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.runner = asyncio.Runner()
        self.seen: Counter[str] = Counter()
        """How often each kind of thing came about, in all sessions."""
        self.sessions = 0
        self._open: AbstractAsyncContextManager[Stores]
        self.stores = self.runner.run(self._opened())

    async def _opened(self) -> Stores:
        self._open = open_stores(self.dsn, pool_size=4, kept=KEPT)
        return await self._open.__aenter__()

    def restart(self) -> Stores:
        """Go on as another process would: a new pool, saver and store."""
        self.runner.run(self._open.__aexit__(None, None, None))
        self.stores = self.runner.run(self._opened())
        return self.stores

    def close(self) -> None:
        self.runner.run(self._open.__aexit__(None, None, None))
        self.runner.close()


class Session:
    """A session; `context` comes with `begin`."""

    context: Context
    talk: Conversation
    store: FailingStore

    def __init__(self, world: World) -> None:
        self.world = world
        world.sessions += 1
        self.user = f"kim-{world.sessions}"
        self.cast = Cast()
        self.record = Record()
        self.saved: list[tuple[str, Record]] = []
        """Checkpoints in which a call had ended, each with what was kept by then."""
        self.paused = False
        self.full = False
        self.forked = False
        self.names = False
        """Whether the provider names its window in this call."""
        self.said = 0

    def begin(self, context: Context) -> None:
        """Start with these settings."""
        self.context = context
        self.record.window = context.compaction.window_tokens
        self.cast.serve(context)
        self.opened()

    def opened(self) -> None:
        """Go on with the process's stores as they are now."""
        self.store = FailingStore(self.world.stores.store)
        self.talk = Conversation(
            saver=self.world.stores.saver,
            store=self.store,
            context=self.context,
            tools=self.cast.tools,
            thread_id=f"thread of {self.user}",
        )

    def is_there(self, checkpoint: str) -> bool:
        """Tell whether a checkpoint was not pruned since."""
        place = {"thread_id": self.talk.thread_id, "checkpoint_id": checkpoint}
        found = self.world.runner.run(self.talk.saver.aget_tuple({"configurable": place}))
        return found is not None

    def is_refused_at(self, gone: str) -> None:
        """Go on from a checkpoint that was pruned: nothing changes, and no model is asked."""
        before = self.world.runner.run(self._all_kept())
        self.world.runner.run(self._refused(gone))
        assert self.world.runner.run(self._all_kept()) == before
        self.world.seen["fork of what is gone"] += 1

    async def _refused(self, gone: str) -> None:
        with pytest.raises(InvalidInputError, match="checkpoint_id"):
            await self.talk.send({"messages": [HumanMessage("Go on.", id="never")]}, at=gone)
        assert self.talk.last_call.requests == []

    async def _all_kept(self) -> tuple[Any, ...]:
        """Return what of the thread is stored, as far as a call could change it."""
        newest = await self.talk.graph.aget_state(self.talk.config)
        entries = await transcripts.read(self.store, self.user, self.talk.thread_id)
        return newest.config, newest.values, entries

    def asks(self, text: str, *, pin: bool = False, **how: Any) -> None:
        """Send a user's message."""
        self.said += 1
        ident = f"u{self.said}"
        kwargs = {"pin": True} if pin else {}
        self.record.said[ident] = text
        if pin:
            self.record.pinned[ident] = text
        message = HumanMessage(text, id=ident, additional_kwargs=kwargs)
        self.run({"messages": [message]}, **how)

    def run(self, given: Any, **how: Any) -> None:
        """Run a call to its end, then hold everything against what must be."""
        self.world.runner.run(self._run(given, **how))

    async def _run(
        self,
        given: Any,
        *,
        raises: type[Exception] | None = None,
        pauses: bool = False,
        cancelled: bool = False,
        disk_full: bool = False,
        at: str = "",
    ) -> None:
        self.full = disk_full
        self.store.fail_writes = OSError("disk full") if disk_full else None
        sending = asyncio.ensure_future(self.talk.send(given, at=at))
        if cancelled:
            await self._cancel(sending)
        elif raises:
            with pytest.raises(raises):
                await sending
        else:
            await self._unless_full(sending)
        done = self.talk.last_call
        self.store.fail_writes = None
        self.paused = pauses
        ended = done.error is None and not pauses and not disk_full
        self.record.follow(done)
        self.count(done)
        await self._check(done, ended=ended)
        self.cast.answers.clear()
        self.cast.refused, self.names = 0, False
        self.cast.refused_inside.clear()
        if ended:
            snapshot = await self.talk.graph.aget_state(self.talk.config)
            self.saved.append(
                (snapshot.config["configurable"]["checkpoint_id"], self.record.copy())
            )

    async def _unless_full(self, sending: "asyncio.Future[list[BaseMessage]]") -> None:
        """Await a call; what cannot be kept is not replaced, so a full disk may end it (R17)."""
        try:
            await sending
        except ContextOverflowError:
            assert self.store.fail_writes is not None

    async def _cancel(self, sending: "asyncio.Future[list[BaseMessage]]") -> None:
        """Cancel when a model or tool hangs; some calls never come to that."""
        hangs = asyncio.ensure_future(self.cast.hanging.wait())
        await asyncio.wait([hangs, sending], return_when=asyncio.FIRST_COMPLETED)
        hangs.cancel()
        if sending.done():
            await self._unless_full(sending)
        else:
            sending.cancel()
            with suppress(asyncio.CancelledError):
                await sending
            assert self.talk.last_call.error is not None
        self.cast.hangs_at = ""
        self.cast.hanging.clear()

    async def _check(self, done: Observed, *, ended: bool) -> None:
        await check_kept(
            self.record,
            done.values,
            self.store,
            user_id=self.user,
            thread_id=self.talk.thread_id,
            results=self.cast.results,
            complete=ended,
            forked=self.forked,
        )
        check_pins(self.record, done)
        twice = {number: times for number, times in self.cast.ran.items() if times > 1}
        assert not twice, f"each call once; got {twice}"
        self._check_sizes(done)

    def _check_sizes(self, done: Observed) -> None:
        """Hold requests to the window that the branch knows of; a refusal tells it of another."""
        inside = [
            (kind, size) for kind, size in self.cast.refused_inside if size > self.record.window
        ]
        assert not inside, f"inner requests of at most {self.record.window} tokens; got {inside}"
        over = [size for size in self.sizes(done) if size > self.record.window + SLACK_TOKENS]
        assert self.full or not over, f"at most {self.record.window} tokens; got {over}"
        if self.cast.refused or self.names:
            self.record.window = self.cast.window

    def sizes(self, done: Observed) -> list[int]:
        """Return how big the call's requests were, in tokens."""
        return [self.cast.size_of(request) for request in done.requests]

    def count(self, done: Observed) -> None:
        """Note what came about, so that the machine is seen to be no idle show."""
        receipts = [e for e in done.events if e["type"] == "compaction.finished"]
        came = [f"compaction: {one.get('outcome')}" for one in receipts]
        came += [f"trigger: {one.get('trigger')}" for one in receipts]
        came += [f"by {one['by']}" for one in receipts if "by" in one]
        came += [one["type"] for one in done.events if one["type"] == "eviction"]
        came += ["preview of a user message"] if done.previewed else []
        came += [f"ended by {type(done.error).__name__}"] if done.error else []
        came += ["forked"] if self.forked else []
        came += ["paused"] if self.paused else []
        came += ["refused by the provider"] if self.cast.refused else []
        for one in came:
            self.world.seen[one] += 1
            event(one)
