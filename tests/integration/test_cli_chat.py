"""`everlong chat` on a pipe: each line a message, and a line for whatever else happens."""

import pytest

from cli_process import everlong
from everlong.stores.text import REPLACEMENT

SMALL = {
    "EVERLONG_COMPACTION__TRIGGER_MESSAGES": "6",
    "EVERLONG_COMPACTION__KEEP_MESSAGES": "2",
}


def chat(dsn, *lines, user="kim", thread="t1", more=(), **environment):
    return everlong(
        *("chat", "--user", user, "--thread", thread, "--dsn", dsn, *more),
        given="".join(f"{line}\n" for line in lines),
        **environment,
    )


def with_server(server):
    return {
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": server.key,
        "EVERLONG_COMPACTION__WINDOW_TOKENS": "100000",
        "EVERLONG_MEMORY__FLUSH": "never",
    }


def test_each_line_is_a_message_and_nothing_asks_for_one(dsn):
    done = chat(dsn, "My code word is heron.", "", "What is my code word?")
    assert done.code == 0
    assert done.err == ""
    assert "You said: my code word is heron." in done.out.splitlines()
    assert "›" not in done.out


def test_a_thread_is_resumed_with_its_size_and_its_last_exchange(dsn):
    chat(dsn, "My code word is heron.", "What is my code word?")
    again = chat(dsn, "Say it again.")
    assert "Resumed: the thread holds 4 messages." in again.out
    assert "  you: What is my code word?" in again.out.splitlines()
    assert "  everlong: You said: my code word is heron." in again.out.splitlines()
    assert "Resumed" not in chat(dsn, "hello", thread="t2").out


def test_memory_and_compaction_are_shown_as_they_happen(dsn):
    done = chat(dsn, "My code word is heron.", "two", "three", "four", "/where", **SMALL)
    lines = [line.strip() for line in done.out.splitlines()]
    assert "· memory: 1 fact written to the ledger" in lines
    assert "· memory: MEMORY.md rewritten from 1 ledger entry" in lines
    started = next(i for i, line in enumerate(lines) if line.startswith("· compacting 7 messages"))
    assert lines[started + 1].startswith("· compacted: 7 messages → 1 summary + 2; ")
    assert lines[started + 1].endswith(" tokens")
    assert any(line.startswith("messages   4 of 6, one is a summary;") for line in lines)
    resumed = chat(dsn, "five", **SMALL).out
    assert "4 messages (one is a summary of older ones); its transcript holds 8." in resumed


def test_compaction_on_request_says_what_came_of_it(dsn):
    done = chat(dsn, "/compact", "one", "/compact", "two", "three", "/compact the heron", **SMALL)
    assert done.code == 0
    assert done.out.count("nothing to compact") == 2
    assert "compacting 6 messages" in done.out
    assert "(as asked)" in done.out


def test_the_commands_of_a_chat(dsn):
    done = chat(
        *(dsn, "My code word is heron.", "/memory", "/help", "/nothing", "/var/log is full"),
        *("/exit", "never said"),
    )
    lines = done.out.splitlines()
    assert "- My code word is heron" in lines
    assert "  The ledger holds one day." in lines
    assert any(line.startswith("  /compact [WHAT TO KEEP]") for line in lines)
    assert "There is no /nothing" in done.out
    assert "There is no /var" not in done.out
    transcript = everlong("transcript", "--user", "kim", "--thread", "t1", "--dsn", dsn).out
    assert "/var/log is full" in transcript
    assert "never said" not in transcript
    assert "/help" not in transcript


def test_tools_and_evictions_are_shown(dsn):
    done = chat(
        *(dsn, 'call big {"characters": 90000}'),
        more=("--tools", "integration.cli_tools:TOOLS"),
    )
    lines = [line.strip() for line in done.out.splitlines()]
    assert "→ big(characters=90000)" in lines
    assert any(
        line.startswith("· evicted: a tool result of 90,000 characters → large_") for line in lines
    )
    assert any(line.startswith("← ") and len(line) < 250 for line in lines)


