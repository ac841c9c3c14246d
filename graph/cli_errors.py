"""What the command line says when something is wrong: one line; the rest under `--debug`."""

import logging
import sys
from io import TextIOWrapper

from everlong.graph.terminal import err, put
from everlong.graph.wrapping import shortened

LINE_CHARS = 600
log = logging.getLogger("everlong.cli")


def one_line(error: BaseException) -> str:
    """Say an error in one line; ours say what to do, of others the kind is told, too."""
    said = shortened(str(error), LINE_CHARS)
    if type(error).__module__.startswith("everlong.") or said.startswith(("expected", "`")):
        return said
    name = type(error).__name__
    return f"{name}: {said}" if said else name


def trace(error: BaseException) -> None:
    """Print where an error comes from, where everything is shown."""
    log.debug("Where it comes from:", exc_info=error)


class _Lines(logging.Handler):
    """Prints what everlong warns of, each in a line without its traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        reason = f" ({one_line(error)})" if error else ""
        style = "bold red" if record.levelno >= logging.ERROR else "yellow"
        put(f"{record.getMessage()}{reason}", lead="everlong: ", lead_style=style, to=err)


def show_warnings() -> None:
    """Print our own warnings in a line each, and nobody else's."""
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger("everlong").addHandler(_Lines(logging.WARNING))


def show_everything() -> None:
    """Print all that is logged, with tracebacks."""
    for handler in list(logging.getLogger("everlong").handlers):
        logging.getLogger("everlong").removeHandler(handler)
    form = "%(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.DEBUG, format=form, force=True)


def never_fail_to_print() -> None:
    """Let every text be read and printed, whatever characters the terminal knows."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
