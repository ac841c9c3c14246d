"""`everlong memory history`, `diff`, `restore`: every version can be seen and comes back."""

import pytest

from cli_process import everlong, in_terminal
from remembered import (
    KIM,
    LATER,
    NOON,
    SHANGHAI,
    data,
    on,
    seed,
    shown,
    versions,
    with_store,
    write,
)


@pytest.fixture
def known(dsn):
    """A database with two versions of kim's MEMORY.md, and the words behind them."""
    with_store(dsn, seed)
    return dsn


def test_the_history_says_when_by_whom_from_what_and_how_long(known):
    done = on(known, "history")
    head, first, second = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert head.split() == ["ID", "WHEN", "BY", "SIZE", "STATE", "FROM"]
    one, two = versions(known)
    assert first.split()[:3] == [one, NOON, "consolidation"]
    assert "3 lines, " in first
    assert first.endswith("earlier   1 entry, 2026-03-08")
    assert second.startswith(f"{two}  {LATER}")
    assert second.endswith("in force  1 entry, 2026-03-09")
    found = data(known, "history")
    assert [entry["in_force"] for entry in found] == [False, True]
    assert found[1]["text"].endswith("- Drinks tea")
    assert len(found[1]["entries"]) == 1


def test_a_diff_is_of_the_last_change_or_of_any_two_versions(known):
    one, two = versions(known)
    done = on(known, "diff")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == f"--- {one}, {NOON}, by consolidation"
    assert lines[1] == f"+++ {two}, {LATER}, by consolidation"
    assert "+- Drinks tea" in lines
    assert not any(line.startswith("-") for line in lines[2:])
    assert on(known, "diff", one[:6]).out == done.out
    back = on(known, "diff", two, one).out.splitlines()
    assert "-- Drinks tea" in back
    same = on(known, "diff", two, two)
    assert (same.code, same.out) == (0, "")
    assert "say the same" in same.err


def test_the_first_version_is_compared_with_nothing(dsn):
    with_store(dsn, lambda store: write(store, "- Tea"))
    assert "+- Tea" in on(dsn, "diff").out.splitlines()
    assert on(dsn, "diff").out.startswith("--- (nothing)\n")


@pytest.mark.parametrize(
    "words", [("diff", "nope"), ("diff", "nope", "nope"), ("restore", "nope", "--yes")]
)
def test_an_unknown_version_is_one_line_that_lists_the_known_ones(known, words):
    one, two = versions(known)
    done = on(known, *words)
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith(
        f"expected a version of MEMORY.md of kim; got 'nope'; there is: {two}, {one}.\n"
    )
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("words", [("history",), ("diff",), ("restore", "x", "--yes")])
def test_who_has_no_memory_md_is_told_so(known, words):
    command, *rest = words
    done = everlong("memory", command, "--user", "eve", "--dsn", known, *rest)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("everlong: MEMORY.md of eve was never written; ")
    assert done.err.count("\n") == 1


def test_a_restored_version_is_a_new_one_and_what_it_lacks_is_taken_up_again(known):
    one, _ = versions(known)
    refused = on(known, "restore", one)
    assert (refused.code, refused.out) == (1, "Nothing was changed.\n")
    assert "expected --yes" in refused.err
    assert len(versions(known)) == 2
    done = on(known, "restore", one[:8], "--yes", "--by", "ops")
    assert done.code == 0, done.err
    assert "takes up 1 ledger entry anew" in done.out
    assert shown(known) == f"# Trade\n\n- {SHANGHAI}"
    newest = data(known, "history")[-1]
    assert (newest["by"], newest["in_force"]) == ("ops", True)
    assert "nothing was changed" in on(known, "restore", newest["version"], "--yes").out
    assert "from 1 ledger entry" in everlong("consolidate", *KIM, "--dsn", known).out


def test_a_person_at_a_terminal_is_asked_and_may_edit(known, tmp_path):
    one, two = versions(known)
    with in_terminal("memory", "restore", one, *KIM, "--dsn", known) as terminal:
        terminal.await_text("[y/N]")
        terminal.type("\r")
        assert terminal.await_end() == 1
        assert "Nothing was changed." in terminal.text
    assert versions(known) == [one, two]
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/Drinks tea/Drinks coffee/" "$1"\n', "utf-8")
    editor.chmod(0o755)
    words = ("memory", "correct", *KIM, "--dsn", known)
    with in_terminal(*words, EDITOR=str(editor), VISUAL="") as terminal:
        assert terminal.await_end() == 0
        assert "is corrected" in terminal.text
    assert shown(known).endswith("- Drinks coffee")
    with in_terminal(*words, EDITOR="true", VISUAL="") as terminal:
        assert terminal.await_end() == 0
        assert "nothing was changed" in terminal.text
    editor.write_text('#!/bin/sh\n: > "$1"\n', "utf-8")
    with in_terminal(*words, EDITOR=str(editor), VISUAL="") as terminal:
        assert terminal.await_end() == 1
        assert "got an empty one" in terminal.text
