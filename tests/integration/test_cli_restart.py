"""`everlong chat` while its database goes away and comes back: nothing is lost, or said so."""

import os
import signal
import time
from uuid import uuid4

import pytest

from cli_process import everlong, piped
from everlong.stores.embedded import EmbeddedPostgres
from fix_postgres import process_ids, wait_until

GONE = "everlong: the database does not answer ("


@pytest.fixture
def who():
    """Whose thread it is; the tests share a database, so each has a user of its own."""
    name = uuid4().hex[:8]
    return ("--user", name, "--thread", name)


def kill_server(home):
    os.kill(process_ids(home)[0], signal.SIGKILL)


def said(chat, line):
    """Say a line and return when all of its call has ended."""
    ended = chat.out.count("  compacted  ")
    chat.say(line)
    chat.say("/where")
    wait_until(lambda: chat.out.count("  compacted  ") > ended)


def messages(dsn, who):
    done = everlong("transcript", *who, "--dsn", dsn)
    assert done.code == 0, done.err
    return [line for line in done.out.splitlines() if line and not line.startswith("#")]


def test_a_message_said_while_the_database_is_away_is_answered_when_it_is_back(home, tmp_path, who):
    server = EmbeddedPostgres(home)
    with server as dsn, piped("chat", *who, "--dsn", dsn, folder=tmp_path) as chat:
        said(chat, "My code word is heron.")
        kill_server(home)
        chat.say("My number is 4471.")
        wait_until(lambda: chat.err.count(GONE) == 1)
        chat.say("/where")
        wait_until(lambda: chat.err.count(GONE) == 2)
        server.start()
        chat.say("What is my number?")
        wait_until(lambda: "my number is 4471" in chat.out)
        assert chat.end() == 0, chat.err
        assert chat.err.count("\n") == 2
        assert all(len(line) < 400 for line in chat.err.splitlines())
        spoken = messages(dsn, who)
        assert spoken[::2] == ["My code word is heron.", "My number is 4471.", "What is my number?"]
        assert len(spoken) == 6


def test_a_database_that_stays_away_ends_with_what_is_lost(home, tmp_path, who):
    server = EmbeddedPostgres(home)
    with server as dsn, piped("chat", *who, "--dsn", dsn, folder=tmp_path) as chat:
        said(chat, "one")
        kill_server(home)
        chat.say("two")
        wait_until(lambda: GONE in chat.err)
        assert chat.end() == 1
        lost = "everlong: not answered, and perhaps not saved: 'two'"
        assert chat.err.splitlines()[-1] == lost
        assert "Traceback" not in chat.err


def test_a_loss_between_the_steps_of_a_call_repeats_no_finished_tool(home, tmp_path, who):
    server, booked = EmbeddedPostgres(home), tmp_path / "booked.txt"
    words = ("chat", *who, "--tools", "cli_tools:TOOLS")
    line = f'call book {{"path": "{booked}"}} and call slow {{"seconds": 1.5}}'
    with server as dsn, piped(*words, "--dsn", dsn, folder=tmp_path) as chat:
        said(chat, "hello")
        chat.say(line)
        wait_until(lambda: "← booked" in chat.out)
        time.sleep(0.5)  # what was shown is stored by now
        kill_server(home)
        wait_until(lambda: GONE in chat.err)
        server.start()
        chat.say("")
        wait_until(lambda: "slow returned: waited 1.5 s" in chat.out)
        assert chat.end() == 0, chat.err
        assert booked.read_text() == "booked\n"
        assert messages(dsn, who).count(line) == 1


def test_the_embedded_server_is_started_again(home, tmp_path, who):
    with piped("chat", *who, folder=tmp_path, EVERLONG_HOME=str(home)) as chat:
        said(chat, "My code word is heron.")
        kill_server(home)
        chat.say("What is my code word?")
        wait_until(lambda: GONE in chat.err)
        chat.say("")
        wait_until(lambda: "You said: my code word is heron." in chat.out)
        assert chat.end() == 0, chat.err
