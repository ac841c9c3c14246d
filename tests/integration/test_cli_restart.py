"""`everlong chat` while its database goes away and comes back: nothing is lost, or said so."""

import os
import signal

from cli_process import everlong, piped
from everlong.stores.embedded import EmbeddedPostgres
from fix_postgres import NOT_DURABLE, process_ids, wait_until

CHAT = ("chat", "--user", "kim", "--thread", "t1")
GONE = "everlong: the database does not answer ("


def kill_server(home):
    os.kill(process_ids(home)[0], signal.SIGKILL)


def messages(dsn):
    lines = everlong("transcript", "-u", "kim", "-t", "t1", "--dsn", dsn).out.splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_a_message_said_while_the_database_is_away_is_answered_when_it_is_back(home, tmp_path):
    server = EmbeddedPostgres(home, NOT_DURABLE)
    with server as dsn, piped(*CHAT, "--dsn", dsn, folder=tmp_path) as chat:
        chat.say("My code word is heron.")
        wait_until(lambda: "memory:" in chat.out)
        kill_server(home)
        chat.say("My number is 4471.")
        wait_until(lambda: chat.err.count(GONE) == 1)
        chat.say("/where")
        wait_until(lambda: chat.err.count(GONE) == 2)
        server.start()
        chat.say("What is my number?")
        wait_until(lambda: "my number is 4471" in chat.out)
        assert chat.end() == 0, chat.err
        assert all(len(line) < 300 for line in chat.err.splitlines())
        assert chat.err.count("\n") == 2
        said = messages(dsn)
        assert said[::2] == ["My code word is heron.", "My number is 4471.", "What is my number?"]
        assert len(said) == 6


def test_a_database_that_stays_away_ends_with_what_is_lost(home, tmp_path):
    server = EmbeddedPostgres(home, NOT_DURABLE)
    with server as dsn, piped(*CHAT, "--dsn", dsn, folder=tmp_path) as chat:
        chat.say("one")
        wait_until(lambda: "memory:" in chat.out)
        kill_server(home)
        chat.say("two")
        wait_until(lambda: GONE in chat.err)
        assert chat.end() == 1
        assert chat.err.splitlines()[-1] == ("everlong: not answered, and perhaps not saved: 'two'")
        assert "Traceback" not in chat.err


def test_a_loss_between_the_steps_of_a_call_repeats_no_finished_tool(home, tmp_path):
    server = EmbeddedPostgres(home, NOT_DURABLE)
    tools = ("--tools", "cli_tools:TOOLS")
    with server as dsn, piped(*CHAT, *tools, "--dsn", dsn, folder=tmp_path) as chat:
        chat.say("hello")
        wait_until(lambda: "memory:" in chat.out)
        chat.say('call slow {"seconds": 1.5}')
        wait_until(lambda: "→ slow" in chat.out)
        kill_server(home)
        wait_until(lambda: GONE in chat.err)
        server.start()
        chat.say("")
        wait_until(lambda: "slow returned: waited 1.5 s" in chat.out)
        assert chat.end() == 0, chat.err
        assert messages(dsn).count('call slow {"seconds": 1.5}') == 1


def test_the_embedded_server_is_started_again(home, tmp_path):
    with piped(*CHAT, folder=tmp_path, EVERLONG_HOME=str(home)) as chat:
        chat.say("My code word is heron.")
        wait_until(lambda: "memory:" in chat.out)
        kill_server(home)
        chat.say("What is my code word?")
        wait_until(lambda: GONE in chat.err)
        chat.say("")
        wait_until(lambda: "You said: my code word is heron." in chat.out)
        assert chat.end() == 0, chat.err
