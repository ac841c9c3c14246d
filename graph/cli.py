"""The command line: `everlong`. Each command brings its own imports, so that help comes at once."""

import asyncio
import sys
from typing import Annotated

try:
    import typer

    from everlong.graph.cli_errors import never_fail_to_print, one_line, show_warnings, trace
    from everlong.graph.cli_options import Day, Debug, Dsn, Model, Thread, User
    from everlong.graph.terminal import put_error, waiting
except ImportError:  # the command is installed with the package, its libraries with the extra
    sys.exit("everlong's command line needs its extra: pip install 'everlong[cli,embedded]'")

STARTING = "Starting"
app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n"
    "  everlong demo\n"
    "  everlong chat --user kim --thread orders\n"
    "  everlong doctor --model openai:gpt-4o --ask",
)
memory = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(memory, name="memory", help="Read or remove what is remembered.")


@app.callback()
def everlong(dsn: Dsn = None, model: Model = None, _debug: Debug = False) -> None:
    """Conversations that never end: compaction, eviction and memory on Postgres.

    The options below hold for every command, and may be given before or after its name. A `.env`
    file is not read.
    """


@app.command(
    epilog="\b\nExamples:\n"
    "  everlong chat --user kim --thread orders\n"
    "  everlong chat -u kim -t orders --model openai:gpt-4o\n"
    "  everlong chat -u kim -t orders < questions.txt"
)
def chat(
    user: User,
    thread: Thread,
    tools: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            show_default=False,
            help="Tools of your own: a list in a Python module, such as shop.tools:TOOLS.",
        ),
    ] = None,
    dsn: Dsn = None,
    model: Model = None,
    _debug: Debug = False,
) -> None:
    """Talk with the agent.

    Streams the answer and shows compaction, eviction and memory as they happen. A thread that is
    there already is resumed. Ctrl-C stops the answer, not the conversation; Ctrl-D, or Ctrl-C at
    an empty prompt, leaves. /help lists the commands of the chat. Where the input is no terminal,
    each line of it is a message; it ends with 1 when one of them was not answered.
    """
    with waiting(STARTING):
        from everlong.graph.cli_chat import chat as run  # noqa: PLC0415 - of this command only
    raise typer.Exit(run(user, thread, tools=tools, dsn=dsn, model=model))


@app.command()
def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as data.")] = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Run the worked examples and check them.

    They run on a real Postgres with the offline model, so no key is needed. Ends with 1 when an
    expected number does not come out.
    """
    with waiting(STARTING):
        from everlong.graph.cli_demo import demo as run  # noqa: PLC0415 - of this command only
    raise typer.Exit(asyncio.run(run(as_json=as_json, dsn=dsn)))


@app.command(
    epilog="\b\nExamples:\n  everlong doctor\n  everlong doctor --model openai:gpt-4o --ask"
)
def doctor(
    ask: Annotated[
        bool, typer.Option("--ask", help="Also send each model one tiny request.")
    ] = False,
    dsn: Dsn = None,
    model: Model = None,
    _debug: Debug = False,
) -> None:
    """Check what everlong needs.

    That is Python and packages, the database and its migrations, the model, and the settings: each
    one in force is listed with where it comes from, which is the default, an environment variable
    or an option. Secrets are never shown. Ends with 1 when something is broken, and says what to
    do.
    """
    with waiting(STARTING):
        from everlong.graph.cli_doctor import doctor as run  # noqa: PLC0415 - of this command only
    raise typer.Exit(asyncio.run(run(dsn=dsn, model=model, ask_model=ask)))


@app.command()
def graph(_debug: Debug = False) -> None:
    """Print the graph as a Mermaid drawing."""
    with waiting(STARTING):
        from everlong.graph.agent import graph as compiled  # noqa: PLC0415 - of this command only
    print(compiled.get_graph().draw_mermaid(with_styles=False))


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


@app.command(epilog="\b\nExample:\n  everlong consolidate --user kim")
def consolidate(user: User, dsn: Dsn = None, model: Model = None, _debug: Debug = False) -> None:
    """Rewrite MEMORY.md from the ledger.

    It is made of the old text and the entries that came since. Where none came, no model is asked
    and nothing changes. The model is the one named for memory (EVERLONG_MEMORY_MODEL), else
    --model.
    """
    with waiting(STARTING):
        from everlong.graph import cli_memory as run  # noqa: PLC0415 - of these commands only
    raise typer.Exit(asyncio.run(run.consolidate(user, model=model, dsn=dsn)))


@app.command(
    epilog="\b\nExamples:\n"
    "  everlong transcript --user kim --thread orders\n"
    "  everlong transcript -u kim -t orders --jsonl > orders.jsonl"
)
def transcript(
    user: User,
    thread: Thread,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print JSON Lines, one whole message in each.")
    ] = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Print every message of a thread.

    The transcript is complete: what a summary has replaced is in it, too.
    """
    with waiting(STARTING):
        from everlong.graph.cli_transcript import transcript as run  # noqa: PLC0415 - of this one
    raise typer.Exit(asyncio.run(run(user, thread, jsonl=jsonl, dsn=dsn)))


def main() -> None:
    """Run the command line; an error is one line, with its traceback under `--debug`."""
    never_fail_to_print()
    show_warnings()
    try:
        app(prog_name="everlong")
    except Exception as error:  # noqa: BLE001 - the rim: whatever comes becomes one line
        trace(error)
        put_error(one_line(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
