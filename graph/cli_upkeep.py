"""The commands for what goes on beside the calls: memory's upkeep."""

import asyncio
from typing import Annotated

import typer

from everlong.graph.cli_forget import FORGET_USER_EXAMPLES, forget_user
from everlong.graph.cli_options import AnyUser, Debug, Dsn, Model, User
from everlong.graph.terminal import STARTING, waiting

upkeep = typer.Typer(rich_markup_mode=None)


@upkeep.command(epilog="\b\nExample:\n  everlong consolidate --user kim")
def consolidate(user: User, dsn: Dsn = None, model: Model = None, _debug: Debug = False) -> None:
    """Rewrite MEMORY.md from the ledger.

    It is made of the old text and the entries that came since. Where none came, no model is asked
    and nothing changes. The model is the one named for memory (EVERLONG_MEMORY_MODEL), else
    --model.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory as run  # noqa: PLC0415 - of these commands only
    raise typer.Exit(asyncio.run(run.consolidate(user, model=model, dsn=dsn)))


@upkeep.command(
    epilog="\b\nExamples:\n"
    "  everlong worker\n"
    "  everlong worker --once --retry-failed\n"
    "  everlong worker --once --user kim --model openai:gpt-4o"
)
def worker(
    once: Annotated[
        bool, typer.Option("--once", help="Do what is there now, and end; 1 where some has failed.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Begin with what has failed for good.")
    ] = False,
    user: AnyUser = None,
    dsn: Dsn = None,
    model: Model = None,
    _debug: Debug = False,
) -> None:
    """Do the memory work that calls have left.

    A call with memory.flush_mode=background answers first, and leaves a record of what has to be
    flushed to the ledger. This does the records, of all users, by the model of the call that left
    each; --model is for those whose model was an object of a process that has ended. Several
    workers may run at once: no record is done twice. Without --once it goes on until Ctrl-C.
    """
    with waiting(STARTING):
        from everlong.graph import cli_worker as run  # noqa: PLC0415 - of this command only
    wanted = run.Wanted(once=once, retry_failed=retry_failed, user_id=user)
    raise typer.Exit(asyncio.run(run.worker(wanted, model=model, dsn=dsn)))


@upkeep.command(epilog="\b\nExamples:\n  everlong sweep\n  everlong sweep --user kim")
def sweep(user: AnyUser = None, dsn: Dsn = None, _debug: Debug = False) -> None:
    """Let go of what is old.

    Ledger entries that MEMORY.md has taken up move to the archive after 90 days
    (EVERLONG_MEMORY__LEDGER_DAYS), where they are still read and found. Messages that have left a
    thread's history go from its transcript after 180 days (EVERLONG_TRANSCRIPT_DAYS), but for what
    its last compaction took out and what a flush has still to read; stored texts go with them where
    nothing names them any more. A thread that rests keeps only its newest checkpoint after 7 days
    (EVERLONG_CHECKPOINT_DAYS). Consolidations do some of it, and a worker all of it once a day;
    this does all that is due, of every user, at once.
    """
    with waiting(STARTING):
        from everlong.graph import cli_sweep as run  # noqa: PLC0415 - of this command only
    raise typer.Exit(asyncio.run(run.sweep(user, dsn=dsn)))


upkeep.command("forget-user", epilog=FORGET_USER_EXAMPLES)(forget_user)
