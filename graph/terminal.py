"""What a person sees: lines of text, and a spinner where something takes over a second."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from everlong.graph.wrapping import wrapped

STARTING = "Starting"
PATIENCE_SECONDS = 1.0
"""What takes longer than this is told."""


class _Console(Console):
    """A console that says so when nobody reads it any more, in whichever thread."""

    def on_broken_pipe(self) -> None:
        """Raise the error again: the base class would end the thread."""
        raise  # noqa: PLE0704 - called while the error is handled


out = _Console(highlight=False)
err = _Console(stderr=True, highlight=False)


def put(
    text: str = "",
    *,
    style: str = "",
    lead: str = "",
    lead_style: str = "",
    indent: str = "",
    to: Console = out,
) -> None:
    """Print text after `lead`: wrapped in a terminal, and one line for a line elsewhere."""
    shown = f"{lead}{text}"
    if to.is_terminal:
        shown = wrapped(shown, to.width, indent)
    line = Text(shown, style=style)
    if lead:
        line.stylize(lead_style, 0, len(lead))
    to.print(line, soft_wrap=True)


def put_error(text: str) -> None:
    """Print one line that says what went wrong."""
    put(text, lead="everlong: ", lead_style="bold red", to=err)


class Waiting:
    """A spinner that appears when something takes over a second, and leaves no trace.

    It may be begun and ended again from any thread; where no terminal is, it shows nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: Progress | None = None
        self._shown: Progress | None = None

    def begin(self, what: str) -> None:
        """Say what is being waited for."""
        self.end()
        if not err.is_terminal:
            return
        progress = Progress(
            TextColumn(" "),
            SpinnerColumn(),
            TextColumn("[dim]{task.description}[/]"),
            TimeElapsedColumn(),
            console=err,
            transient=True,
        )
        progress.add_task(what)
        self._wanted = progress
        timer = threading.Timer(PATIENCE_SECONDS, self._show, [progress])
        timer.daemon = True
        timer.start()

    def end(self) -> None:
        """Take the spinner away; harmless where none is."""
        if self._wanted is None:
            return
        with self._lock:
            self._wanted = None
            if self._shown is not None:
                self._shown.stop()
                self._shown = None

    def _show(self, progress: Progress) -> None:
        with self._lock:
            if self._wanted is progress:
                progress.start()
                self._shown = progress


@contextmanager
def waiting(what: str) -> Generator[None]:
    """Show a spinner while the block runs, where it takes over a second."""
    spinner = Waiting()
    spinner.begin(what)
    try:
        yield
    finally:
        spinner.end()
