"""A real PostgreSQL for a process that was given none: kept, shared, stopped after its last user.

Under its home: `data` (the database), `postgres.log`, and `*.lock` (see `embedded_reaper`).
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import pq, sql

from everlong.stores import embedded_home, embedded_reaper, postgres_binaries
from everlong.stores.embedded_home import PORT
from everlong.stores.postgres_binaries import Account, EmbeddedPostgresError, Programs
from everlong.stores.settings import settings as process_settings

if sys.platform != "win32":
    import fcntl

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError", "default_home"]

ROOT_HOME = Path("/var/lib/everlong")
START_SECONDS = 120
"""Recovery after a crash is within this."""
POLL_SECONDS = 0.02
LOG_BYTES = 10_000_000
LOG_TAIL_BYTES = 2_000
DEFAULTS = {
    "listen_addresses": "",
    "max_connections": "100",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "jit": "off",
}


def default_home() -> Path:
    """Return the folder that the process's settings name, else the one the system means for it.

    Raises:
        EmbeddedPostgresError: the user has no home folder.
    """
    chosen = process_settings()
    if chosen.home:
        return chosen.home
    if sys.platform != "win32" and os.geteuid() == 0:
        return ROOT_HOME
    if Path(chosen.xdg_data_home).is_absolute():
        return Path(chosen.xdg_data_home) / "everlong"
    try:
        return Path.home() / ".local" / "share" / "everlong"
    except RuntimeError as error:
        msg = "expected a user with a home folder; got none; set `EVERLONG_HOME` or `DATABASE_URL`"
        raise EmbeddedPostgresError(msg) from error


class EmbeddedPostgres:
    """One hold on the server of a home: the first starts it, the end of the last stops it.

    A killed process lets go too; a fork of a holder holds on until it ends. `settings` override
    `DEFAULTS` where this starts the server: a running one keeps those that it was started with.
    """

    def __init__(self, home: Path, settings: Mapping[str, str] | None = None) -> None:
        self.home = home.expanduser().resolve()
        self.data = self.home / "data"
        self._log = self.home / "postgres.log"
        self._socket_folder = embedded_home.socket_folder(self.data)
        self._settings = {**DEFAULTS, **(settings or {})}
        self._users: int | None = None

    def __enter__(self) -> str:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.release()

    def start(self) -> str:
        """Hold the server, started where need be, and return the DSN of database `everlong`.

        Blocks. Called again after the server was killed, it starts it again.

        Raises:
            EmbeddedPostgresError: no programs, no usable folder, or a server that fails.
        """
        if sys.platform == "win32":
            msg = "expected Linux or macOS to embed PostgreSQL; got Windows; set `DATABASE_URL`"
            raise EmbeddedPostgresError(msg)
        try:
            self._hold()
            return self.dsn()
        except BaseException as error:
            self.release()
            if isinstance(error, OSError):
                msg = (
                    f"expected to use {self.home}; got: {error}; set `EVERLONG_HOME` to another "
                    f"folder or `DATABASE_URL`"
                )
                raise EmbeddedPostgresError(msg) from error
            raise

    def release(self) -> None:
        """Let go of the server; it stops when nobody else holds it."""
        if self._users is not None:
            os.close(self._users)
            self._users = None

    def dsn(self, database: str = "everlong") -> str:
        """Return the DSN of a database, which is created where there is none of the name.

        Raises:
            EmbeddedPostgresError: the server is not held.
        """
        if self._users is None:
            msg = f"expected the server of {self.home} to be held; got no `start()`; call it first"
            raise EmbeddedPostgresError(msg)
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            known = "SELECT FROM pg_database WHERE datname = %s"
            if connection.execute(known, [database]).fetchone() is None:
                create = sql.SQL("CREATE DATABASE {} TEMPLATE template0")
                with contextlib.suppress(  # another was quicker
                    psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation
                ):
                    connection.execute(create.format(sql.Identifier(database)))
        return self._address(database)

    def _address(self, database: str) -> str:
        host = quote(os.fsencode(self._socket_folder), safe="")
        return f"postgresql://postgres@/{quote(database, safe='')}?host={host}&port={PORT}"

    def _hold(self) -> None:
        account = postgres_binaries.account_for(self.data)
        embedded_home.make_home(self.home, account)
        with _locked(self.home / embedded_reaper.START_LOCK) as start_lock:
            if self._users is None:
                self._users = embedded_reaper.open_lock(self.home / embedded_reaper.USERS_LOCK)
                fcntl.flock(self._users, fcntl.LOCK_SH)
            if self._socket_folder != self.data:
                embedded_home.claim(self._socket_folder, account)
            self._await_answer(start_lock, account)

    def _await_answer(self, start_lock: int, account: Account | None) -> None:
        """Return when the server answers and a reaper watches over it."""
        launched = False
        until = time.monotonic() + START_SECONDS
        while not self._answers():
            with _tried(self.home / embedded_reaper.SERVER_LOCK) as server_lock:
                if server_lock is not None and not launched:
                    self._launch(server_lock, start_lock, account)
                    launched = True
                elif server_lock is not None or time.monotonic() > until:
                    raise self._failure()
            time.sleep(POLL_SECONDS)
        if not launched and self._is_unwatched():
            self._spawn(account, None, [], {})

    def _is_unwatched(self) -> bool:
        with _tried(self.home / embedded_reaper.REAPER_LOCK) as reaper_lock:
            return reaper_lock is not None

    def _answers(self) -> bool:
        address = f"{self._address('postgres')}&connect_timeout=5"
        return pq.PGconn.ping(address.encode()) == pq.Ping.OK

    def _launch(self, server_lock: int, start_lock: int, account: Account | None) -> None:
        """Start the server; holding `server_lock` proves that none lives, whatever files say."""
        embedded_home.discard_unfinished(self.home)
        version = self.data / "PG_VERSION"
        major = int(version.read_text()) if version.exists() else None
        programs = postgres_binaries.find_programs(postgres_binaries.installed(), major)
        programs = postgres_binaries.within_reach(programs, account, self.home)
        if major is None:
            durable = self._settings.get("fsync") != "off"
            postgres_binaries.create_cluster(
                programs, account, self.data, start_lock, durable=durable
            )
        embedded_home.discard_socket(self._socket_folder)
        environment = embedded_home.disown_process_id(self.data)
        os.ftruncate(server_lock, 0)
        self._spawn(
            account,
            server_lock,
            self._command(programs),
            {**postgres_binaries.ENVIRONMENT, **environment},
        )

    def _command(self, programs: Programs) -> list[str]:
        folder = str(self._socket_folder).replace('"', '""')
        options = {**self._settings, "port": str(PORT), "unix_socket_directories": f'"{folder}"'}
        command = [programs.path("postgres"), "-D", str(self.data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        return command

    def _spawn(
        self,
        account: Account | None,
        server_lock: int | None,
        command: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        """Run the reaper, which takes over `server_lock` and hands it on to the server."""
        task: embedded_reaper.Task = {
            "home": str(self.home),
            "account": (account.uid, account.gid) if account else None,
            "server_lock": server_lock,
            "command": list(command),
            "environment": dict(environment),
        }
        with _appended(self._log) as log:
            subprocess.run(  # noqa: S603 - our own module, no shell
                [sys.executable, "-I", "-S", embedded_reaper.__file__, json.dumps(task)],
                pass_fds=[] if server_lock is None else [server_lock],
                start_new_session=True,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,  # the log tells why, and `_await_answer` notices
            )

    def _failure(self) -> EmbeddedPostgresError:
        tail = self._log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
        msg = (
            f"expected a server in {self.data} to answer within {START_SECONDS} s; got none or one "
            f"that ended; see why, or set `DATABASE_URL`; {self._log} ends: {tail}"
        )
        return EmbeddedPostgresError(msg)


@contextlib.contextmanager
def _locked(path: Path) -> Generator[int]:
    lock = embedded_reaper.open_lock(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # a fork of this process may hold a copy of the descriptor
        os.close(lock)


@contextlib.contextmanager
def _tried(path: Path) -> Generator[int | None]:
    """Yield a lock that nobody else held, else none; heirs of the descriptor keep it."""
    lock = embedded_reaper.try_lock(path)
    try:
        yield lock
    finally:
        if lock is not None:
            os.close(lock)


@contextlib.contextmanager
def _appended(log: Path) -> Generator[int]:
    """Open the log for its owner only: it quotes what users wrote."""
    if log.exists() and log.stat().st_size > LOG_BYTES:
        log.replace(log.with_name(f"{log.name}.1"))
    handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)
