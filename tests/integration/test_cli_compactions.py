"""`everlong compactions` and `everlong transcript --compaction`, on a pipe, over real threads."""

import json

import pytest

from cli_process import everlong

SMALL = {
    "EVERLONG_COMPACTION__TRIGGER_MESSAGES": "6",
    "EVERLONG_COMPACTION__KEEP_MESSAGES": "2",
    "EVERLONG_MEMORY__ENABLED": "false",
}
SAID = ("My code word is heron, order PX-4471.", "two", "three", "four", "five", "six")
KIM = ("--user", "kim", "--thread", "t1")


def chat(dsn, *lines, more=(), **environment):
    done = everlong(
        *("chat", *KIM, "--dsn", dsn, *more),
        given="".join(f"{line}\n" for line in lines),
        **(SMALL | environment),
    )
    assert done.code == 0, done.err
    return done


def listed(dsn, *words):
    done = everlong("compactions", *KIM, "--dsn", dsn, "--json", *words)
    assert done.code == 0, done.err
    return json.loads(done.out)


def originals(dsn, ident, *words):
    return everlong("transcript", *KIM, "--dsn", dsn, "--compaction", ident, *words)


@pytest.fixture
def compacted(dsn):
    """A database with a thread of kim's that was compacted twice."""
    chat(dsn, *SAID)
    return dsn


def test_each_attempt_is_a_line_of_a_table_newest_last(compacted):
    done = everlong("compactions", *KIM, "--dsn", compacted)
    head, *lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert head.split()[:5] == ["ID", "WHEN", "TRIGGER", "MESSAGES", "TOKENS"]
    starts = [receipt["at"] for receipt in listed(compacted)]
    assert starts == sorted(starts)
    for line, receipt in zip(lines, listed(compacted), strict=True):
        assert line.startswith(f"{receipt['id']}  {receipt['at']}  messages")
        assert f"{receipt['tokens_before']} → {receipt['tokens_after']}" in line
        assert f"  {receipt['summary_tokens']} tokens  done  " in line
        assert line.endswith(f"{receipt['safe_cut']}: {receipt['cut_reason']}")
        assert "  offline  " in line


def test_one_attempt_is_shown_in_full_and_the_beginning_of_its_id_is_enough(compacted):
    first, _ = listed(compacted)
    done = everlong("compactions", *KIM, "--dsn", compacted, first["id"][:12])
    fields = dict(line.strip().split("  ", 1) for line in done.out.splitlines()[:-1])
    assert fields["id"].strip() == first["id"]
    assert fields["originals"].strip() == "#0 to #4"
    assert fields["message ids"].strip() == ", ".join(first["message_ids"])
    assert done.out.splitlines()[-1].endswith("prints the originals.")
    assert listed(compacted, first["id"]) == first


def test_the_originals_of_a_compaction_are_read_back_word_for_word(compacted):
    first, second = listed(compacted)
    done = originals(compacted, first["id"])
    assert (done.code, done.err) == (0, "")
    assert [line for line in done.out.splitlines() if line and line[0] != "#"] == [
        *(SAID[0], "Confirmed.", SAID[1], "Confirmed.", SAID[2])
    ]
    lines = [
        json.loads(one) for one in originals(compacted, first["id"], "--jsonl").out.split("\n")[:-1]
    ]
    assert [line["message"]["data"]["id"] for line in lines] == first["message_ids"]
    assert [line["number"] for line in lines] == [0, 1, 2, 3, 4]
    again = originals(compacted, second["id"][:10])
    assert SAID[0] not in again.out
    taken_up = f"the summary of compaction {first['id']}, which has originals of its own"
    assert again.err == f"It also took up {taken_up}.\n"


def test_a_result_that_was_moved_away_is_whole_among_the_originals(dsn):
    tools = ("--tools", "integration.cli_tools:TOOLS")
    chat(dsn, 'call big {"characters": 90000}', "two", "three", "four", more=tools)
    receipt = next(one for one in listed(dsn) if one["outcome"] == "done")
    assert "x" * 90_000 in originals(dsn, receipt["id"]).out.splitlines()
    texts = [
        json.loads(line).get("full_text")
        for line in originals(dsn, receipt["id"], "--jsonl").out.splitlines()
    ]
    assert "x" * 90_000 in texts


def test_an_attempt_that_failed_is_listed_with_its_reason_and_has_no_originals(dsn, openai_server):
    openai_server.fail_next(401, times=9)
    chat(
        *(dsn, *SAID[:4]),
        EVERLONG_SUMMARY_MODEL="openai:any",
        OPENAI_BASE_URL=openai_server.url,
        OPENAI_API_KEY=openai_server.key,
    )
    (receipt,) = listed(dsn)
    assert receipt["outcome"] == "failed"
    (line,) = everlong("compactions", *KIM, "--dsn", dsn).out.splitlines()[1:]
    assert f"  failed: {receipt['reason']}" in line
    assert "  7 → 7  " in line
    done = originals(dsn, receipt["id"])
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"everlong: compaction {receipt['id']} replaced no message (failed")
    assert done.err.count("\n") == 1


def test_an_unknown_id_is_one_line_that_lists_the_known_ones(compacted):
    ids = [receipt["id"] for receipt in listed(compacted)]
    for done in (
        everlong("compactions", *KIM, "--dsn", compacted, "nope"),
        originals(compacted, "nope"),
        originals(compacted, ""),
    ):
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("everlong: expected the id of a compaction of thread t1; got ")
        assert done.err.endswith(f"there is: {ids[1]}, {ids[0]}.\n")


@pytest.mark.parametrize("words", [("compactions",), ("transcript", "--compaction", "698b")])
def test_who_has_no_such_thread_is_told_which_there_are(compacted, words):
    stranger = everlong(*words, "--user", "eve", "--thread", "t1", "--dsn", compacted)
    assert (stranger.code, stranger.out) == (1, "")
    assert stranger.err == (
        "everlong: eve has no transcript of a thread 't1'; there is none of any thread.\n"
    )
    unknown = everlong(*words, "--user", "kim", "--thread", "t9", "--dsn", compacted)
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err == "everlong: kim has no transcript of a thread 't9'; there is: t1.\n"


def test_a_thread_that_was_never_compacted_says_so(dsn):
    chat(dsn, "one")
    done = everlong("compactions", *KIM, "--dsn", dsn)
    assert (done.code, done.out) == (0, "")
    assert done.err == "Thread t1 of kim was never compacted.\n"
    assert listed(dsn) == []
    none = originals(dsn, "698b")
    assert (none.code, none.out) == (1, "")
    assert none.err == "everlong: thread t1 of kim was never compacted.\n"
