"""The command line as a process: on pipes, and in a terminal of a given width."""

import contextlib
import fcntl
import io
import logging
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from everlong.graph.cli import main
from everlong.stores.settings import environment, settings
from fix_postgres import is_asleep, wait_until

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-m", "everlong.graph.cli"]
SECONDS = 60
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()=>][0-9A-B]?)")


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without settings of whoever runs the tests."""
    kept = {
        name: value
        for name, value in os.environ.items()  # noqa: TID251 - what a child process is given
        if not name.startswith(("EVERLONG_", "OPENAI_", "DATABASE_URL", "COLUMNS"))
    }
    return {**kept, "PYTHONUNBUFFERED": "1", **given}


@dataclass(frozen=True, kw_only=True)
class Done:
    """What came of a command."""

    code: int
    out: str
    err: str


def everlong(*words: str, given: str = "", **variables: str) -> Done:
    """Run a command in this process, as a shell would; `given` is its input, which is no terminal.

    In a process of its own each command would take two seconds for its imports.
    """
    out, err = io.StringIO(), io.StringIO()
    everything = logging.getLogger("everlong"), logging.getLogger()
    kept = [(logger, logger.level, logger.handlers[:]) for logger in everything]
    with pytest.MonkeyPatch.context() as patch:
        known = _environment(variables)
        for name in set(os.environ) - set(known):  # noqa: TID251 - of whoever runs the tests
            patch.delenv(name)
        for name, value in known.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["everlong", *words])
        patch.setattr(sys, "stdin", io.StringIO(given))
        _forget_settings()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main()
        except SystemExit as end:
            return Done(code=int(end.code or 0), out=out.getvalue(), err=err.getvalue())
        finally:
            for logger, level, handlers in kept:
                logger.level, logger.handlers = level, handlers
            _forget_settings()
    msg = "expected an exit code; got none"
    raise AssertionError(msg)


def _forget_settings() -> None:
    """Let the next reader see the environment as it is now."""
    environment.cache_clear()
    settings.cache_clear()


class Piped:
    """A running command, whose input is a pipe that is written line by line."""

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._files = [folder / "out.txt", folder / "err.txt"]
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            self.process = subprocess.Popen(  # noqa: S603 - our own command
                [*COMMAND, *words],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                cwd=HERE / "integration",
                env=_environment(environment),
            )

    @property
    def out(self) -> str:
        return self._files[0].read_text("utf-8")

    @property
    def err(self) -> str:
        return self._files[1].read_text("utf-8")

    def say(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def until(self, condition: Callable[[], object]) -> None:
        """Return when the condition holds; fail at once where the command has ended before."""
        wait_until(lambda: condition() or self.process.poll() is not None)
        assert condition(), self.out + self.err

    def end(self) -> int:
        """Close the input; return the exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(SECONDS)


@contextlib.contextmanager
def piped(*words: str, folder: Path, **environment: str) -> Generator[Piped]:
    """Run a command with its input open."""
    running = Piped(words, folder, environment)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


class Terminal:
    """A command in a terminal, with what it has printed so far."""

    def __init__(self, words: Sequence[str], columns: int, environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-c", _TAKE_TERMINAL, *COMMAND, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            cwd=HERE / "integration",
            env=_environment({"TERM": "xterm-256color"} | dict(environment)),
        )
        os.close(slave)
        self._raw = b""
        self._typed_at = 0

    @property
    def text(self) -> str:
        """What was printed, without colours and cursor movements."""
        while select.select([self._master], [], [], 0)[0]:
            try:
                self._raw += os.read(self._master, 65_536)
            except OSError:  # the command has ended
                break
        return _ESCAPES.sub("", self._raw.decode("utf-8", "replace")).replace("\r\n", "\n")

    def type(self, keys: str) -> None:
        self._typed_at = len(self.text)
        os.write(self._master, keys.encode())

    def await_text(self, text: str, count: int = 1) -> None:
        self._until(lambda: self.text.count(text) >= count)

    def await_prompt(self) -> None:
        """Return when the chat reads the next line: earlier keys meet another terminal mode.

        A Ctrl-C between the prompt and the read would wait for a further key.
        """
        self._until(lambda: len(self.text) > self._typed_at and self.text.endswith("› "))
        self._until(lambda: is_asleep(self.process.pid))

    def _until(self, condition: Callable[[], object]) -> None:
        """Return when the condition holds; fail at once where the command has ended before."""
        wait_until(lambda: condition() or self.process.poll() is not None)
        assert condition(), self.text

    def await_end(self) -> int:
        """Return the exit code; the output has to be read meanwhile, or the command waits."""
        wait_until(lambda: (self.text, self.process.poll())[1] is not None)
        return self.process.returncode

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)


@contextlib.contextmanager
def in_terminal(*words: str, columns: int = 80, **environment: str) -> Generator[Terminal]:
    """Run a command in a terminal so many columns wide."""
    terminal = Terminal(words, columns, environment)
    try:
        yield terminal
    finally:
        terminal.close()
