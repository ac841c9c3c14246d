"""The commands of `everlong memory`."""

import asyncio
from typing import Annotated

import typer

from everlong.graph import cli_memory_edits as edits
from everlong.graph.cli_forget import FORGET_EXAMPLES, forget
from everlong.graph.cli_memory_edits import Json
from everlong.graph.cli_options import Day, Debug, Dsn, User
from everlong.graph.terminal import STARTING, waiting

memory = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@memory.command(
    epilog="\b\nExamples:\n"
    "  everlong memory show --user kim\n"
    "  everlong memory show --user kim --day 2026-03-01\n"
    "  everlong memory show --user kim --list\n"
    "  everlong memory show --user kim --sources"
)
def show(
    user: User,
    day: Day = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List what there is instead: MEMORY.md and the days.")
    ] = False,
    sources: Annotated[
        bool, typer.Option("--sources", help="Below each line, what it comes from: who said what.")
    ] = False,
    as_json: Json = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Print MEMORY.md or a ledger day.

    MEMORY.md as a reader sees it is the consolidated document and what was saved since. With
    --sources each line is followed by its place in the ledger and the words that were said.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory as run  # noqa: PLC0415 - of these commands only
    if listed and day:
        msg = "expected --day or --list; got both"
        raise typer.BadParameter(msg)
    page = f"memory/{day}.md" if day else "MEMORY.md"
    if listed:
        work = run.show_list(user, as_json=as_json, dsn=dsn)
    else:
        work = run.show(user, page, sources=sources, as_json=as_json, dsn=dsn)
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
    as_json: Json = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Search what is remembered.

    Prints the lines that say what is asked, best first, each with its source.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory as run  # noqa: PLC0415 - of these commands only
    query = " ".join(words)
    work = run.search(user, query, limit=limit, as_json=as_json, dsn=dsn)
    raise typer.Exit(asyncio.run(work))


@memory.command("clear-document", epilog="\b\nExample:\n  everlong memory clear-document -u kim")
def clear_document(user: User, dsn: Dsn = None, _debug: Debug = False) -> None:
    """Remove MEMORY.md; the ledger stays.

    Its earlier versions stay, too. The next consolidation writes it anew, from the whole ledger.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory as run  # noqa: PLC0415 - of these commands only
    raise typer.Exit(asyncio.run(run.clear_document(user, dsn=dsn)))


def _examples(*lines: str) -> str:
    head = "Example" if len(lines) == 1 else "Examples"
    return "\b\n" + "\n".join([f"{head}:", *(f"  everlong memory {line}" for line in lines)])


memory.command(epilog=_examples("history --user kim", "history -u kim --json | jq '.[-1].text'"))(
    edits.history
)
memory.command(epilog=_examples("diff --user kim", "diff -u kim 698bf499 12b0f3aa"))(edits.diff)
memory.command(epilog=_examples("restore --user kim 698bf499"))(edits.restore)
memory.command(
    epilog=_examples("correct --user kim", "correct -u kim --file MEMORY.md --base 698bf499")
)(edits.correct)
memory.command(
    epilog=_examples("export --user kim --out kim.jsonl", "export -u kim --markdown --out kim")
)(edits.export)
memory.command(epilog=_examples("review --user kim", "review -u kim confirm 03f2c9d1#0"))(
    edits.review
)
memory.command(epilog=FORGET_EXAMPLES)(forget)
