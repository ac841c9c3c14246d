"""The commands that erase for good: `everlong memory forget`, `everlong forget-user`."""

import asyncio
from typing import Annotated

import typer

from everlong.graph.cli_memory_edits import Yes
from everlong.graph.cli_options import Debug, Dsn, User
from everlong.graph.terminal import STARTING, waiting

FORGET_EXAMPLES = (
    "\b\nExamples:\n"
    "  everlong memory forget --user kim phone number\n"
    "  everlong memory forget -u kim memory/2026-04-03.md#3 --yes\n"
    "  everlong memory forget -u kim --allow-again my phone is 555-0142"
)
FORGET_USER_EXAMPLES = (
    "\b\nExamples:\n"
    "  everlong forget-user kim\n"
    "  everlong forget-user kim --yes\n"
    "  everlong forget-user kim --allow-again"
)


def forget(
    words: Annotated[
        list[str],
        typer.Argument(metavar="WORD...", help="What to forget: words, or the source of one line."),
    ],
    user: User,
    yes: Yes = False,
    allow_again: Annotated[
        bool,
        typer.Option(
            "--allow-again", help="Erase nothing: let what WORDs say be remembered again."
        ),
    ] = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Erase one thing for good.

    Shows what is meant and asks. The fact goes from the ledger, its archive, MEMORY.md and its
    versions; where it was said it is struck out of transcripts, stored texts, summaries and
    checkpoints. A mark without its words keeps it from coming back. Ends with 1, and erases
    nothing, where it is not certain what is meant; the source of a line, as a search prints it,
    always is. What was forgotten stays out when it is said again, until --allow-again.
    """
    with waiting(STARTING):
        from everlong.graph import cli_forgetting as run  # noqa: PLC0415 - of these commands only
    what = " ".join(words)
    again = run.allow_fact(user, what, dsn=dsn) if allow_again else None
    raise typer.Exit(asyncio.run(again or run.forget(user, what, yes=yes, dsn=dsn)))


def forget_user(
    user: Annotated[
        str, typer.Argument(metavar="ID", help="Whose records and threads: the very id.")
    ],
    yes: Yes = False,
    allow_again: Annotated[
        bool,
        typer.Option(
            "--allow-again", help="Erase nothing: let an id that was forgotten be used again."
        ),
    ] = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Erase everything of a user.

    Shows what there is and asks; then memory, transcripts, files, records and checkpoints go, and
    every table of the database is searched for what may be left. A call that is under way writes no
    more. The id is refused from then on, until --allow-again. Ends with 1 where something is left.
    """
    with waiting(STARTING):
        from everlong.graph import cli_forgetting as run  # noqa: PLC0415 - of these commands only
    work = run.allow(user, dsn=dsn) if allow_again else run.forget_user(user, yes=yes, dsn=dsn)
    raise typer.Exit(asyncio.run(work))
