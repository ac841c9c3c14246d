"""`everlong memory` and `everlong sweep`: read, export, review, and let go of what is old."""

import json

import pytest
from rich.cells import cell_len

from cli_process import everlong, in_terminal
from everlong.stores import ledger, ledger_archive
from everlong.stores.entries import Fact
from remembered import (
    ASKED,
    KIM,
    LATER,
    NOON,
    SHANGHAI,
    add,
    data,
    on,
    seed,
    shown,
    versions,
    with_store,
)


@pytest.fixture
def known(dsn):
    """A database with two versions of kim's MEMORY.md, and the words behind them."""
    with_store(dsn, seed)
    return dsn


@pytest.fixture
def doubted(known):
    """The same, with two facts that could not be verified."""

    async def work(store):
        await add(store, Fact("Due on 2026-02-13", ("m0",), "2026-02-13 is in no message"))
        await add(store, Fact("Order PX-9", ("m1",), "PX-9 is in no message"), instant=LATER)

    with_store(known, work)
    return known


def test_a_fact_outlives_its_session_and_its_document_on_the_command_line(dsn):
    """E2: told in one session, found in the document, then in the ledger, then saved again."""
    never = {"EVERLONG_MEMORY__CONSOLIDATE": "on_request"}

    def say(thread, line):
        done = everlong("chat", *KIM, "-t", thread, "--dsn", dsn, given=f"{line}\n", **never)
        assert done.code == 0, done.err
        return done.out

    told = say("s1", f"Don't call any tool, just confirm: our {SHANGHAI[0].lower()}{SHANGHAI[1:]}.")
    assert "→" not in told
    assert on(dsn, "show").code == 1
    (page,) = data(dsn, "show", "--list")
    assert "from 1 ledger entry" in everlong("consolidate", *KIM, "--dsn", dsn).out
    assert "Shanghai port only, customer code ALPHA" in shown(dsn)
    asked = "Which port do our exports use, and what is the customer code?"
    answer = say("s2", asked)
    assert all(one in answer for one in ("Shanghai", "ALPHA", "Source: MEMORY.md"))
    assert on(dsn, "clear-document").code == 0
    assert on(dsn, "show").code == 1
    answer = say("s3", asked)
    assert all(one in answer for one in ("Shanghai", "ALPHA", f"Source: {page['path']}"))
    say("s3", f'Restore the document: call memory_save {{"content": "{SHANGHAI}."}}')
    assert "Shanghai port only, customer code ALPHA" in shown(dsn)


def test_an_export_holds_everything_and_its_document_comes_back(known, tmp_path):
    with_store(known, lambda store: add(store, Fact("Due 2026-02-13", ("m0",), "never said")))
    done = on(known, "export")
    assert (done.code, done.err) == (0, "")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["type"] for line in lines] == [
        *("document", "version", "version", "entry", "entry", "entry", "unverified")
    ]
    assert lines[0]["text"] == shown(known)
    assert lines[-1]["doubt"] == "never said"
    assert lines[3]["facts"][0]["sources"] == ["m0"]
    on(known, "clear-document")
    assert on(known, "correct", "--file", "-", given=lines[0]["text"]).code == 0
    assert shown(known) == lines[0]["text"]
    file = tmp_path / "kim.jsonl"
    written = on(known, "export", "--out", str(file))
    assert (written.code, written.out) == (0, "")
    assert len(file.read_text("utf-8").splitlines()) >= len(lines)


def test_an_export_as_markdown_reads_as_memory_does(known, tmp_path):
    folder = tmp_path / "kim"
    done = on(known, "export", "--markdown", "--out", str(folder))
    assert (done.code, done.out) == (0, "")
    assert (folder / "MEMORY.md").read_text("utf-8").rstrip() == shown(known)
    day = folder / "memory" / "2026-03-08.md"
    assert day.read_text("utf-8").rstrip() == on(known, "show", "--day", "2026-03-08").out.rstrip()
    assert len(list((folder / "versions").iterdir())) == 2
    again = on(known, "export", "--markdown", "--out", str(folder))
    assert (again.code, again.out) == (1, "")
    assert "not empty" in again.err
    assert on(known, "export", "--markdown").code == 2
    nowhere = on(known, "export", "--out", str(tmp_path / "no" / "kim.jsonl"))
    assert nowhere.code == 1
    assert nowhere.err.count("\n") == 1


def test_nothing_is_exported_of_a_stranger(known):
    done = everlong("memory", "export", "--user", "eve", "--dsn", known)
    assert (done.code, done.out) == (1, "")
    assert done.err == "everlong: nothing is remembered about eve yet; nothing was written.\n"


def test_the_sources_of_each_line_go_down_to_what_was_said(known):
    lines = on(known, "show", "--sources").out.splitlines()
    at = lines.index(f"- {SHANGHAI}")
    assert lines[at + 1] == "    Source: memory/2026-03-08.md#3"
    assert lines[at + 2] == f"    Source: sessions/t1#0 [user, {NOON}] {ASKED}"
    found = data(known, "show", "--sources")
    assert found["path"] == "MEMORY.md"
    (origin,) = found["lines"][2]["sources"]
    assert (origin["source"], origin["said"][0]["text"]) == ("memory/2026-03-08.md#3", ASKED)
    assert "sources" not in data(known, "show")["lines"][2]
    day = on(known, "show", "--sources", "--day", "2026-03-09").out.splitlines()
    assert day[3] == f"    Source: sessions/t1#1 [user, {NOON}] Tea, not coffee."


