"""The commands that ask and answer once: doctor, memory, consolidate, transcript, demo, graph."""

import json
import subprocess
import sys

import pytest

from cli_process import everlong
from everlong.graph.agent import graph

SECRET = "geheim-4471"  # noqa: S105 - looked for in what is printed
NOWHERE = f"postgresql://nobody:{SECRET}@127.0.0.1:1/nothing"


def chat(dsn, *lines, thread="t1", user="kim", **environment):
    return everlong(
        *("chat", "--user", user, "--thread", thread, "--dsn", dsn),
        given="\n".join(lines) + "\n",
        **environment,
    )


@pytest.fixture
def told(dsn):
    """A database in which kim has told one fact, and nothing is consolidated."""
    never = {"EVERLONG_MEMORY__CONSOLIDATE": "on_request"}
    done = chat(dsn, "Remember that our exports go through Shanghai port only.", **never)
    assert done.code == 0, done.err
    return dsn


def test_memory_from_the_ledger_to_the_document_and_back(told):
    on = ("--user", "kim", "--dsn", told)
    missing = everlong("memory", "show", *on)
    assert (missing.code, missing.out) == (1, "")
    assert "`everlong consolidate --user kim` writes it" in missing.err
    assert missing.err.count("\n") == 1

    written = everlong("consolidate", *on)
    assert "is rewritten from 1 ledger entry" in written.out
    assert "Nothing new" in everlong("consolidate", *on).out

    shown = everlong("memory", "show", *on)
    assert "- Our exports go through Shanghai port only" in shown.out.splitlines()

    listed = everlong("memory", "show", "--list", *on).out.splitlines()
    day = listed[1].split()[0].removeprefix("memory/").removesuffix(".md")
    assert [line.split()[0] for line in listed] == ["MEMORY.md", f"memory/{day}.md"]
    assert "## Memory Flush" in everlong("memory", "show", "--day", day, *on).out

    found = everlong("memory", "search", *on, "shanghai", "exports").out.splitlines()
    said = "- Our exports go through Shanghai port only"
    sources = ("MEMORY.md#3", f"memory/{day}.md#3")
    assert sorted(found) == [f"Source: {source}: {said}" for source in sources]
    one = everlong("memory", "search", *on, "shanghai", "--limit", "1").out
    assert one.count("Source: ") == 1

    cleared = everlong("memory", "clear-document", *on)
    assert "is removed" in cleared.out
    assert everlong("memory", "show", *on).code == 1
    assert "nothing was changed" in everlong("memory", "clear-document", *on).out
    assert everlong("memory", "show", "--day", day, *on).code == 0
    assert "from 1 ledger entry" in everlong("consolidate", *on).out


def test_a_stranger_is_shown_nothing(told):
    on = ("--user", "eve", "--dsn", told)
    assert "nothing is remembered yet" in everlong("memory", "show", *on).err
    found = everlong("memory", "search", *on, "shanghai")
    assert (found.code, found.out) == (0, "")
    hidden = everlong("transcript", "--thread", "t1", *on)
    assert (hidden.code, hidden.out) == (1, "")
    assert "there is none" in hidden.err
    refused = chat(told, "let me in", user="eve")
    assert refused.code == 1
    assert "'t1' is not a thread of 'eve'" in refused.err
    assert refused.err.count("\n") == 1
    assert "Shanghai" not in refused.out


def test_a_transcript_is_whole_as_text_and_as_data(told):
    on = ("transcript", "--user", "kim", "--dsn", told)
    text = everlong(*on, "--thread", "t1").out
    assert text.startswith("#0 user, ")
    assert "Remember that our exports go through Shanghai port only." in text.splitlines()
    lines = [json.loads(line) for line in everlong(*on, "-t", "t1", "--jsonl").out.splitlines()]
    assert [line["message"]["type"] for line in lines] == ["human", "ai"]
    unknown = everlong(*on, "--thread", "t9")
    assert unknown.code == 1
    assert "there is: t1" in unknown.err
    assert unknown.err.count("\n") == 1


