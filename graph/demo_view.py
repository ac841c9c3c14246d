"""How the demo looks in a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.text import Text

from everlong.graph.demo import Check, Example, Round

LINE_CHARS = 160


def show(console: Console, example: Example) -> None:
    """Print an example, round by round."""
    console.rule(f"[bold]{example.name}[/] {escape(example.title)}")
    console.print(f"[dim]user {example.user_id}, thread {example.thread_id}[/]")
    for number, one in enumerate(example.rounds, start=1):
        _show_round(console, number, one)


def show_verdict(console: Console, done: Sequence[Example]) -> None:
    """Print whether everything came out, and what did not."""
    checks = [check for example in done for one in example.rounds for check in one.checks]
    failed = [check for check in checks if not check.ok]
    for check in failed:
        _show_check(console, check)
    colour = "red" if failed else "green"
    console.print(
        Panel.fit(
            f"{len(checks) - len(failed)} of {len(checks)} expected results came out. "
            "The answers came from everlong's offline model,\nwhich works by extraction: "
            "set a model of your own with [bold]Context(model='openai:...')[/].",
            border_style=colour,
        )
    )


def _show_round(console: Console, number: int, one: Round) -> None:
    console.print(f"\n[bold cyan]Round {number}[/]  {escape(one.question)}")
    _show_lines(console, "stored before", one.before)
    for line in one.log:
        console.print(f"  [yellow]log[/]  {escape(line)}", highlight=False)
    for request in one.requests:
        _show_lines(console, "request", request)
    _show_lines(console, "stored after", one.after)
    if one.answer:
        console.print(f"  [bold green]answer[/]  {escape(one.answer)}", highlight=False)
    for check in one.checks:
        _show_check(console, check)


def _show_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    console.print(f"  [dim]{title}: {len(lines)} messages[/]")
    for line in lines:
        text = line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1]}…"
        console.print(Text(f"    {text}", style="dim"), soft_wrap=True)


def _show_check(console: Console, check: Check) -> None:
    if check.ok:
        console.print(
            f"  [green]✓[/] {escape(check.what)}: {escape(str(check.got))}", highlight=False
        )
        return
    console.print(
        f"  [red]✗[/] {escape(check.what)}: expected {escape(str(check.expected))}; "
        f"got {escape(str(check.got))}",
        highlight=False,
    )