def test_the_search_and_the_list_are_data_too(known):
    assert {one["source"] for one in json.loads(on(known, "search", "tea", "--json").out)} == {
        *("MEMORY.md#7", "memory/2026-03-09.md#3")
    }
    assert [one["path"] for one in json.loads(on(known, "show", "--list", "--json").out)] == [
        *("MEMORY.md", "memory/2026-03-09.md", "memory/2026-03-08.md")
    ]


def test_a_review_shows_the_doubt_and_the_words_and_a_verdict_settles_it(doubted):
    done = on(doubted, "review")
    assert (done.code, done.err) == (0, "")
    first, second = data(doubted, "review")
    lines = done.out.splitlines()
    assert lines[0] == f"{first['id']}  Due on 2026-02-13"
    assert lines[1] == "    doubt: 2026-02-13 is in no message"
    assert lines[3] == f"    Source: sessions/t1#0 [user, {NOON}] {ASKED}"
    assert "2026-02-13" not in shown(doubted)

    kept = on(doubted, "review", "confirm", first["id"][:8])
    assert kept.code == 0, kept.err
    assert shown(doubted).endswith("- Due on 2026-02-13")
    gone = on(doubted, "review", "reject", second["key"])
    assert gone.out == "Rejected: Order PX-9\n"
    assert data(doubted, "review") == []
    assert on(doubted, "review").err == "Nothing of kim waits for a review.\n"
    assert "PX-9" not in on(doubted, "show", "--day", "2026-03-09").out


def test_a_verdict_on_an_unknown_fact_is_one_line(doubted):
    ids = [one["id"] for one in data(doubted, "review")]
    done = on(doubted, "review", "confirm", "nope")
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith(f"got 'nope'; there is: {ids[0]}, {ids[1]}.\n")
    assert on(doubted, "review", "confirm").code == 2
    assert on(doubted, "review", "perhaps", ids[0]).code == 2


def test_sixty_columns_hold_everything(doubted):
    one = versions(doubted)[0]
    for words, there in (
        (("history",), "in force"),
        (("diff", one), "+- Drinks tea"),
        (("show", "--sources"), "sessions/t1#0"),
        (("review",), "doubt"),
    ):
        name, *rest = words
        with in_terminal("memory", name, *KIM, "--dsn", doubted, *rest, columns=60) as terminal:
            assert terminal.await_end() == 0
            text = terminal.text
        assert there in text
        assert [line for line in text.splitlines() if cell_len(line) > 60] == []


def test_a_sweep_lets_go_of_what_is_old_and_needs_no_run(known):
    short = {"EVERLONG_MEMORY__LEDGER_DAYS": "1", "EVERLONG_TRANSCRIPT_DAYS": "1"}
    never = {"EVERLONG_MEMORY__LEDGER_DAYS": "0", "EVERLONG_TRANSCRIPT_DAYS": "0"}
    kept = everlong("sweep", "--dsn", known, **never).out
    assert "no ledger entries moved to the archive (0 days: kept for good)" in kept
    assert "no messages removed from transcripts (0 days: kept for good)" in kept
    done = everlong("sweep", "--user", "kim", "--dsn", known, **short)
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "1 user: 2 ledger entries moved to the archive (after 1 day), "
        "2 messages removed from transcripts (after 1 day).\n"
    )
    assert with_store(known, lambda store: ledger.entries(store, "kim")) == []
    assert len(with_store(known, lambda store: ledger_archive.entries(store, "kim"))) == 2
    assert on(known, "show", "--day", "2026-03-08").code == 0
    assert on(known, "search", "Shanghai").out.count("Source: ") == 2
    assert "no longer" in on(known, "show", "--sources").out
    many = {"EVERLONG_TRANSCRIPT_MESSAGES": "1000"}
    told = everlong("sweep", "--dsn", known, **short, **many).out
    assert "transcripts (after 1 day, or all but the newest 1,000 of a thread)" in told
    told = everlong("sweep", "--dsn", known, **never, **many).out
    assert "0 messages removed from transcripts (all but the newest 1,000 of a thread)" in told
    again = everlong("sweep", "--dsn", known, **short)
    assert again.out.startswith("1 user: 0 ledger entries")


def test_a_sweep_leaves_what_a_threads_history_stands_on(dsn):
    everlong("chat", *KIM, "--thread", "t1", "--dsn", dsn, given="one\ntwo\n")

    async def age(store):
        place = ("users", "kim", "transcripts", "t1")
        for item in await store.asearch(place, limit=100):
            await store.aput(place, item.key, item.value | {"at": "2020-01-01T00:00:00Z"})

    with_store(dsn, age)
    done = everlong("sweep", "--dsn", dsn)
    assert "0 messages removed" in done.out
    assert everlong("transcript", *KIM, "--thread", "t1", "--dsn", dsn).out.startswith("#0 user")
