"""The real `langgraph dev`, as a process of its own on 127.0.0.1."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

ROOT = Path(__file__).parents[1]
START_SECONDS = 90
STOP_SECONDS = 30
QUIET = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
    "NO_COLOR": "1",
}
"""No call home: nothing of a test leaves the machine."""
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
PRIVATE = ("LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "OPENAI_", "EVERLONG_", "DATABASE_", "BG_JOB_")
"""Variables of the test run that would change what the server does."""


def make_project(folder: Path, **graphs: str) -> Path:
    """Lay out the repository in a folder of its own, where the server keeps its tables.

    `langgraph.json` is the repository's; `graphs` are added to it.
    """
    folder.mkdir(exist_ok=True)
    for name in ("graph", "nodes", "stores", "tests"):
        (folder / name).symlink_to(ROOT / name)
    config: dict[str, Any] = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
    config["graphs"] |= graphs
    (folder / "langgraph.json").write_text(json.dumps(config), "utf-8")
    return folder


class LangGraphServer:
    """`langgraph dev` in a folder with a `langgraph.json`, in a process group of its own."""

    def __init__(
        self, folder: Path, *, workers: int = 4, python: str = sys.executable, **environment: str
    ) -> None:
        self._python = python
        self._folder = folder
        self._workers = workers
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / f"server-{uuid4().hex[:8]}.log"
        self.url = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self, port: int | None = None) -> None:
        """Start it and return when it answers; it chooses another port where this one is taken."""
        command = [self._python, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
        command += ["--host", "127.0.0.1", "--port", str(port or _free_port())]
        command += ["--n-jobs-per-worker", str(self._workers)]
        with self.log.open("ab") as log:
            said_before = log.tell()
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, no shell
                command,
                cwd=self._folder,
                env=_environment() | QUIET | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._await_answer(self._process, said_before)

    def _await_answer(self, process: subprocess.Popen[bytes], said_before: int) -> None:
        until = time.monotonic() + START_SECONDS
        while not (named := ADDRESS.search(self.log_text(said_before))) or not _answers(named[0]):
            if process.poll() is not None or time.monotonic() > until:
                self.kill()
                msg = f"the server does not answer; its log ends:\n{self.log_text()[-4_000:]}"
                raise AssertionError(msg)
            time.sleep(0.1)
        self.url = named[0]

    def stop(self) -> None:
        """Ask it to end, as Ctrl-C does; where it does not, kill it and fail."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(STOP_SECONDS)
            finally:
                self.kill()

    def kill(self) -> None:
        """End it and all that it has started, at once, as a crash would."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait(STOP_SECONDS)
            self._process = None

    def log_text(self, skipped_bytes: int = 0) -> str:
        """Return what it has said."""
        return self.log.read_bytes()[skipped_bytes:].decode("utf-8", "replace")


def _environment() -> dict[str, str]:
    """Return the test run's variables without keys and settings."""
    own = os.environ  # noqa: TID251 - handed on to a process
    return {name: value for name, value in own.items() if not name.startswith(PRIVATE)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ok", timeout=2) as answer:  # noqa: S310 - our own URL
            return answer.status == 200
    except OSError:
        return False
