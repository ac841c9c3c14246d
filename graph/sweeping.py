"""Let go of what is old: a user's records, texts and threads; `everlong sweep` and each worker do.

What resuming, undoing and an unfinished flush need stays, however old it is. Each part is harmless
when it is done twice, or by two at once.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from everlong.graph.agent import Clock
from everlong.nodes.context import Context
from everlong.nodes.retention import archive_entries, needed, remove_messages
from everlong.nodes.run import Run
from everlong.nodes.transcript import call_ids
from everlong.nodes.working import now_of
from everlong.stores import file_retention, record_retention, transcripts
from everlong.stores.checkpoint_pruning import first_id_at
from everlong.stores.namespaces import raw
from everlong.stores.old_threads import Limits, to_look_at
from everlong.stores.postgres import Stores
from everlong.stores.retention import Needed, is_before
from everlong.stores.settings import settings
from everlong.stores.states import held_in, places_of, states_of
from everlong.stores.sweeping import namespaces_of

BUSY_SECONDS = 2.0
"""How long a thread at work is waited for; its own calls let go of what is old, too."""
THREADS_AT_ONCE = 1_000


@dataclass(kw_only=True)
class Swept:
    """How much went."""

    users: int = 0
    archived: int = 0
    """Ledger entries that moved to the archive."""
    entries: int = 0
    """Archived entries that were removed."""
    versions: int = 0
    """Of MEMORY.md."""
    messages: int = 0
    """Of transcripts."""
    receipts: int = 0
    """Records of compactions."""
    results: int = 0
    """Of calls that nobody waits for any more."""
    files: int = 0
    checkpoints: int = 0


@dataclass(frozen=True, kw_only=True)
class Broom:
    """Where to sweep, and by which settings."""

    stores: Stores
    context: Context
    clock: Clock
    again_days: int = 0
    """For so long a thread is left alone in which something old had to stay."""

    @property
    def now(self) -> datetime:
        """The present instant."""
        return self.clock()


async def sweep_user(broom: Broom, user_id: str, done: Swept) -> None:
    """Let go of what is old of one user.

    Raises:
        Exception: the store's own; what is left is done by the next sweep.
    """
    store, run = broom.stores.store, _run(broom, user_id, "")
    while True:
        step = await archive_entries(run)
        done.archived += step.removed
        if step.is_last:
            break
    memory = broom.context.memory
    done.entries += await record_retention.remove_archived(
        *(store, user_id),
        instant=run.instant,
        days=memory.archive_days,
        kept=memory.archive_entries,
    )
    done.versions += await record_retention.remove_versions(store, user_id)
    limits = Limits(
        days=broom.context.transcript_days,
        messages=broom.context.transcript_messages,
        again_days=broom.again_days,
    )
    places = await namespaces_of(store, user_id)
    recorded = {raw(place[3]) for place in places if place[2:3] == ("transcripts",)}
    for thread_id in await to_look_at(store, user_id, limits, instant=run.instant):
        await _sweep_thread(broom, _run(broom, user_id, thread_id), done)
    if days := broom.context.transcript_days:
        done.files += await file_retention.remove_unnamed(
            store,
            user_id,
            before=broom.now - timedelta(days=days),
            paths=partial(_paths, broom, recorded),
        )
    done.users += 1


async def sweep_checkpoints(broom: Broom, done: Swept, *, after: str = "") -> str:
    """Prune some threads that rest to what resuming needs; return where to go on; empty: no more.

    Raises:
        Exception: the database's own.
    """
    saver, days = broom.stores.saver, settings().checkpoint_days
    if not days:
        return ""
    since = first_id_at(broom.now - timedelta(days=days))
    found, last = await saver.resting_threads(since=since, after=after, limit=THREADS_AT_ONCE)
    for thread_id in found:
        done.checkpoints += await saver.keep_newest(thread_id, kept=1) or 0
    return last


async def _sweep_thread(broom: Broom, run: Run, done: Swept) -> None:
    """Let go of a thread's old records, while none of its runs is going on."""
    async with _at_rest(broom, run.thread_id) as is_free:
        if not is_free:
            return
        store, (found, waiting) = broom.stores.store, await _held(broom, run)
        if found is None and await _is_young(broom, run):
            return  # its state is kept elsewhere, and says what has to stay
        kept = found or await needed(run, (), (), {})
        while True:
            step = await remove_messages(run, kept, noted=False)
            done.messages += step.removed
            if step.is_last:
                break
        place, days = (store, run.user_id, run.thread_id), broom.context.transcript_days
        done.receipts += await record_retention.remove_receipts(
            *place, needed=kept.receipts, instant=run.instant, days=days
        )
        if found is not None or days:  # kept elsewhere, a call may still wait for a person
            done.results += await record_retention.remove_finished_calls(
                *place, waiting=waiting, days=0 if found else days
            )


async def _held(broom: Broom, run: Run) -> tuple[Needed | None, set[str]]:
    """Return what a thread's states need, None where there are none, and which calls wait."""
    found: Needed | None = None
    waiting: set[str] = set()
    async for state in states_of(broom.stores.saver, run.thread_id):
        held = state.checkpoint["channel_values"]
        history: Sequence[BaseMessage] = held.get("messages", ())
        one = await needed(run, history, held.get("unflushed", ()), held.get("archived", {}))
        found = found.with_branch(one) if found else one
        waiting.update(_waiting(history))
    return found, waiting


async def _paths(broom: Broom, recorded: Collection[str], thread_id: str) -> set[str] | None:
    """Return the paths that a thread's states name; None where nothing tells.

    That is where its state is kept elsewhere and it is not `recorded`: it keeps no transcript.
    """
    named: set[str] = set()
    is_told = thread_id in recorded
    async for state in states_of(broom.stores.saver, thread_id):
        named |= await asyncio.to_thread(file_retention.paths_in, held_in(state))
        is_told = True
    return named if is_told else None


async def _is_young(broom: Broom, run: Run) -> bool:
    """Tell whether something was said in a thread since what is old was said."""
    days = broom.context.transcript_days
    said = await transcripts.glance(broom.stores.store, run.user_id, run.thread_id)
    return any(not is_before(one.at, run.instant, days) for one in reversed(said))


def _waiting(history: Sequence[BaseMessage]) -> list[str]:
    """Return the ids of the assistant's messages with calls that have no result yet."""
    answered = {one.tool_call_id for one in history if isinstance(one, ToolMessage)}
    asking = [one for one in history if isinstance(one, AIMessage)]
    return [str(one.id) for one in asking if not set(call_ids(one)) <= answered]


@asynccontextmanager
async def _at_rest(broom: Broom, thread_id: str) -> AsyncGenerator[bool]:
    """Hold the thread; False where a run has it."""
    outermost = places_of(thread_id)[-1]["thread_id"]
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(BUSY_SECONDS):
                await stack.enter_async_context(broom.stores.locks.hold(outermost))
        except TimeoutError:
            yield False
        else:
            yield True


def _run(broom: Broom, user_id: str, thread_id: str) -> Run:
    def untold(_: dict[str, Any]) -> None:
        """Nobody follows a sweep."""

    return Run(
        context=broom.context.model_copy(update={"transcript": True}),
        user_id=user_id,
        thread_id=thread_id,
        store=broom.stores.store,
        instant=now_of(broom.clock),
        tell=untold,
    )
