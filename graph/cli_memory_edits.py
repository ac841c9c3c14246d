"""The commands of `everlong memory` that show and change versions: their options and help."""

import asyncio
from typing import Annotated, Literal

import typer

from everlong.graph.cli_options import Debug, Dsn, User
from everlong.graph.terminal import STARTING, waiting

Json = Annotated[bool, typer.Option("--json", help="Print the same as data.")]
By = Annotated[
    str, typer.Option("--by", metavar="NAME", help="Who does it, as the history tells it.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def history(user: User, as_json: Json = False, dsn: Dsn = None, _debug: Debug = False) -> None:
    """Print the versions of MEMORY.md.

    Newest last: when and by whom each was written, how long it is, and which ledger entries it took
    up. Corrections and restored versions are versions, too.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory_versions as run  # noqa: PLC0415 - of these only
    raise typer.Exit(asyncio.run(run.history(user, as_json=as_json, dsn=dsn)))


def diff(
    user: User,
    first: Annotated[
        str | None,
        typer.Argument(metavar="A", show_default=False, help="The version before."),
    ] = None,
    second: Annotated[
        str | None,
        typer.Argument(metavar="B", show_default=False, help="The version after."),
    ] = None,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Compare two versions of MEMORY.md.

    Without A and B it is the last version against the one before; without B the last one against A.
    The beginning of an id is enough.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory_versions as run  # noqa: PLC0415 - of these only
    raise typer.Exit(asyncio.run(run.diff(user, first, second, dsn=dsn)))


def restore(
    user: User,
    version: Annotated[
        str,
        typer.Argument(
            metavar="VERSION",
            help="Which one; `everlong memory history` lists them. The beginning is enough.",
        ),
    ],
    yes: Yes = False,
    by: By = "cli",
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Write an earlier version again.

    It becomes the newest version; none is lost. What versions after it had taken up from the ledger
    is taken up anew by the next consolidation.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory_versions as run  # noqa: PLC0415 - of these only
    raise typer.Exit(asyncio.run(run.restore(user, version, yes=yes, by=by, dsn=dsn)))


def correct(
    user: User,
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            "-f",
            metavar="PATH",
            show_default=False,
            help="A file with the new text, `-` for standard input; else your editor (EDITOR).",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            metavar="VERSION",
            show_default=False,
            help="The version that the text was made from: refused where it is another by now.",
        ),
    ] = None,
    by: By = "cli",
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Correct MEMORY.md.

    The text takes the place of MEMORY.md as a reader sees it, as a new version. It is refused over
    the token limit (EVERLONG_MEMORY__DOCUMENT_TOKENS), and where a run wrote MEMORY.md while you
    were at it. Consolidations go on from it; new lines go to the ledger, too.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory_correct as run  # noqa: PLC0415 - of this one only
    raise typer.Exit(run.correct(user, file=file, base=base, by=by, dsn=dsn))


def export(
    user: User,
    target: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            show_default=False,
            help="The file to write, or with --markdown the folder; else standard output.",
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Write a folder of Markdown instead of JSON Lines.")
    ] = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Write all that is remembered of a user.

    That is MEMORY.md, its versions, the ledger with its archive, and what waits for a review: one
    JSON object in each line, `type` says which. With --markdown it is files that a person reads.
    """
    if markdown and not target:
        msg = "expected --out FOLDER with --markdown; got none"
        raise typer.BadParameter(msg)
    with waiting(STARTING):
        from everlong.graph import cli_memory_export as run  # noqa: PLC0415 - of this one only
    raise typer.Exit(asyncio.run(run.export(user, target=target, markdown=markdown, dsn=dsn)))


def review(
    user: User,
    verdict: Annotated[
        Literal["confirm", "reject"] | None,
        typer.Argument(
            metavar="confirm|reject", show_default=False, help="What you say of the fact ID."
        ),
    ] = None,
    ident: Annotated[
        str | None,
        typer.Argument(metavar="ID", show_default=False, help="Which; its beginning is enough."),
    ] = None,
    as_json: Json = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Judge facts that could not be verified.

    Prints them, or confirms or rejects one. Each comes with what is doubtful about it and with the
    words that it was drawn from. It is kept out of MEMORY.md until it is confirmed; one that is
    rejected is gone.
    """
    if (verdict is None) != (ident is None):
        msg = f"expected the ID of a fact after {verdict}; got none"
        raise typer.BadParameter(msg)
    with waiting(STARTING):
        from everlong.graph import cli_memory_review as run  # noqa: PLC0415 - of this one only
    if verdict is None or ident is None:
        work = run.listing(user, as_json=as_json, dsn=dsn)
    else:
        work = run.judge(user, verdict, ident, dsn=dsn)
    raise typer.Exit(asyncio.run(work))
