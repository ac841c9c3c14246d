"""What the embedded PostgreSQL decides before it starts anything."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from everlong.stores.embedded import ROOT_HOME, EmbeddedPostgresError, _locked, default_home
from everlong.stores.embedded_home import (
    SOCKET,
    claim,
    disown_process_id,
    make_home,
    socket_folder,
)
from everlong.stores.embedded_reaper import try_lock
from everlong.stores.postgres_binaries import Account, find_programs, installed, may_enter
from everlong.stores.settings import settings

NOBODY_WE_KNOW = Account(uid=54321, gid=54321)

ON_WINDOWS = """
import sys
import psycopg, everlong.stores.settings
sys.platform = "win32"
sys.modules.update(fcntl=None, pwd=None)
from pathlib import Path
from everlong.stores.embedded import EmbeddedPostgres, EmbeddedPostgresError
try:
    EmbeddedPostgres(Path("x")).start()
except EmbeddedPostgresError as error:
    print(error)
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("EVERLONG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    settings.cache_clear()
    return monkeypatch


def test_the_home_is_the_one_that_the_settings_name(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("EVERLONG_HOME", "/somewhere/else")
    assert default_home() == Path("/somewhere/else")
    settings.cache_clear()


@pytest.mark.skipif(os.geteuid() != 0, reason="root's home")
def test_roots_home_is_a_folder_that_other_accounts_can_reach() -> None:
    assert default_home() == ROOT_HOME
    settings.cache_clear()


@pytest.mark.skipif(os.geteuid() == 0, reason="an ordinary user's home")
def test_a_users_home_is_in_the_data_folder_that_is_absolute(
    environment: pytest.MonkeyPatch,
) -> None:
    assert default_home() == Path.home() / ".local/share/everlong"
    settings.cache_clear()
    environment.setenv("XDG_DATA_HOME", "relative")
    assert default_home() == Path.home() / ".local/share/everlong"
    settings.cache_clear()
    environment.setenv("XDG_DATA_HOME", "/xdg")
    assert default_home() == Path("/xdg/everlong")
    settings.cache_clear()


def test_windows_is_refused_with_what_to_do() -> None:
    done = subprocess.run(  # noqa: S603 - this test's own script
        [sys.executable, "-c", ON_WINDOWS], capture_output=True, text=True, check=True
    )
    assert "got Windows" in done.stdout
    assert "DATABASE_URL" in done.stdout


def test_without_programs_the_error_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match=r"got none; run `pip install 'everlong\[em"):
        find_programs([], None)
    with pytest.raises(EmbeddedPostgresError, match="does not run here"):
        find_programs([tmp_path], None)


def test_programs_of_the_datas_version_are_preferred() -> None:
    programs = find_programs(installed(), None)
    assert find_programs(installed(), programs.major) == programs
    with pytest.raises(EmbeddedPostgresError, match=rf"PostgreSQL 8,.*\({programs.major}\)"):
        find_programs(installed(), 8)


def test_a_folder_closed_to_others_bars_the_way(tmp_path: Path) -> None:
    reachable = Path("/usr")
    assert may_enter(NOBODY_WE_KNOW, reachable)
    inner = tmp_path / "inner"
    inner.mkdir()
    tmp_path.chmod(0o700)
    assert not may_enter(NOBODY_WE_KNOW, inner)
    status = tmp_path.stat()
    of_group = Account(uid=54321, gid=status.st_gid)
    tmp_path.chmod(0o701)
    assert not may_enter(of_group, inner)


def test_the_socket_moves_where_its_path_would_be_cut_or_misread() -> None:
    short = Path("/home/ada/.local/share/everlong/data")
    assert socket_folder(short) == short
    for path in (Path("/home/ada") / ("x" * 100) / "data", Path("/home/a,b/data")):
        folder = socket_folder(path)
        assert folder != path
        assert len(os.fsencode(folder / SOCKET)) < 100
    assert socket_folder(Path("/a,b/data")) != socket_folder(Path("/a,c/data"))


@pytest.mark.parametrize("length", [99, 100, 101, 102])
def test_a_socket_path_that_is_kept_can_be_bound(tmp_path: Path, length: int) -> None:
    missing = length - len(os.fsencode(tmp_path / SOCKET)) - 1
    folder = tmp_path / ("x" * missing)
    folder.mkdir()
    assert len(os.fsencode(folder / SOCKET)) == length
    assert (socket_folder(folder) == folder) == (length <= 100)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / SOCKET))


def test_a_socket_folder_that_others_could_have_made_is_refused(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    claim(ours, None)
    claim(ours, None)
    ours.chmod(0o777)
    with pytest.raises(EmbeddedPostgresError, match="drwxrwxrwx"):
        claim(ours, None)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(EmbeddedPostgresError, match="lrwx"):
        claim(tmp_path / "link", None)


def test_a_fork_does_not_keep_the_start_locked(tmp_path: Path) -> None:
    with _locked(tmp_path / "start.lock"):
        child = os.fork()
        if child == 0:
            signal.pause()
    try:
        lock = try_lock(tmp_path / "start.lock")
        assert lock is not None
        os.close(lock)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_users_home_is_closed_to_others(tmp_path: Path) -> None:
    make_home(tmp_path / "share" / "everlong", None)
    for folder in (tmp_path / "share", tmp_path / "share" / "everlong"):
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("left", "environment_given", "kept"),
    [
        (None, {}, False),
        (b"123\n/data\n", {"PG_GRANDPARENT_PID": "123"}, True),
        (b"-123\n/data\n", {"PG_GRANDPARENT_PID": "123"}, True),
        (b"", {}, False),
        (b"0\n", {}, False),
        (b"\xff\n", {}, False),
    ],
)
def test_a_dead_servers_process_id_is_disowned(
    tmp_path: Path, left: bytes | None, environment_given: dict[str, str], kept: bool
) -> None:
    if left is not None:
        (tmp_path / "postmaster.pid").write_bytes(left)
    assert disown_process_id(tmp_path) == environment_given
    assert (tmp_path / "postmaster.pid").exists() == kept
