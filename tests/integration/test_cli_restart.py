"""`everlong chat` while its database goes away and comes back: nothing is lost, or said so."""

from uuid import uuid4

import psycopg
import pytest

from cli_process import everlong, piped
from everlong.stores.embedded import EmbeddedPostgres
from fix_postgres import kill_server, wait_until

GONE = "everlong: the database does not answer ("


@pytest.fixture
def who():
    """Whose thread it is; the tests share a database, so each has a user of its own."""
    name = uuid4().hex[:8]
    return ("--user", name, "--thread", name)


def said(chat, line):
    """Say a line and return when all of its call has ended."""
    ended = chat.out.count("  compacted  ")
    chat.say(line)
    chat.say("/where")
    chat.until(lambda: chat.out.count("  compacted  ") > ended)


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
        chat.until(lambda: chat.err.count(GONE) == 1)
        chat.say("/where")
        chat.until(lambda: chat.err.count(GONE) == 2)
        server.start()
        chat.say("What is my number?")
        chat.until(lambda: "my number is 4471" in chat.out)
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
        chat.until(lambda: GONE in chat.err)
        assert chat.end() == 1
        lost = "everlong: not answered, and perhaps not saved: 'two'"
        assert chat.err.splitlines()[-1] == lost
        assert "Traceback" not in chat.err


def holds_a_result(dsn, thread):
    """Tell whether a finished call of a tool is stored, while another one still runs."""
    query = "SELECT count(*) FROM checkpoint_writes WHERE thread_id = %s AND channel = '__return__'"
    with psycopg.connect(dsn) as connection:
        return connection.execute(query, (thread,)).fetchone() != (0,)


def test_a_loss_between_the_steps_of_a_call_repeats_no_finished_tool(home, tmp_path, who):
    server, booked, gate = EmbeddedPostgres(home), tmp_path / "booked.txt", tmp_path / "gate"
    words = ("chat", *who, "--tools", "cli_tools:TOOLS")
    line = f'call book {{"path": "{booked}"}} and call wait_for {{"path": "{gate}"}}'
    with server as dsn, piped(*words, "--dsn", dsn, folder=tmp_path) as chat:
        said(chat, "hello")
        chat.say(line)
        chat.until(lambda: "← booked" in chat.out)
        wait_until(lambda: holds_a_result(dsn, who[-1]))
        kill_server(home)
        gate.touch()
        chat.until(lambda: GONE in chat.err)
        server.start()
        chat.say("")
        chat.until(lambda: "wait_for returned: it is there" in chat.out)
        assert chat.end() == 0, chat.err
        assert booked.read_text() == "booked\n"
        assert messages(dsn, who).count(line) == 1


def test_the_embedded_server_is_started_again(home, tmp_path, who):
    with piped("chat", *who, folder=tmp_path, EVERLONG_HOME=str(home)) as chat:
        said(chat, "My code word is heron.")
        kill_server(home)
        chat.say("What is my code word?")
        chat.until(lambda: GONE in chat.err)
        chat.say("")
        chat.until(lambda: "You said: my code word is heron." in chat.out)
        assert chat.end() == 0, chat.err
