"""The command line: `everlong`. Each command brings its own imports, so that help comes at once."""

import asyncio
import sys
from typing import Annotated

try:
    import typer

    from everlong.graph.cli_errors import never_fail_to_print, one_line, show_warnings, trace
    from everlong.graph.cli_memory_group import memory
    from everlong.graph.cli_options import Debug, Dsn, Model, Thread, User, Version
    from everlong.graph.cli_upkeep import upkeep
    from everlong.graph.terminal import STARTING, put_error, waiting
except ImportError:  # the command is installed with the package, its libraries with the extra
    sys.exit("everlong's command line needs its extra: pip install 'everlong[cli,embedded]'")

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
app.add_typer(memory, name="memory", help="See, correct or remove what is remembered.")


@app.callback()
def everlong(
    dsn: Dsn = None, model: Model = None, _version: Version = False, _debug: Debug = False
) -> None:
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
            help="Tools of your own: a list in a Python module, such as shop.tools:TOOLS; several "
            "by commas. Else EVERLONG_TOOLS.",
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


@app.command(
    epilog="\b\nExamples:\n"
    "  everlong transcript --user kim --thread orders\n"
    "  everlong transcript -u kim -t orders --jsonl > orders.jsonl\n"
    "  everlong transcript -u kim -t orders --compaction 698bf499ae75a669"
)
def transcript(
    user: User,
    thread: Thread,
    compaction: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            show_default=False,
            help="Only what this compaction replaced; `everlong compactions` lists the ids.",
        ),
    ] = None,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print JSON Lines, one whole message in each.")
    ] = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Print every message of a thread.

    The transcript is complete: what a summary has replaced is in it, too. With --compaction it is
    the originals that one compaction replaced, word for word. The beginning of an id is enough.
    """
    with waiting(STARTING):
        from everlong.graph import cli_transcript as run  # noqa: PLC0415 - of this command only
    work = (
        run.transcript(user, thread, jsonl=jsonl, dsn=dsn)
        if compaction is None
        else run.originals(user, thread, compaction, jsonl=jsonl, dsn=dsn)
    )
    raise typer.Exit(asyncio.run(work))


@app.command(
    epilog="\b\nExamples:\n"
    "  everlong compactions --user kim --thread orders\n"
    "  everlong compactions -u kim -t orders 698bf499ae75a669\n"
    "  everlong compactions -u kim -t orders --json | jq '.[].outcome'"
)
def compactions(
    user: User,
    thread: Thread,
    ident: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            show_default=False,
            help="Show all that is known of this one; the beginning of an id is enough.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records as data.")] = False,
    dsn: Dsn = None,
    _debug: Debug = False,
) -> None:
    """Print what came of each compaction.

    Newest last, also those that were refused or failed: when and why it was tried, what came of
    it, the sizes before and after, where it cut and why. In a terminal too narrow for a table each
    one takes a few lines.
    """
    with waiting(STARTING):
        from everlong.graph import cli_compactions as run  # noqa: PLC0415 - of this command only
    work = (
        run.show_all(user, thread, as_json=as_json, dsn=dsn)
        if ident is None
        else run.show_one(user, thread, ident, as_json=as_json, dsn=dsn)
    )
    raise typer.Exit(asyncio.run(work))


app.add_typer(upkeep)


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
