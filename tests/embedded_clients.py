"""Processes that use an embedded server, for tests that start and kill them."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg

from everlong.stores.embedded import EmbeddedPostgres
from everlong.stores.postgres_binaries import account_for
from fix_postgres import NOT_DURABLE, await_stop, process_ids

CLIENT = """
import sys
from pathlib import Path
from everlong.stores.embedded import EmbeddedPostgres
embedded = EmbeddedPostgres(Path(sys.argv[1]), {"fsync": "off"})
print(embedded.start(), flush=True)
sys.stdin.read()
"""


def server_of(home: Path, **settings: str) -> EmbeddedPostgres:
    return EmbeddedPostgres(home, {**NOT_DURABLE, **settings})


def _spawn(home: Path, **options: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(  # noqa: S603 - this test's own script
        [sys.executable, "-c", CLIENT, str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def said(client: "subprocess.Popen[str]") -> str:
    """Return the client's DSN, once it has one."""
    assert client.stdout
    return client.stdout.readline().strip()


def end(client: "subprocess.Popen[str]") -> None:
    client.kill()
    client.communicate()


@contextlib.contextmanager
def running_clients(
    home: Path, count: int, **options: Any
) -> Generator[list["subprocess.Popen[str]"]]:
    """Start processes at once that hold the server; kill those that are left."""
    clients = [_spawn(home, **options) for _ in range(count)]
    try:
        yield clients
    finally:
        for client in clients:
            end(client)


def ask(dsn: str, query: Any) -> Any:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def write(dsn: str, text: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP TABLE IF EXISTS notes")
        connection.execute("CREATE TABLE notes (note text)")
        connection.execute("INSERT INTO notes VALUES (%s)", (text,))


def notes(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as connection:
        return [row[0] for row in connection.execute("SELECT note FROM notes ORDER BY 1")]


def crash(home: Path, *clients: "subprocess.Popen[str]") -> None:
    """Kill the server, its reaper and its users at once, as a power failure would."""
    ids = process_ids(home)
    for process_id in (*ids, *(client.pid for client in clients)):
        os.kill(process_id, signal.SIGKILL)
    await_stop(home)


def identity(home: Path) -> dict[str, Any]:
    """Return the options with which a process runs as the server's user."""
    account = account_for(home / "data")
    return {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
