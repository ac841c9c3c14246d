"""The real `langgraph dev`, as a process of its own on 127.0.0.1."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parents[1]
START_SECONDS = 90
STOP_SECONDS = 30
PORTS_TRIED = 5
QUIET = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
    "NO_COLOR": "1",
}
"""No call home: nothing of a test leaves the machine."""
PRIVATE = ("LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "OPENAI_", "EVERLONG_", "DATABASE_", "http")


def make_project(folder: Path, graphs: Mapping[str, str] = {}) -> Path:
    """Lay out the repository in a folder of its own, where the server may keep its tables.

    `langgraph.json` is the repository's; `graphs` are added to it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("graph", "nodes", "stores", "tests"):
        (folder / name).symlink_to(ROOT / name)
    config: dict[str, Any] = json.loads((ROOT / "langgraph.json").read_text("utf-8"))
    config["graphs"] |= graphs
    (folder / "langgraph.json").write_text(json.dumps(config), "utf-8")
    return folder


class LangGraphServer:
    """`langgraph dev` in a folder with a `langgraph.json`; it is stopped by its process id."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *, workers: int = 4) -> None:
        self.folder = folder
        self.environment = environment
        self.workers = workers
        self.log = folder / "server.log"
        self.process: subprocess.Popen[bytes] | None = None
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
        """Start it and return when it answers."""
        port = port or _free_port()
        command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        command += ["--n-jobs-per-worker", str(self.workers)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter, no shell
                command,
                cwd=self.folder,
                env=_environment() | QUIET | dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.url = f"http://127.0.0.1:{port}"
        self._await_answer()

    def _await_answer(self) -> None:
        until = time.monotonic() + START_SECONDS
        while not _answers(self.url):
            ended = self.process is None or self.process.poll() is not None
            if ended or time.monotonic() > until:
                self.kill()
                msg = f"no answer at {self.url}; {self.log} ends:\n{self.log_text()[-4_000:]}"
                raise AssertionError(msg)
            time.sleep(0.1)

    def stop(self) -> None:
        """Ask it to end, as Ctrl-C does; kill it where it does not."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.process = None

    def kill(self) -> None:
        """End it and what it has started at once, as a crash would."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(STOP_SECONDS)
            self.process = None

    def log_text(self) -> str:
        """Return what the server has said so far."""
        return self.log.read_text("utf-8", "replace")


def _environment() -> dict[str, str]:
    """Return this process's variables without keys, proxies and settings."""
    own = os.environ  # noqa: TID251 - handed on to a process, not read
    return {k: v for k, v in own.items() if not k.startswith(PRIVATE)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ok", timeout=2) as answer:  # noqa: S310 - our own URL
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False
