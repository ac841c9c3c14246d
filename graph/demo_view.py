"""How the demo looks in a terminal."""

from collections.abc import Sequence
from typing import cast

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.text import Text

from everlong.graph.demo import Check, Example, Round


def show(console: Console, example: Example) -> None:
    """Print an example, round by round."""
    console.rule(f"[bold]{example.name}[/] {escape(example.title)}")
    console.print(f"[dim]user {example.user_id}, thread {example.thread_id}[/]")
    for number, one in enumerate(example.rounds, start=1):
        _show_round(console, number, one)
    console.print()


def show_verdict(console: Console, done: Sequence[Example]) -> None:
    """Print whether everything came out, and what did not."""
    checks = [check for example in done for one in example.rounds for check in one.checks]
    failed = [check for check in checks if not check.ok]
    for check in failed:
        _show_check(console, check)
    console.print(
        Panel.fit(
            f"{len(checks) - len(failed)} of {len(checks)} expected results came out.\n"
            "The answers came from everlong's offline model, which works by extraction.\n"
            "For a model of your own: [bold]Context(model='openai:...')[/], see the README.",
            border_style="red" if failed else "green",
        )
    )


def _show_round(console: Console, number: int, one: Round) -> None:
    """Show a round in a few lines, and in full where it compacted."""
    console.print(f"\n[bold cyan]{number}[/] [bold]{escape(one.question)}[/]", highlight=False)
    if one.log:
        _show_lines(console, f"stored before: {len(one.before)} messages", one.before)
        for line in one.log:
            console.print(f"  [yellow]log[/]  {escape(line)}", highlight=False)
    for request in one.requests:
        title = f"request: system message and {len(request) - 1} messages"
        _show_lines(console, title, request[1:] if one.log else ())
    _show_lines(console, f"stored after: {len(one.after)} messages", one.after if one.log else ())
    if one.answer:
        _show_answer(console, one.answer)
    for check in one.checks:
        _show_check(console, check)


def _show_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    """Show messages, each in one line of the terminal."""
    console.print(f"  [dim]{title}[/]")
    for line in lines:
        text = Text(f"    {line}", style="dim", no_wrap=True, overflow="ellipsis")
        console.print(text, highlight=False)


def _show_answer(console: Console, answer: str) -> None:
    first, *rest = answer.splitlines()
    console.print(f"  [bold green]answer[/]  {escape(first)}", highlight=False)
    for line in rest:
        console.print(f"          {escape(line)}", highlight=False)


def _show_check(console: Console, check: Check) -> None:
    what = escape(check.what)
    if check.ok:
        got = "" if check.got is True else f": {escape(_plain(check.got))}"
        console.print(f"  [green]✓[/] {what}{got}", highlight=False)
        return
    expected, got = escape(_plain(check.expected)), escape(_plain(check.got))
    console.print(f"  [red]✗[/] {what}: expected {expected}; got {got}", highlight=False)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[object]", value)))
    return str(value)
