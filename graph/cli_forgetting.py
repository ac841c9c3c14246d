"""What `everlong memory forget` and `everlong forget-user` do."""

from collections.abc import Sequence

from langgraph.store.base import BaseStore

from everlong.graph.agent import utc_now
from everlong.graph.cli_memory_versions import agreed
from everlong.graph.cli_open import opened_stores
from everlong.graph.terminal import err, put, put_error, waiting
from everlong.nodes.forget_tool import extent
from everlong.stores import erasure, forgetting, tombstones
from everlong.stores.amounts import amount
from everlong.stores.forgetting import Plan
from everlong.stores.matters import Matter
from everlong.stores.sweeping import namespaces_of
from everlong.stores.traces import Trace, traces
from everlong.stores.users import sweep_is_at

NOTHING = "Nothing was changed."


async def forget(user_id: str, what: str, *, yes: bool, dsn: str | None) -> int:
    """Erase what is meant; 1 where that is not certain, or the person does not want it."""
    async with opened_stores(dsn) as (_, stores):
        planned = await forgetting.plan(stores.store, user_id, what, at=_now())
        if not planned.forgotten.is_done:
            _put_uncertain(user_id, what, planned)
            return 1
        _put_matters(planned.forgotten.matters)
        if not (yes or agreed("Erase this for good, wherever it is?")):
            put(NOTHING)
            return 1
        with waiting("Erasing"):
            done = await forgetting.carry_out(stores.store, user_id, planned, saver=stores.saver)
    threads = done.swept.threads
    states = f", checkpoints of {amount(threads, 'thread')}" if threads else ""
    put(f"Forgotten: {extent(done)}{states}.")
    if done.also:
        put("This stays, and names a part of it:", style="dim")
        _put_matters(done.also)
    return 0


async def allow_fact(user_id: str, what: str, *, dsn: str | None) -> int:
    """Let what was forgotten be remembered again when it is said; 1 where nothing says so."""
    async with opened_stores(dsn) as (_, stores):
        lifted = await tombstones.lift(stores.store, user_id, [what])
    if not lifted:
        put_error(f"{user_id} had nothing forgotten that {what!r} says; say it as it was said.")
        return 1
    put(f"It may be remembered again, when {user_id} says it again. Nothing comes back.")
    return 0


async def forget_user(user_id: str, *, yes: bool, dsn: str | None) -> int:
    """Erase everything of a user and prove it; 1 where something is left."""
    async with opened_stores(dsn) as (found, stores):
        threads = await erasure.threads_of(stores.store, user_id, stores.saver)
        has_records = bool(await namespaces_of(stores.store, user_id))
        if not (threads or has_records or await sweep_is_at(stores.store, user_id)):
            put_error(f"there is nothing of {user_id}: is that the very id? {NOTHING}")
            return 1
        if not yes and not agreed(await _question(stores.store, user_id, threads)):
            put(NOTHING)
            return 1
        with waiting("Erasing"):
            done = await erasure.forget_user(stores.store, user_id, saver=stores.saver, at=_now())
        put(f"Erased: {amount(done.records, 'record')}, {amount(len(done.threads), 'thread')}.")
        with waiting("Searching every table"):
            left = await traces(found, user_id, done.threads)
    return _put_traces(user_id, done.threads, left)


async def allow(user_id: str, *, dsn: str | None) -> int:
    """Let an id that was forgotten be used again; 1 where it was not forgotten."""
    async with opened_stores(dsn) as (_, stores):
        was = await erasure.allow_again(stores.store, user_id, saver=stores.saver)
    if not was:
        put_error(f"{user_id} was not forgotten; {NOTHING[0].lower()}{NOTHING[1:]}")
        return 1
    put(f"The id {user_id} may be used again. Nothing comes back.")
    return 0


async def _question(store: BaseStore, user_id: str, threads: Sequence[str]) -> str:
    kinds = sorted({place[2] for place in await namespaces_of(store, user_id)})
    put(f"{user_id} has {amount(len(threads), 'thread')}; records: {', '.join(kinds) or 'none'}.")
    return "Erase all of it for good?"


def _put_uncertain(user_id: str, what: str, planned: Plan) -> None:
    if not planned.forgotten.matters:
        put_error(f"nothing that is remembered of {user_id} says {what!r}; nothing was erased.")
        return
    put_error("it is not certain which of these is meant; nothing was erased. Name one source:")
    _put_matters(planned.forgotten.matters)


def _put_matters(matters: Sequence[Matter]) -> None:
    for one in matters:
        put(f": {one.text}", lead=f"Source: {one.source}", lead_style="cyan", indent="  ")


def _put_traces(user_id: str, threads: Sequence[str], found: Sequence[Trace]) -> int:
    """Print what each table still holds; 1 where one of ours holds anything."""
    ours = [one for one in found if one.is_ours]
    put(f"Searched {amount(len(found), 'table')} for the id, its records and its threads:")
    for one in found:
        if one.is_ours or one.rows:
            whose = "" if one.is_ours else " (not everlong's; left alone)"
            put(f"  {amount(one.rows, 'row')}{whose}", lead=f"  {one.table}", lead_style="cyan")
    left = sum(one.rows for one in ours)
    if left:
        put_error(f"{amount(left, 'row')} of {user_id} left: end what still runs, and try again.")
        return 1
    put(f"Nothing of {user_id} is left. The id is refused until --allow-again.")
    if threads:
        put(
            "A LangGraph server keeps a list of threads of its own; where one has used this "
            f"database, delete there: {', '.join(threads)}",
            style="dim",
            to=err,
        )
    return 0


def _now() -> str:
    return utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
