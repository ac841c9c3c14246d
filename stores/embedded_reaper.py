"""Start a PostgreSQL server apart from its starter, and stop it when its last user has gone.

Run by path with `python -I -S`, so it knows the standard library only. A user is a process that
holds `users.lock` shared, a server is alive while `server.lock` is held: the kernel frees both
however a process ends, so neither a killed process nor a reused process id deceives anyone.
"""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TypedDict

if sys.platform != "win32":
    import fcntl

START_LOCK = "start.lock"
USERS_LOCK = "users.lock"
SERVER_LOCK = "server.lock"
REAPER_LOCK = "reaper.lock"
FAST_STOP_SECONDS = 60
GIVE_UP_SECONDS = 90
POLL_SECONDS = 0.02


class Task(TypedDict):
    """What the starter asks for."""

    home: str
    account: tuple[int, int] | None
    """User and group id of the server; none: those of the starter."""
    server_lock: int | None
    """Inherited descriptor that holds `server.lock`; none: the server runs already."""
    command: list[str]
    environment: dict[str, str]


def open_lock(path: Path) -> int:
    """Open a lock file without locking it."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def take(lock: int) -> bool:
    """Lock exclusively unless somebody holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def try_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock, or none while somebody else holds it."""
    lock = open_lock(path)
    if take(lock):
        return lock
    os.close(lock)
    return None


def sign(lock: int) -> None:
    """Write this process's id into the lock file."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def signer(lock: int) -> int:
    """Return the process id in the lock file, 0 where there is none."""
    return int(os.pread(lock, 20, 0) or 0)


def _become(account: tuple[int, int] | None) -> None:
    if account:
        os.setgroups([])
        os.setgid(account[1])
        os.setuid(account[0])


def serve(task: Task, lock: int) -> None:
    """Turn this process into the server, which holds the lock from here on."""
    sign(lock)
    _become(task["account"])
    os.execve(task["command"][0], task["command"], task["environment"])  # noqa: S606 - no shell


def reap(task: Task) -> None:
    """Wait for the last user, then stop the server; leave it to another reaper if one waits."""
    home = Path(task["home"])
    reaper = try_lock(home / REAPER_LOCK)
    if reaper is None:
        return
    sign(reaper)
    users, start, server = (open_lock(home / n) for n in (USERS_LOCK, START_LOCK, SERVER_LOCK))
    _become(task["account"])
    _outlast_users(users, start)
    _stop(server)
    fcntl.flock(reaper, fcntl.LOCK_UN)  # before `start.lock`: the next starter needs a new reaper


def _outlast_users(users: int, start: int) -> None:
    """Return holding both locks, so that no user is left and none can come."""
    while True:
        fcntl.flock(users, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_UN)  # starters take `start.lock` first: never hold only this
        fcntl.flock(start, fcntl.LOCK_EX)
        if take(users):
            return
        fcntl.flock(start, fcntl.LOCK_UN)


def _stop(server: int) -> None:
    """Shut down fast, then at once; either way what was committed stays."""
    began = time.monotonic()
    while not take(server):
        waited = time.monotonic() - began
        if waited > GIVE_UP_SECONDS:
            return
        if pid := signer(server):
            with contextlib.suppress(OSError):  # it has just gone
                os.kill(pid, signal.SIGINT if waited < FAST_STOP_SECONDS else signal.SIGQUIT)
        time.sleep(POLL_SECONDS)


def main(task: Task) -> None:
    """Fork the reaper, then the server, and return, so that neither is a child of the starter.

    The starter gives us a session of our own: no Ctrl-C at a terminal reaches any of us.
    """
    lock = task["server_lock"]
    if os.fork() == 0:
        if lock is not None:
            os.close(lock)
        reap(task)
    elif lock is not None and os.fork() == 0:
        serve(task, lock)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
