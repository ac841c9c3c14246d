"""The commands of `everlong memory`."""

import asyncio
from typing import Annotated

import typer

from everlong.graph.cli_options import Day, Debug, Dsn, User
from everlong.graph.terminal import STARTING, waiting

memory = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@memory.command(
    epilog="\b\nExamples:\n"
    "  everlong memory show --user kim\n"
    "  everlong memory show --user kim --day 2026-03-01\n"
    "  everlong memory show --user kim --list"
)
def show(
    user: User,
    day: Day = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List what there is instead: MEMORY.md and the days.")
    ] = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Print MEMORY.md or a ledger day.

    MEMORY.md as a reader sees it is the consolidated document and what was saved since.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory as run  # noqa: PLC0415 - of these commands only
    if listed and day:
        msg = "expected --day or --list; got both"
        raise typer.BadParameter(msg)
    page = f"memory/{day}.md" if day else "MEMORY.md"
    work = run.show_list(user, dsn=dsn) if listed else run.show(user, page, dsn=dsn)
    raise typer.Exit(asyncio.run(work))


@memory.command(epilog="\b\nExample:\n  everlong memory search --user kim port of the exports")
def search(
    words: Annotated[
        list[str], typer.Argument(metavar="WORD...", help="What to look for: one word or several.")
    ],
    user: User,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, metavar="N", help="Most lines.")
    ] = 10,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Search what is remembered.

    Prints the lines that say what is asked, best first, each with its source.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory as run  # noqa: PLC0415 - of these commands only
    raise typer.Exit(asyncio.run(run.search(user, " ".join(words), limit=limit, dsn=dsn)))


@memory.command("clear-document", epilog="\b\nExample:\n  everlong memory clear-document -u kim")
def clear_document(user: User, dsn: Dsn = None, _debug: Debug = False) -> None:
    """Remove MEMORY.md; the ledger stays.

    Its earlier versions stay, too. The next consolidation writes it anew, from the whole ledger.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory as run  # noqa: PLC0415 - of these commands only
    raise typer.Exit(asyncio.run(run.clear_document(user, dsn=dsn)))
