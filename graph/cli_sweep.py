"""What `everlong sweep` does: let go of what is old, of one user or of all."""

from collections.abc import AsyncGenerator
from contextlib import suppress

from everlong.graph.agent import utc_now
from everlong.graph.cli_open import opened_stores
from everlong.graph.cli_settings import context_for
from everlong.graph.sweeping import Broom, Swept, sweep_checkpoints, sweep_user
from everlong.graph.terminal import put, waiting
from everlong.nodes.context import Context
from everlong.stores import indexing, work_queue
from everlong.stores.amounts import amount
from everlong.stores.settings import settings
from everlong.stores.tombstones import UserForgottenError
from everlong.stores.users import users_after

USERS_AT_ONCE = 100


async def sweep(user_id: str | None, *, dsn: str | None) -> int:
    """Let go of what is old, by the settings; print how much it was.

    Checkpoints of threads at rest, and records of work that is done, are of all users: they go
    where no user is named.
    """
    context, done = context_for(user_id, None), Swept()
    async with opened_stores(dsn) as (_, stores):
        broom = Broom(stores=stores, context=context, clock=utc_now)
        with waiting("Sweeping"):
            async for one in _users(broom, user_id):
                with suppress(UserForgottenError):  # meanwhile: nothing is left to let go of
                    await sweep_user(broom, one, done)
            if user_id is None:
                await _all_checkpoints(broom, done)
                await work_queue.sweep(stores.store)
            await indexing.update(stores.store, user_id)
    put(_said(done, context, of_all=user_id is None))
    return 0


async def _users(broom: Broom, user_id: str | None) -> AsyncGenerator[str]:
    if user_id is not None:
        yield user_id
        return
    after = ""
    while users := await users_after(broom.stores.store, after, most=USERS_AT_ONCE):
        for one in users:
            yield one
        after = users[-1]


async def _all_checkpoints(broom: Broom, done: Swept) -> None:
    after = await sweep_checkpoints(broom, done)
    while after:
        after = await sweep_checkpoints(broom, done, after=after)


def _limit(days: int, *, newest: int = 0) -> str:
    """Say what goes; empty where nothing does."""
    by_age = [f"after {amount(days, 'day')}"] if days else []
    by_number = [f"all but the newest {newest:,} of a thread"] if newest else []
    return ", or ".join(by_age + by_number)


def _said(done: Swept, context: Context, *, of_all: bool) -> str:
    counted = (
        (done.archived, ("ledger entry", "ledger entries"), "moved to the archive"),
        (done.messages, ("message", "messages"), "removed from transcripts"),
        (done.checkpoints, ("checkpoint", "checkpoints"), "of threads at rest removed"),
    )
    limits = (
        _limit(context.memory.ledger_days),
        _limit(context.transcript_days, newest=context.transcript_messages),
        _limit(settings().checkpoint_days),
    )
    parts = [
        f"{amount(count, *names)} {what}" + (f" ({limit})" if limit else "")
        if limit or count
        else f"no {names[1]} {what} (0 days: kept for good)"
        for (count, names, what), limit in zip(counted, limits, strict=True)
    ][: None if of_all else -1]
    also = {
        amount(done.entries, "archived entry", "archived entries"): done.entries,
        amount(done.versions, "version of MEMORY.md", "versions of MEMORY.md"): done.versions,
        amount(done.receipts, "record of a compaction", "records of compactions"): done.receipts,
        amount(done.results, "result of a call", "results of calls"): done.results,
        amount(done.files, "stored text"): done.files,
    }
    more = [text for text, count in also.items() if count]
    gone = f", {', '.join(more)} removed" if more else ""
    return f"{amount(done.users, 'user')}: {', '.join(parts)}{gone}."
