"""A PostgreSQL server for the whole run, and a database of its own for each test that asks.

`TEST_DATABASE_URL` names a server to use, as a URL of a user who may create databases;
without it an embedded one is started.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from everlong.stores.embedded import EmbeddedPostgres
from everlong.stores.embedded_reaper import REAPER_LOCK, SERVER_LOCK, open_lock, signer, try_lock

NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
WAIT_SECONDS = 90
"""A busy machine takes its time; only what fails is told later."""


@dataclass(frozen=True)
class PostgresServer:
    """A server on which tests make databases and drop them."""

    admin_dsn: str

    def dsn(self, database: str) -> str:
        return urlsplit(self.admin_dsn)._replace(path=f"/{database}").geturl()

    def create(self, template: str = "template0") -> str:
        """Return the name of a new database, a copy of the template."""
        name = f"everlong_test_{uuid4().hex}"
        self._execute("CREATE DATABASE {} TEMPLATE {} STRATEGY wal_log", name, template)
        return name

    def drop(self, database: str) -> None:
        self._execute("DROP DATABASE {} WITH (FORCE)", database)

    def _execute(self, statement: LiteralString, *names: str) -> None:
        with psycopg.connect(self.admin_dsn, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


def make_reachable_folder() -> Path:
    """Return a new folder that the server may enter where the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="everlong-tests-"))
    folder.chmod(0o755)
    return folder


def process_ids(home: Path) -> list[int]:
    """Return who last signed as the embedded server and as its reaper."""
    found: list[int] = []
    for name in (SERVER_LOCK, REAPER_LOCK):
        lock = open_lock(home / name)
        found.append(signer(lock))
        os.close(lock)
    return found


def is_alive(process_id: int) -> bool:
    """Tell whether a process runs; one that waits only to be reaped by init does not."""
    try:
        os.kill(process_id, 0)
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    except FileNotFoundError:  # ended between the two, or a system without /proc
        return sys.platform != "linux"


def is_asleep(process_id: int) -> bool:
    """Tell whether a process's first thread waits for something; always, where nothing tells."""
    stat = Path(f"/proc/{process_id}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "S"


def processes_in(folder: Path) -> list[int]:
    """Return who names the folder on its command line: servers, reapers, `initdb`, clients."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(folder) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def is_down(home: Path) -> bool:
    """Tell whether the embedded server has ended, with its children."""
    server = try_lock(home / SERVER_LOCK)
    if server is None:
        return False
    os.close(server)
    return True


def kill_server(home: Path) -> None:
    """Kill the embedded server and return when it is gone with its children."""
    os.kill(process_ids(home)[0], signal.SIGKILL)
    wait_until(lambda: is_down(home))


def is_stopped(home: Path) -> bool:
    """Tell whether the embedded server has ended, with its children, and its reaper too."""
    return is_down(home) and not any(
        is_alive(process_id) for process_id in process_ids(home) if process_id
    )


def wait_until(condition: Callable[[], object]) -> None:
    """Return when the condition holds; fail where it does not come to hold."""
    until = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < until, f"waited {WAIT_SECONDS} s in vain"
        time.sleep(0.002)


def await_stop(home: Path) -> None:
    """Return when the embedded server, which nobody holds any more, has stopped."""
    wait_until(lambda: not home.exists() or is_stopped(home))


@pytest.fixture(scope="session")
def postgres_server() -> Generator[PostgresServer]:
    if url := os.environ.get("TEST_DATABASE_URL"):
        yield PostgresServer(url)
        return
    home = make_reachable_folder()
    try:
        with EmbeddedPostgres(home, settings=NOT_DURABLE) as dsn:
            yield PostgresServer(dsn)
    finally:
        await_stop(home)
        shutil.rmtree(home)


@pytest.fixture(scope="session")
def migrated_template(postgres_server: PostgresServer) -> Generator[str]:
    """Yield the name of a database with our tables, made once."""
    from everlong.stores.postgres import migrate

    name = postgres_server.create()
    with ThreadPoolExecutor(1) as other_thread:  # a loop of its own: this one's belongs to a test
        other_thread.submit(asyncio.run, migrate(postgres_server.dsn(name))).result()
    yield name
    postgres_server.drop(name)


@pytest.fixture
def dsn(postgres_server: PostgresServer, migrated_template: str) -> Generator[str]:
    """Yield the DSN of a database with our tables and nothing in them."""
    name = postgres_server.create(migrated_template)
    yield postgres_server.dsn(name)
    postgres_server.drop(name)


@pytest.fixture
def fresh_dsn(postgres_server: PostgresServer) -> Generator[str]:
    """Yield the DSN of an empty database."""
    name = postgres_server.create()
    yield postgres_server.dsn(name)
    postgres_server.drop(name)


@pytest.fixture(scope="session")
def used_home() -> Generator[Path]:
    """Yield a home that each test takes over from the one before, whatever that did to it."""
    folder = make_reachable_folder()
    with EmbeddedPostgres(folder / "home", NOT_DURABLE):
        pass
    yield folder / "home"
    shutil.rmtree(folder)


@pytest.fixture
def home(used_home: Path) -> Generator[Path]:
    """Yield a home with a database and no server; afterwards no process may be left in it."""
    await_stop(used_home)
    yield used_home
    await_stop(used_home)
    assert processes_in(used_home) == []


@pytest.fixture
def new_home() -> Generator[Path]:
    """Yield a home that does not exist yet; afterwards no process may be left in it."""
    folder = make_reachable_folder()
    try:
        yield folder / "home"
        await_stop(folder / "home")
        assert processes_in(folder) == []
    finally:
        shutil.rmtree(folder, ignore_errors=True)