def test_an_approval_is_answered_by_the_next_line(dsn):
    tools = {"more": ("--tools", "integration.cli_tools:TOOLS")}
    asked = chat(dsn, 'call send_mail {"to": "ops"} and {"to": "dev"}', "yes", **tools)
    assert 'approval needed (2 in all): {"ask": "Send the mail to ops?"}' in asked.out
    assert 'approval needed: {"ask": "Send the mail to dev?"}' in asked.out
    assert "← mail to ops: yes" in asked.out
    later = chat(dsn, "/compact", '{"no": "not now"}', **tools)
    assert later.out.count('approval needed: {"ask": "Send the mail to dev?"}') == 1
    assert "An approval waits" in later.out
    assert "← mail to dev: {'no': 'not now'}" in later.out
    assert "send_mail returned: mail to ops: yes" in later.out.splitlines()


@pytest.mark.parametrize("tools", ["nowhere:TOOLS", "integration.cli_tools:NONE", "nothing"])
def test_tools_that_are_not_there_are_named(dsn, tools):
    done = chat(dsn, "hello", more=("--tools", tools))
    assert done.code == 1
    assert done.err.startswith("everlong: `--tools`: expected MODULE:NAME")
    assert done.err.count("\n") == 1


def test_a_model_that_fails_is_one_line_and_the_conversation_goes_on(dsn, openai_server):
    openai_server.script([{"status": 401, "error": {"message": "no"}}, "Both heard."])
    done = chat(
        *(dsn, "first", "second"),
        more=("--model", "openai:any"),
        **with_server(openai_server),
    )
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert line.startswith(f"everlong: openai:any at {openai_server.url}: the key was refused.")
    assert "Both heard." in done.out
    said = [m["content"] for m in openai_server.requests[-1].body["messages"][1:]]
    assert said == ["first", "second"]


def test_an_empty_line_asks_again_what_has_failed(dsn, openai_server):
    openai_server.script([{"status": 401, "error": {"message": "no"}}, "Heard."])
    done = chat(dsn, "first", "", more=("--model", "openai:any"), **with_server(openai_server))
    assert "an empty line asks it again" in done.out
    assert "Heard." in done.out.splitlines()
    transcript = everlong("transcript", "-u", "kim", "-t", "t1", "--dsn", dsn).out
    assert transcript.count("first") == 1


def test_a_call_that_a_dead_process_left_is_taken_up_again(dsn, openai_server):
    openai_server.script([{"status": 401, "error": {"message": "no"}}, "Heard at last."])
    given = {"more": ("--model", "openai:any"), **with_server(openai_server)}
    chat(dsn, "first", **given)
    done = chat(dsn, "", **given)
    assert "The last call did not come to its end" in done.out
    assert "Heard at last." in done.out.splitlines()
    assert done.code == 0


def test_a_model_without_a_key_is_named_before_anything_is_opened(dsn):
    done = chat(dsn, "hello", more=("--model", "openai:any"))
    assert (done.code, done.out) == (1, "")
    assert "needs a key: set OPENAI_API_KEY" in done.err
    assert done.err.count("\n") == 1


def test_characters_that_no_store_holds_are_replaced(dsn):
    done = chat(dsn, "My code word is a\x00b.", "What is my code word?")
    assert done.code == 0
    assert f"my code word is a{REPLACEMENT}b" in done.out


def test_without_a_database_named_the_embedded_one_is_used(new_home):
    given = ("chat", "--user", "kim", "--thread", "t1")
    done = everlong(*given, given="My code word is heron.\n", EVERLONG_HOME=str(new_home))
    assert f"embedded Postgres in {new_home}" in done.out
    again = everlong(*given, given="What is my code word?\n", EVERLONG_HOME=str(new_home))
    assert "my code word is heron" in again.out
