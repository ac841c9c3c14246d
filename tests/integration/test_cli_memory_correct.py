"""`everlong memory correct`: a person's text stands, and nothing is lost on the way."""

import re

import pytest

from cli_process import everlong
from everlong.stores import memory
from everlong.stores.entries import Fact
from remembered import KIM, LATER, add, data, on, seed, shown, versions, with_store


@pytest.fixture
def known(dsn):
    """A database with two versions of kim's MEMORY.md, and the words behind them."""
    with_store(dsn, seed)
    return dsn


def test_a_correction_is_a_version_and_stands_after_the_next_consolidation(dsn, tmp_path):
    said = ("chat", *KIM, "--thread", "t1", "--dsn", dsn)
    everlong(*said, given="Remember that our exports go through Ningbo port only.\n")
    assert "Ningbo" in shown(dsn)
    corrected = tmp_path / "MEMORY.md"
    corrected.write_text(shown(dsn).replace("Ningbo", "Shanghai"), "utf-8")
    done = on(dsn, "correct", "--file", str(corrected), "--by", "lee")
    assert done.code == 0, done.err
    assert "is corrected: version " in done.out
    assert "Shanghai" in shown(dsn)
    newest = data(dsn, "history")[-1]
    assert newest["by"] == "lee"
    everlong(*said, given="Remember that our customer code is ALPHA-7.\n")
    again = everlong("consolidate", *KIM, "--dsn", dsn)
    assert again.code == 0, again.err
    assert "ALPHA-7" in shown(dsn)
    assert "Shanghai" in shown(dsn)
    assert "Ningbo" not in shown(dsn)
    on(dsn, "clear-document")
    everlong("consolidate", *KIM, "--dsn", dsn)
    assert "Shanghai" in shown(dsn)
    assert "Ningbo" not in shown(dsn)
    (day,) = [one for one in on(dsn, "show", "--list").out.split() if one.startswith("memory/")]
    kept = on(dsn, "show", "--day", day.removeprefix("memory/").removesuffix(".md")).out
    assert re.search(r"Ningbo.* \[corrected \d{4}-\d\d-\d\d\]", kept)
    assert "waits for a review" in on(dsn, "review").err


def test_standard_input_corrects_too_and_the_same_text_changes_nothing(known):
    before = versions(known)
    same = on(known, "correct", "--file", "-", given=shown(known) + "\n\n")
    assert (same.code, same.err) == (0, "")
    assert "nothing was changed" in same.out
    assert versions(known) == before
    done = on(known, "correct", "--file", "-", given="# Trade\n\n- Drinks tea\n")
    assert done.code == 0, done.err
    assert shown(known) == "# Trade\n\n- Drinks tea"
    assert data(known, "history")[-1]["by"] == "cli"


def test_what_was_saved_since_is_part_of_what_is_corrected(known):
    with_store(known, lambda store: add(store, Fact("Size 42"), kind="save", instant=LATER))
    assert shown(known).endswith("- Drinks tea\n\n- Size 42")
    text = shown(known).replace("- Size 42", "- Size 43")
    assert on(known, "correct", "--file", "-", given=text).code == 0
    assert shown(known) == text
    assert "Nothing new" in everlong("consolidate", *KIM, "--dsn", known).out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "expected a text; got an empty one"),
        (" \n\n", "expected a text; got an empty one"),
        ("- tea is good\n" * 2_000, "expected at most 4,000 tokens"),
    ],
)
def test_a_text_that_cannot_be_memory_md_is_refused_and_nothing_changes(known, given, said):
    before = shown(known)
    done = on(known, "correct", "--file", "-", given=given)
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert done.err.count("\n") == 1
    assert shown(known) == before
    assert len(versions(known)) == 2


def test_a_correction_of_what_another_run_has_rewritten_is_refused(known):
    one, two = versions(known)
    done = on(known, "correct", "--file", "-", "--base", one, given="- Mine\n")
    assert (done.code, done.out) == (1, "")
    assert f"(it is at version {two}, by consolidation)" in done.err
    assert "nothing was changed" in done.err
    assert done.err.count("\n") == 1
    assert versions(known) == [one, two]
    assert "Mine" not in on(known, "show", "--list").out + shown(known)
    assert with_store(known, lambda store: memory.fresh_entries(store, "kim")) == []
    assert on(known, "correct", "--file", "-", "--base", two[:9], given="- Mine\n").code == 0


@pytest.mark.parametrize("file", ["nothing-here.md", "."])
def test_a_file_that_cannot_be_read_is_one_line(known, file):
    done = on(known, "correct", "--file", file)
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert file in done.err


def test_an_editor_needs_a_terminal(known):
    done = on(known, "correct")
    assert done.code == 1
    assert "--file" in done.err
    assert done.err.count("\n") == 1
