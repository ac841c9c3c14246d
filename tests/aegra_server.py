"""Two aegra servers on one database and one Redis, as processes of their own on 127.0.0.1."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langgraph_server import ROOT, _environment, _free_port

DEPLOYMENT = ROOT / "deploy" / "aegra"
START_SECONDS = 90
STOP_SECONDS = 45
BRISK = {
    "BLPOP_TIMEOUT_SECONDS": "1",
    "BLOCKING_SOCKET_TIMEOUT_SECONDS": "10",
    "HEARTBEAT_INTERVAL_SECONDS": "3",
    "LEASE_DURATION_SECONDS": "10",
    "REAPER_INTERVAL_SECONDS": "2",
    "STUCK_PENDING_THRESHOLD_SECONDS": "10",
    "WORKER_DRAIN_TIMEOUT": "5",
}
"""A dead server's runs begin again within 15 seconds; by default it may take up to two minutes."""
SMALL = {"LANGGRAPH_MAX_POOL_SIZE": "10", "SQLALCHEMY_MAX_OVERFLOW": "5"}
"""Both servers and the tests have the hundred connections of one PostgreSQL."""


def make_config(folder: Path, **graphs: str) -> Path:
    """Write the deployment's own configuration, with more graphs, and return where."""
    config: dict[str, Any] = json.loads((DEPLOYMENT / "aegra.json").read_text("utf-8"))
    for graph in config["graphs"].values():
        file, name = graph["path"].split(":")
        graph["path"] = f"{(DEPLOYMENT / file).resolve()}:{name}"
    config["graphs"] |= graphs
    path = folder / "aegra.json"
    path.write_text(json.dumps(config), "utf-8")
    return path


@dataclass
class Process:
    """A server in a process group of its own."""

    command: list[str]
    log: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command, no shell
                self.command,
                cwd=self.log.parent,
                env=_environment() | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Signal it and all that it has started."""
        if self._process is not None and self.is_running:
            os.killpg(self._process.pid, number)

    def stop(self) -> None:
        """Ask it to end; where it does not, kill it and fail."""
        self.signal(signal.SIGTERM)
        try:
            if self._process is not None:
                self._process.wait(STOP_SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it and all that it has started at once, as a crash would."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(STOP_SECONDS)
            self._process = None


@dataclass(kw_only=True)
class Aegra:
    """One server."""

    process: Process
    url: str

    def start(self) -> None:
        self.process.start()

    def await_answer(self) -> None:
        until = time.monotonic() + START_SECONDS
        while not _answers(f"{self.url}/ready"):
            if not self.process.is_running or time.monotonic() > until:
                text = self.process.log.read_text("utf-8", "replace")[-4_000:]
                msg = f"aegra does not answer; its log ends:\n{text}"
                raise AssertionError(msg)
            time.sleep(0.1)


def aegra(folder: Path, name: str, config: Path, **environment: str) -> Aegra:
    """Return a server that is not started yet."""
    port = _free_port()
    command = [str(Path(sys.executable).with_name("aegra")), "serve", "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    given = BRISK | SMALL | {"REDIS_BROKER_ENABLED": "true"}
    process = Process(command, folder / f"{name}.log", given | environment)
    return Aegra(process=process, url=f"http://127.0.0.1:{port}")


def run_once(script: Path, config: Path, folder: Path, **environment: str) -> None:
    """Run a script of the deployment, and fail where it does."""
    done = subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, str(script), str(config)],
        cwd=folder,
        env=_environment() | environment,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def redis(folder: Path) -> tuple[Process, str]:
    """Return a Redis that is not started yet, and its URL."""
    program = shutil.which("redis-server")
    if program is None:
        msg = "expected redis-server in PATH; on Debian: apt-get install redis-server"
        raise AssertionError(msg)
    port = _free_port()
    command = [program, "--bind", "127.0.0.1", "--port", str(port), "--save", ""]
    return Process(command, folder / "redis.log"), f"redis://127.0.0.1:{port}/0"


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - our own URL
            return answer.status == 200
    except OSError:
        return False
