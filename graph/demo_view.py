"""How the demo looks in a terminal."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

from rich.panel import Panel

from everlong.graph.demo import Check, Example, Round
from everlong.graph.terminal import out, put
from everlong.graph.wrapping import fitted

VERDICT = """{good} of {all} expected results came out.
The answers came from everlong's offline model, which works by extraction.
For a model of your own: everlong chat --model openai:..., see the README."""
MARGIN = " " * 10
SHOWN_CELLS = 160
"""Of a message, where no terminal says how wide it is."""


def show(example: Example) -> None:
    """Print an example, round by round."""
    out.rule(f"[bold]{example.name}[/]  {example.title}", align="left", style="cyan")
    put(f"user {example.user_id}, thread {example.thread_id}", style="dim")
    for number, one in enumerate(example.rounds, start=1):
        _show_round(number, one)
    put()


def show_verdict(done: Sequence[Example]) -> None:
    """Print whether everything came out, and what did not."""
    checks = [check for example in done for one in example.rounds for check in one.checks]
    failed = [check for check in checks if not check.ok]
    for check in failed:
        _show_check(check)
    text = VERDICT.format(good=len(checks) - len(failed), all=len(checks))
    out.print(Panel.fit(text, border_style="red" if failed else "green"))


def _show_round(number: int, one: Round) -> None:
    """Show a round in a few lines, and with its messages where something was done to them."""
    put()
    put(one.question, lead=f"{number} ", lead_style="bold cyan", style="bold", indent="  ")
    compacts = any(line.startswith("Compact") for line in one.log)
    if compacts:
        _show_messages("stored before", one.before)
    for line in one.log:
        put(line, lead="  log  ", lead_style="yellow", indent="       ")
    for before, request in pairwise([[], *one.requests]):
        again = before == request[: len(before)] and before
        title = "sent again, and then" if again else "sent with the system message"
        new = request[len(before) if again else 1 :]
        _show_messages(title, new, in_full=bool(one.log))
    if one.after:
        _show_messages("stored after", one.after, in_full=compacts)
    for at, line in enumerate(one.answer.splitlines()):
        lead = MARGIN if at else "  answer  "
        put(line, lead=lead, lead_style="bold green", indent=MARGIN)
    for check in one.checks:
        _show_check(check)


def _show_messages(title: str, lines: Sequence[str], *, in_full: bool = True) -> None:
    """Show how many messages there are, each in one line of the terminal."""
    count = "1 message" if len(lines) == 1 else f"{len(lines)} messages"
    put(f"  {title}: {count}", style="dim")
    width = out.width if out.is_terminal else SHOWN_CELLS
    for line in lines if in_full else ():
        put(f"    {fitted(line, width - 4)}", style="dim")


def _show_check(check: Check) -> None:
    sign, style = ("✓", "green") if check.ok else ("✗", "red")
    if check.ok:
        text = "" if check.got is True else f": {_plain(check.got)}"
    else:
        text = f": expected {_plain(check.expected)}; got {_plain(check.got)}"
    put(f" {check.what}{text}", lead=f"  {sign}", lead_style=style, indent="    ")


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[object]", value))) or "none"
    return str(value) if value != "" else "none"
