"""The options that commands share."""

import re
from importlib.metadata import version
from typing import Annotated

import typer

from everlong.graph.cli_errors import show_everything

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def _no_blank(value: str) -> str:
    if not value.strip():
        msg = "expected an id; got nothing but blanks"
        raise typer.BadParameter(msg)
    return value


def _blank_or_none(value: str | None) -> str | None:
    return None if value is None else _no_blank(value)


def _a_day(value: str | None) -> str | None:
    if value is not None and not _DAY.fullmatch(value):
        msg = f"expected a day such as 2026-03-01; got {value!r}"
        raise typer.BadParameter(msg)
    return value


def _here_or_before(
    context: typer.Context, parameter: typer.CallbackParam, value: str | None
) -> str | None:
    """Take an option that was given before the command for one that was given after it."""
    return value or context.find_root().params.get(parameter.name or "")


def _debug(value: bool) -> bool:
    if value:
        show_everything()
    return value


def _version(value: bool) -> None:
    if value:
        typer.echo(f"everlong {version('everlong')}")
        raise typer.Exit


User = Annotated[
    str,
    typer.Option(
        "--user",
        "-u",
        metavar="ID",
        callback=_no_blank,
        help="Whose conversation and memory it is: any id. There is no default user.",
    ),
]
AnyUser = Annotated[
    str | None,
    typer.Option(
        "--user",
        "-u",
        metavar="ID",
        callback=_blank_or_none,
        show_default=False,
        help="Of this user alone; else of all users.",
    ),
]
Thread = Annotated[
    str,
    typer.Option(
        "--thread",
        "-t",
        metavar="ID",
        callback=_no_blank,
        help="Which conversation. A new id begins a new one.",
    ),
]
Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        metavar="DSN",
        callback=_here_or_before,
        show_default=False,
        help="Postgres to use, such as postgresql://kim@localhost/everlong; else DATABASE_URL, "
        "else one that everlong keeps and starts itself.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        callback=_here_or_before,
        show_default=False,
        help="Model to use, such as openai:gpt-4o; else EVERLONG_MODEL, else `offline`, which "
        "needs no key and no network.",
    ),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", callback=_debug, help="Show tracebacks and everything that is logged."),
]
Version = Annotated[
    bool,
    typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
]
Day = Annotated[
    str | None,
    typer.Option(
        "--day",
        metavar="YYYY-MM-DD",
        callback=_a_day,
        show_default=False,
        help="A day of the ledger instead of MEMORY.md.",
    ),
]