def test_consolidation_names_a_model_that_fails_and_leaves_everything(told, openai_server):
    openai_server.fail_next(401, times=3)
    failed = everlong(
        *("consolidate", "--user", "kim", "--dsn", told, "--model", "openai:any"),
        OPENAI_BASE_URL=openai_server.url,
        OPENAI_API_KEY=openai_server.key,
    )
    assert failed.code == 1
    assert "the key was refused" in failed.err
    assert everlong("memory", "show", "--user", "kim", "--dsn", told).code == 1


def test_the_doctor_finds_all_well_and_says_where_each_setting_comes_from(dsn):
    done = everlong(
        *("doctor", "--ask", "--model", "offline", "--dsn", dsn),
        EVERLONG_COMPACTION__TRIGGER_MESSAGES="30",
        EVERLONG_POOL_SIZE="7",
        EVERLONG_MODEL="openai:unused",
    )
    assert done.code == 0, done.out
    assert "All is well." in done.out
    settings = {
        name: (value, source.strip("()"))
        for line in done.out.splitlines()
        if line.startswith("  ") and line.endswith(")")
        for name, value, source in [line.split(maxsplit=2)]
        if source.startswith("(")
    }
    assert settings["model"] == ("offline", "--model")
    assert settings["pool_size"] == ("7", "EVERLONG_POOL_SIZE")
    variable = "EVERLONG_COMPACTION__TRIGGER_MESSAGES"
    assert settings["compaction.trigger_messages"] == ("30", variable)
    assert settings["compaction.keep_messages"] == ("20", "default")
    assert "answers" in done.out
    assert "up to date" in done.out


def test_the_doctor_says_what_is_broken_and_never_a_secret(openai_server):
    done = everlong(
        "doctor",
        *("--dsn", NOWHERE, "--model", "openai:any", "--ask"),
        OPENAI_BASE_URL=openai_server.url.replace("//", f"//me:{SECRET}@"),
        OPENAI_API_KEY=SECRET,
        DATABASE_URL=NOWHERE,
    )
    assert done.code == 1
    assert "postgresql://nobody@127.0.0.1:1/nothing" in done.out
    assert "the key was refused" in done.out
    assert "2 things are broken" in done.out
    assert SECRET not in done.out + done.err


def test_the_doctor_changes_nothing_in_an_empty_database(fresh_dsn):
    for _ in range(2):
        done = everlong("doctor", "--dsn", fresh_dsn)
        assert done.code == 0
        assert "0 of " in done.out


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("EVERLONG_COMPACTION__TRIGGER_MESSAGES", "1", "expected 0 (off) or at least 2; got 1"),
        ("EVERLONG_COMPACTION__TRIGER", "9", "unknown setting ['triger']"),
        ("EVERLONG_COLOUR", "red", "unknown setting ['colour']"),
        ("EVERLONG_POOL_SIZE", "many", "valid integer"),
        ("EVERLONG_TIME_ZONE", "Mars", "IANA time zone"),
    ],
)
def test_a_setting_that_is_refused_is_one_line_with_its_variable(dsn, variable, value, said):
    for words in (("doctor",), ("chat", "-u", "kim", "-t", "t1")):
        done = everlong(*words, "--dsn", dsn, **{variable: value})
        assert done.code == 1
        (line,) = [one for one in (done.out + done.err).splitlines() if said in one]
        assert variable.rpartition("_")[0] in line


def test_a_section_with_a_value_of_its_own_is_one_line_that_names_both_variables(dsn):
    both = {"EVERLONG_COMPACTION": "5", "EVERLONG_COMPACTION__TRIGGER_MESSAGES": "30"}
    for words in (("doctor",), ("chat", "-u", "kim", "-t", "t1")):
        done = everlong(*words, "--dsn", dsn, **both)
        assert done.code == 1
        (line,) = [one for one in (done.out + done.err).splitlines() if "got both" in one]
        assert all(name in line for name in both)


