"""The embedded PostgreSQL when users, servers and what they left are killed, cut and reused."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from embedded_clients import (
    ask,
    crash,
    end,
    identity,
    notes,
    running_clients,
    said,
    server_of,
    write,
)
from everlong.stores.embedded import EmbeddedPostgres, EmbeddedPostgresError
from everlong.stores.embedded_reaper import START_LOCK, USERS_LOCK, open_lock, try_lock
from everlong.stores.postgres_binaries import UNFINISHED, find_programs, installed
from fix_postgres import await_stop, is_alive, is_stopped, process_ids, processes_in, wait_until


def test_the_server_stops_when_its_last_user_is_killed(home: Path) -> None:
    with running_clients(home, 2) as (first, second):
        dsn, _ = said(first), said(second)
        server, reaper = process_ids(home)
        end(first)
        time.sleep(0.3)
        assert ask(dsn, "SELECT 1") == 1
        end(second)
        await_stop(home)
        assert not is_alive(server)
        assert not is_alive(reaper)


def test_a_client_killed_while_the_server_comes_up_leaves_nothing(home: Path) -> None:
    with running_clients(home, 1) as (client,):
        wait_until(lambda: not is_stopped(home))
        end(client)
        await_stop(home)


def test_a_user_who_comes_when_the_reaper_has_already_woken_keeps_the_server(home: Path) -> None:
    embedded = server_of(home)
    dsn = embedded.start()
    start, users = open_lock(home / START_LOCK), open_lock(home / USERS_LOCK)
    fcntl.flock(start, fcntl.LOCK_EX)
    embedded.release()
    time.sleep(0.3)
    fcntl.flock(users, fcntl.LOCK_SH | fcntl.LOCK_NB)
    os.close(start)
    time.sleep(0.3)
    assert ask(dsn, "SELECT 1") == 1
    os.close(users)


def test_a_killed_server_is_started_again_for_its_holder(home: Path) -> None:
    embedded = EmbeddedPostgres(home)
    with embedded as dsn:
        write(dsn, "committed")
        os.kill(process_ids(home)[0], signal.SIGKILL)
        assert notes(embedded.start()) == ["committed"]
        assert len(processes_in(home)) == 2


def test_after_everything_was_killed_the_next_start_works(home: Path) -> None:
    with running_clients(home, 1) as (client,):
        write(said(client), "committed")
        crash(home, client)
    with server_of(home) as dsn:
        assert notes(dsn) == ["committed"]


def test_a_server_whose_reaper_was_killed_gets_another(home: Path) -> None:
    with server_of(home):
        server, reaper = process_ids(home)
        os.kill(reaper, signal.SIGKILL)
        with server_of(home):
            pass
        assert is_alive(server)
    await_stop(home)
    assert not is_alive(server)


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.15])
def test_a_kill_during_initdb_leaves_no_broken_folder(new_home: Path, delay: float) -> None:
    with running_clients(new_home, 1) as (client,):
        wait_until(lambda: list(new_home.glob(f"{UNFINISHED}*")))
        time.sleep(delay)
        assert not (new_home / "data").exists()
        end(client)
    with server_of(new_home) as dsn:
        assert ask(dsn, "SELECT 1") == 1
    assert list(new_home.glob(f"{UNFINISHED}*")) == []


def test_nobody_starts_a_server_while_an_orphaned_initdb_lives(new_home: Path) -> None:
    with running_clients(new_home, 1) as (client,):
        wait_until(lambda: list(new_home.glob(f"{UNFINISHED}*/PG_VERSION")))
        end(client)
    orphans = set(processes_in(new_home))
    lock = try_lock(new_home / START_LOCK)
    if lock is not None:
        os.close(lock)
        assert not orphans & set(processes_in(new_home))
    wait_until(lambda: not processes_in(new_home))


def test_a_reused_process_id_does_not_bar_the_start(home: Path) -> None:
    with running_clients(home, 1) as (client,):
        said(client)
        crash(home, client)
    stranger = subprocess.Popen(["/bin/sleep", "60"], **identity(home))
    try:
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            lock_file = home / "data" / name
            _, rest = lock_file.read_text().split("\n", 1)
            lock_file.write_text(f"{stranger.pid}\n{rest}")
        with server_of(home) as dsn:
            assert ask(dsn, "SELECT 1") == 1
        await_stop(home)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("left", ["", "\n", "4", "nonsense\n/somewhere\n"])
def test_a_process_id_file_cut_short_does_not_bar_the_start(home: Path, left: str) -> None:
    (home / "data" / "postmaster.pid").write_text(left)
    (home / "data" / ".s.PGSQL.5432.lock").write_text(left)
    with server_of(home) as dsn:
        assert ask(dsn, "SELECT 1") == 1


def test_a_server_somebody_started_by_hand_is_not_doubled(home: Path) -> None:
    with _started_by_hand(home) as by_hand:
        with pytest.raises(EmbeddedPostgresError, match="shared memory block"):
            server_of(home).start()
        assert by_hand.poll() is None


@contextlib.contextmanager
def _started_by_hand(home: Path) -> Generator["subprocess.Popen[str]"]:
    sockets = home.parent / "sockets"
    sockets.mkdir()
    sockets.chmod(0o777)
    command = [find_programs(installed(), None).path("postgres"), "-D", str(home / "data")]
    command += ["-c", "listen_addresses=", "-c", f"unix_socket_directories={sockets}"]
    by_hand = subprocess.Popen(  # noqa: S603 - this test's own command
        command, text=True, cwd="/", stderr=subprocess.DEVNULL, **identity(home)
    )
    try:
        wait_until(lambda: list(sockets.iterdir()))
        yield by_hand
    finally:
        by_hand.send_signal(signal.SIGINT)
        by_hand.wait()
        shutil.rmtree(sockets)
