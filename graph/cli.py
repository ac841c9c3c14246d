"""The command line: `everlong`."""

import asyncio
import json
import logging
import sys
from typing import Annotated

try:
    import typer
    from rich.console import Console
except ImportError:  # the command is installed with the package, its libraries with the extra
    sys.exit("everlong's command line needs its extra: pip install 'everlong[cli,embedded]'")

from everlong.graph.demo import Example
from everlong.graph.demo_examples import examples
from everlong.graph.demo_view import show, show_verdict
from everlong.graph.runtime import open_agent

app = typer.Typer(
    help="Conversations that never end: compaction, eviction and memory on Postgres.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def settings_of_every_command(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks and everything that is logged.")
    ] = False,
) -> None:
    """Conversations that never end: compaction, eviction and memory on Postgres."""
    if debug:
        logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s: %(message)s")


@app.command()
def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as data.")] = False,
) -> None:
    """Run the worked examples on a real Postgres, without a key, and check their numbers.

    Ends with 1 when an expected number does not come out.
    """
    done = asyncio.run(_demo(quiet=as_json))
    if as_json:
        print(json.dumps([one.as_data() for one in done], ensure_ascii=False, indent=2))
    else:
        show_verdict(Console(), done)
    raise typer.Exit(0 if all(one.ok for one in done) else 1)


async def _demo(*, quiet: bool) -> list[Example]:
    done: list[Example] = []
    waiting = Console(stderr=True)
    with waiting.status("Starting Postgres ..."):
        opening = open_agent()
        agent = await opening.__aenter__()
    try:
        async for example in examples(agent):
            done.append(example)
            if not quiet:
                show(Console(), example)
    finally:
        await opening.__aexit__(None, None, None)
    return done


@app.command()
def graph() -> None:
    """Print the graph as a Mermaid drawing."""
    from everlong.graph.agent import graph as compiled  # noqa: PLC0415 - only this command draws

    print(compiled.get_graph().draw_mermaid(with_styles=False))


def main() -> None:
    """Run the command line; an error is one line, with its traceback under `--debug`."""
    try:
        app()
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        Console(stderr=True).print(f"[bold red]everlong:[/] {error}", highlight=False)
        sys.exit(1)
