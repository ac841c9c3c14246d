"""What `everlong sweep` does: old ledger entries go to the archive, old messages go."""

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig

from everlong.graph.agent import utc_now
from everlong.graph.cli_open import opened_agent
from everlong.graph.cli_settings import context_for
from everlong.graph.runtime import Agent
from everlong.graph.terminal import put, waiting
from everlong.nodes.context import Context
from everlong.nodes.retention import archive_entries, needed, remove_messages
from everlong.nodes.run import Run
from everlong.stores import indexing, transcripts
from everlong.stores.amounts import amount
from everlong.stores.namespaces import ROOT, raw
from everlong.stores.records import FIRST_LIMIT


@dataclass(kw_only=True)
class Swept:
    """What was done, of all users."""

    users: int = 0
    archived: int = 0
    removed: int = 0


async def sweep(user_id: str | None, *, dsn: str | None) -> int:
    """Let go of what is old, of one user or of all, by the settings; print how much it was."""
    context = context_for(user_id, None).model_copy(update={"transcript": True})
    done = Swept()
    async with opened_agent(dsn) as agent:
        with waiting("Sweeping"):
            for one in [user_id] if user_id else await _users(agent):
                await _sweep_user(agent, context, one, done)
            await indexing.update(agent.store, user_id)
    days = context.memory.ledger_days, context.transcript_days
    archived, removed = (
        f"{amount(count, *names)} {what} (after {amount(limit, 'day')})"
        if limit
        else f"no {names[1]} {what} (0 days: kept for good)"
        for count, limit, names, what in (
            (done.archived, days[0], ("ledger entry", "ledger entries"), "moved to the archive"),
            (done.removed, days[1], ("message", "messages"), "removed from transcripts"),
        )
    )
    put(f"{amount(done.users, 'user')}: {archived}, {removed}.")
    return 0


async def _users(agent: Agent) -> Sequence[str]:
    limit = FIRST_LIMIT
    while True:
        found = await agent.store.alist_namespaces(prefix=(ROOT,), max_depth=2, limit=limit)
        if len(found) < limit:
            return sorted({raw(namespace[1]) for namespace in found})
        limit *= 4


async def _sweep_user(agent: Agent, context: Context, user_id: str, done: Swept) -> None:
    run = _run(agent, context, user_id, "")
    while True:
        step = await archive_entries(run)
        done.archived += step.removed
        if step.is_last:
            break
    for thread_id in await transcripts.threads(agent.store, user_id):
        done.removed += await _sweep_thread(agent, _run(agent, context, user_id, thread_id))
    done.users += 1


async def _sweep_thread(agent: Agent, run: Run) -> int:
    """Remove a thread's old messages, while none of its runs is going on; return how many."""
    removed = 0
    config: RunnableConfig = {"configurable": {"thread_id": run.thread_id}}
    async with agent.alone(config) as graph:
        values = (await graph.aget_state(config)).values
        kept = await needed(run, values.get("messages", ()), values.get("unflushed", ()))
        while True:
            step = await remove_messages(run, kept)
            removed += step.removed
            if step.is_last:
                return removed


def _run(agent: Agent, context: Context, user_id: str, thread_id: str) -> Run:
    return Run(
        context=context,
        user_id=user_id,
        thread_id=thread_id,
        store=agent.store,
        instant=utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        tell=lambda _: None,
    )
