"""The folders of the embedded PostgreSQL: who may enter them, and what a crash left in them."""

import hashlib
import os
import shutil
import stat
from pathlib import Path

from everlong.stores.postgres_binaries import (
    UNFINISHED,
    Account,
    EmbeddedPostgresError,
    may_enter,
)

PORT = 5432
"""Only names the socket: there is no TCP."""
SOCKET = f".s.PGSQL.{PORT}"
SOCKET_BYTES = 100
"""Longest path of a socket; the kernel takes 103 bytes on macOS, 107 on Linux."""
SHORT_PATHS = Path("/tmp")  # noqa: S108 - the same for all processes; `claim` checks the owner


def make_home(home: Path, account: Account | None) -> None:
    """Make the folder, private to the user, or passable where we are root.

    Raises:
        EmbeddedPostgresError: the server's account could not use it.
    """
    missing = [folder for folder in (home, *home.parents) if not folder.exists()]
    home.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        folder.chmod(0o755 if account else 0o700)
    if account is None:
        return
    got = ""
    if owner := home.stat().st_uid:
        got = f"one of user id {owner}"
    elif not may_enter(account, home):
        got = "one below a folder that is closed to others"
    if got:
        msg = (
            f"expected {home} to be root's, as we are, and within reach of user id {account.uid}, "
            f"who runs the server; got {got}; set `EVERLONG_HOME` to another or `DATABASE_URL`"
        )
        raise EmbeddedPostgresError(msg)


def socket_folder(data: Path) -> Path:
    """Return the data folder, or a short path where the system or libpq cannot take that one."""
    path = os.fsencode(data / SOCKET)
    if len(path) <= SOCKET_BYTES and b"," not in path:  # libpq reads `host` as a list
        return data
    return SHORT_PATHS / f"everlong-{hashlib.sha256(path).hexdigest()[:16]}"


def claim(folder: Path, account: Account | None) -> None:
    """Make the folder, or refuse one that another user put there to receive our connections.

    Raises:
        EmbeddedPostgresError: it is not ours alone.
    """
    owner = account.uid if account else os.geteuid()
    try:
        folder.mkdir(mode=0o700)
        if account:
            os.chown(folder, account.uid, account.gid)
    except FileExistsError:
        status = folder.lstat()
        if (status.st_uid, stat.filemode(status.st_mode)) != (owner, "drwx------"):
            msg = (
                f"expected {folder} to be a private folder of user id {owner}; got "
                f"{stat.filemode(status.st_mode)} of {status.st_uid}; remove it"
            )
            raise EmbeddedPostgresError(msg) from None


def discard_unfinished(home: Path) -> None:
    """Remove what a killed starter left; call it with the start lock held."""
    for folder in home.glob(f"{UNFINISHED}*"):
        shutil.rmtree(folder, ignore_errors=True)


def discard_socket(folder: Path) -> None:
    """Remove the socket of a server that is known to be dead, and the socket's lock file."""
    for name in (SOCKET, f"{SOCKET}.lock"):
        (folder / name).unlink(missing_ok=True)


def disown_process_id(data: Path) -> dict[str, str]:
    """Return the environment in which a dead server's process id, reused, does not bar a new one.

    The file itself stays where it is whole: its shared memory key still tells PostgreSQL whether
    another server, started by hand, lives in the folder.

    Source: PostgreSQL's CreateLockFile takes the id of an ancestor for a stale one, and `pg_ctl`
        names it a further ancestor in this variable.
    """
    lock_file = data / "postmaster.pid"
    try:
        process_id = abs(int(lock_file.read_bytes().split(b"\n")[0]))
    except FileNotFoundError:
        return {}
    except ValueError:
        process_id = 0
    if process_id:
        return {"PG_GRANDPARENT_PID": str(process_id)}
    lock_file.unlink()  # cut short: PostgreSQL would refuse to start
    return {}