@pytest.mark.parametrize("words", [("chat",), ("transcript",)])
def test_a_thread_id_that_is_too_long_is_one_line(dsn, words):
    done = everlong(*words, "-u", "kim", "-t", "t" * 801, "--dsn", dsn, given="hello\n")
    assert done.code == 1
    assert "at most 800 bytes; got 801" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("chat", "-u", "kim", "-t", "t1"),
        ("memory", "show", "-u", "kim"),
        ("memory", "search", "-u", "kim", "tea"),
        ("memory", "clear-document", "-u", "kim"),
        ("memory", "history", "-u", "kim"),
        ("memory", "diff", "-u", "kim"),
        ("memory", "restore", "-u", "kim", "698b", "--yes"),
        ("memory", "correct", "-u", "kim", "--file", "-"),
        ("memory", "export", "-u", "kim"),
        ("memory", "review", "-u", "kim"),
        ("sweep",),
        ("consolidate", "-u", "kim"),
        ("transcript", "-u", "kim", "-t", "t1"),
        ("transcript", "-u", "kim", "-t", "t1", "--compaction", "698b"),
        ("compactions", "-u", "kim", "-t", "t1"),
        ("compactions", "-u", "kim", "-t", "t1", "698b"),
        ("demo",),
    ],
)
def test_a_database_that_is_not_there_is_one_line_and_no_secret(words):
    done = everlong("--dsn", NOWHERE, *words)
    assert done.code == 1
    assert done.err.startswith(
        "everlong: expected a Postgres at postgresql://nobody@127.0.0.1:1/nothing"
    )
    assert done.err.count("\n") == 1
    assert SECRET not in done.out + done.err


def test_a_dsn_that_cannot_be_read_is_not_repeated():
    done = everlong("memory", "show", "-u", "kim", "--dsn", f"postgres//kim:{SECRET}@host")
    assert done.code == 1
    assert "expected a DSN" in done.err
    assert SECRET not in done.err


def test_debug_shows_the_traceback_and_ends_with_the_line():
    done = everlong("memory", "show", "-u", "kim", "--dsn", NOWHERE, "--debug")
    assert "Traceback (most recent call last)" in done.err
    assert done.err.splitlines()[-1].startswith("everlong: expected a Postgres")


@pytest.mark.parametrize(
    "words",
    [
        ("chat",),
        ("chat", "--user", " ", "--thread", "t"),
        ("memory", "show", "-u", "kim", "--day", "yesterday"),
        ("memory", "show", "-u", "kim", "--day", "2026-03-01", "--list"),
        ("memory", "search", "-u", "kim"),
        ("nothing",),
    ],
)
def test_a_usage_error_ends_with_two(words):
    done = everlong(*words)
    assert done.code == 2
    assert "Error: " in done.err


def test_the_drawing_is_the_graphs_own():
    assert (
        everlong("graph").out.strip() == graph.get_graph().draw_mermaid(with_styles=False).strip()
    )


def test_the_demo_shows_the_same_as_it_gives_as_data(dsn):
    data = json.loads(everlong("demo", "--json", "--dsn", dsn).out)
    assert [one["name"] for one in data] == ["E1", "E2", "E3", "CTX-009"]
    failed = [
        (one["name"], check["what"], check["got"])
        for one in data
        for each in one["rounds"]
        for check in each["checks"]
        if check["got"] != check["expected"]
    ]
    assert failed == []


def test_help_imports_neither_the_graph_nor_a_driver():
    code = (
        "import sys; sys.argv = ['everlong', 'chat', '--help']\n"
        "from everlong.graph.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = ['langgraph', 'langchain_core', 'psycopg', 'openai']\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(  # noqa: S603 - the code above
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
