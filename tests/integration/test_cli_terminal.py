"""`everlong chat` in a terminal: Ctrl-C, Ctrl-D, and lines that fit."""

import json
import socket
import subprocess

from rich.cells import cell_len

from cli_process import COMMAND, SECONDS, everlong, in_terminal

CTRL_C, CTRL_D = "\x03", "\x04"
TOOLS = ("--tools", "cli_tools:TOOLS")
LONG = (
    "请记住：任务编号 CTX-009。要确认四项：Java 版本、Spring Boot 版本、启动类、源码目录；"
    "构建命令和测试命令待确认。"
)


def chat(dsn, *more, columns=80, **environment):
    words = ("chat", "--user", "kim", "--thread", "t1", "--dsn", dsn, *more)
    return in_terminal(*words, columns=columns, **environment)


def too_wide(lines):
    """Return the lines that the terminal had to cut; a single word it may."""
    return [line for line in lines if cell_len(line) > 60 and " " in line.strip()]


def test_ctrl_c_stops_the_answer_and_not_the_conversation(dsn):
    with chat(dsn, *TOOLS) as terminal:
        terminal.await_prompt()
        terminal.type('call slow {"seconds": 55}\r')
        terminal.await_text("thinking 0:00:01")
        terminal.type(CTRL_C)
        terminal.await_text("stopped")
        terminal.await_text("the question stays")
        terminal.await_prompt()
        terminal.type("My code word is heron.\r")
        terminal.await_text("1 fact written")
        terminal.await_prompt()
        terminal.type("What is my code word?\r")
        terminal.await_text("You said: my code word is heron.")
        terminal.await_prompt()
        terminal.type(CTRL_D)
        assert terminal.await_end() == 0
        assert "Traceback" not in terminal.text
        assert "everlong: Repaired" in terminal.text


def test_ctrl_c_drops_what_is_typed_and_leaves_at_an_empty_prompt(dsn):
    with chat(dsn) as terminal:
        terminal.await_prompt()
        terminal.type("half a line")
        terminal.await_text("half a line")
        terminal.type(CTRL_C)
        terminal.await_prompt()
        terminal.type(CTRL_C)
        assert terminal.await_end() == 0
        assert "everlong:" not in terminal.text


def test_ctrl_c_while_the_database_is_opened_ends_quietly():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/x"
        with in_terminal("memory", "show", "-u", "kim", "--dsn", place) as terminal:
            terminal.await_text(f"Opening {place[:40]}")
            terminal.type(CTRL_C)
            assert terminal.await_end() == 130
            assert "Traceback" not in terminal.text


def test_sixty_columns_cut_no_line(dsn):
    with chat(dsn, columns=60) as terminal:
        terminal.await_prompt()
        terminal.type("/help\r")
        terminal.await_text("an empty line")
        terminal.await_prompt()
        terminal.type(f"{LONG}\r")
        terminal.await_text("1 fact written")
        terminal.await_prompt()
        terminal.type("请总结已确认和待确认的内容。\r")
        terminal.await_text("memory:", count=3)
        terminal.await_prompt()
        terminal.type("/where\r")
        terminal.await_prompt()
        terminal.type(CTRL_D)
        assert terminal.await_end() == 0
        printed = [line for line in terminal.text.splitlines() if not line.startswith("› ")]
    assert too_wide(printed) == []
    answer = printed[printed.index("## 当前目标") :]
    assert any(cell_len(line) > 50 for line in answer)
    assert not any(line.lstrip().startswith(tuple("，。、；：）")) for line in printed)


def test_sixty_columns_hold_the_doctor_and_the_demo(dsn):
    for words in (("doctor",), ("demo",)):
        with in_terminal(*words, "--dsn", dsn, columns=60) as terminal:
            terminal.await_end()
            lines = terminal.text.splitlines()
        assert too_wide(lines) == []
        assert len(lines) > 40, words


def test_sixty_columns_hold_the_compactions_and_their_originals(dsn):
    who = ("--user", "kim", "--thread", "t1", "--dsn", dsn)
    small = {
        "EVERLONG_COMPACTION__TRIGGER_MESSAGES": "4",
        "EVERLONG_COMPACTION__KEEP_MESSAGES": "1",
    }
    everlong("chat", *who, given=f"{LONG}\n" * 5, **small)
    receipts = json.loads(everlong("compactions", *who, "--json").out)
    ident = receipts[-1]["id"]
    for words, shown in (
        (("compactions",), "carried over"),
        (("compactions", ident), "message ids"),
        (("transcript", "--compaction", ident), "CTX-009"),
    ):
        with in_terminal(*words, *who, columns=60) as terminal:
            assert terminal.await_end() == 0
            text = terminal.text
        assert too_wide(text.splitlines()) == []
        assert shown in text
    with in_terminal("compactions", *who, columns=240) as terminal:
        terminal.await_end()
        lines = terminal.text.splitlines()
    assert [line.startswith(receipts[0]["id"]) for line in lines].count(True) == 1
    assert sum(one["id"] in line for one in receipts for line in lines) == len(receipts)


def test_a_reader_who_goes_away_ends_the_chat_and_hangs_nothing(dsn):
    words = [*COMMAND, "chat", "--user", "kim", "--thread", "t1", "--dsn", dsn]
    with subprocess.Popen(  # noqa: S603 - our own command
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as chat:
        assert chat.stdin
        assert chat.stdout
        assert chat.stderr
        chat.stdout.readline()
        chat.stdout.close()
        chat.stdin.write(b"one\ntwo\nthree\n")
        chat.stdin.close()
        assert chat.wait(SECONDS) == 1
        assert b"Traceback" not in chat.stderr.read()
