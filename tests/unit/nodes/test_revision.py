"""R41, R44, R45: what of a consolidation's answer may stand as MEMORY.md."""

from collections.abc import Sequence

import pytest

from everlong.nodes.remarks import is_remark, without_asides
from everlong.nodes.revision import Revision, revised
from everlong.nodes.tokens import estimate_text
from everlong.stores.entries import Entry, Fact, Kind, Line

OLD = [
    "- Lives in Oslo",
    "- Exports go through Shanghai port only",
    "- Badge number is 5512",
    "- Prefers short answers",
    "- Sister is called Anna",
]
DOCUMENT: list[Line] = [("# Facts", ()), *((line, (f"old#{n}",)) for n, line in enumerate(OLD))]


def entry(*facts: str, kind: Kind = "flush", key: str = "new", day: str = "2026-03-09") -> Entry:
    return Entry(
        key=key,
        kind=kind,
        day=day,
        at=f"{day}T12:00:00Z",
        zone="UTC",
        facts=tuple(Fact(text, ("h",), key=f"{key}#{n}") for n, text in enumerate(facts)),
        sources=("h",),
        thread_id="t",
        promoted=kind == "save",
    )


def revise(
    *lines: str,
    fresh: Sequence[Entry] = (),
    document: Sequence[Line] = DOCUMENT,
    limit: int = 4_000,
) -> Revision:
    return revised("\n".join(lines), document, fresh, limit=limit)


def test_a_good_answer_stands_with_the_origins_of_its_lines() -> None:
    fresh = [entry("moved to Bergen in April")]
    lines = ["# Facts", "- Lives in Bergen (moved in April)", *OLD[1:]]
    revision = revise(*lines, fresh=fresh)
    assert (revision.objection, revision.dropped) == ("", ())
    assert revision.text == "\n".join(lines)
    assert revision.origins["- Lives in Bergen (moved in April)"][0] == "new#0"
    assert revision.origins[OLD[2]] == ("old#2",)


def test_a_line_joined_from_several_has_all_their_origins() -> None:
    line = "- Exports through Shanghai port only, customer code ALPHA"
    revision = revise("# F", line, *OLD[2:], fresh=[entry("customer code ALPHA")])
    assert set(revision.origins[line]) == {"old#1", "new#0"}


@pytest.mark.parametrize(
    "line",
    [
        "- Badge number is 5513",
        "- Exports go through Shanghai port only since 2026-02-13",
        "- Customer code BETA-7",
        "- 出口只走上海港，二十箱起",
    ],
)
def test_a_line_with_what_nobody_said_is_left_out(line: str) -> None:
    revision = revise("# Facts", *OLD, line, fresh=[entry("likes tea")])
    assert line not in revision.text
    ((dropped, why),) = revision.dropped
    assert dropped == line
    assert why.endswith("was never said")


def test_the_day_of_an_entry_may_be_written_beside_its_fact() -> None:
    line = "- Moved to Bergen (2026-03-09)"
    assert line in revise("# Facts", *OLD, line, fresh=[entry("moved to Bergen")]).text


REMARKS = [
    "Here is the updated MEMORY.md:",
    "Sure! The document follows.",
    "Last updated: 2026-03-09",
    "*Consolidated from 3 ledger entries*",
    "- Note: duplicate entries were merged.",
    "This document was rewritten to stay under the limit.",
    "I have merged the entries about Bergen.",
    "(No other changes.)",
    "</document>",
    "以下是更新后的文档：",
    "更新于今天",
    "注：重复条目已合并",
    "本文档根据账本整理",
]


@pytest.mark.parametrize("line", REMARKS)
def test_a_remark_about_the_document_is_left_out(line: str) -> None:
    assert is_remark(line)
    revision = revise(line, "# Facts", *OLD, fresh=[entry("likes tea")])
    assert revision.text == "\n".join(["# Facts", *OLD])


@pytest.mark.parametrize(
    "line",
    [
        *OLD,
        "- Wants documents updated weekly",
        "- The contract document was signed by Anna",
        "- Note the port: Shanghai",
        "- 每周更新报价单",
        "- Updates go to Anna",
        "## Preferences",
    ],
)
def test_a_fact_is_no_remark(line: str) -> None:
    assert not is_remark(line)


def test_what_reads_as_a_remark_but_was_said_stays() -> None:
    said = "This document was approved by Anna"
    line = f"- {said}"
    assert is_remark(line)
    assert line in revise("# Facts", *OLD, line, fresh=[entry(said)]).text


def test_an_aside_on_how_a_line_was_made_goes() -> None:
    assert without_asides("- Lives in Bergen (merged from two entries)") == "- Lives in Bergen"
    assert without_asides("- Lives in Bergen (since April)") == "- Lives in Bergen (since April)"


def test_a_fence_around_the_document_goes() -> None:
    assert revise("```markdown", "# Facts", *OLD, "```", fresh=[entry("x y")]).text.startswith(
        "# F"
    )


@pytest.mark.parametrize("lines", [[], ["# Facts"], ["", "---"], ["# Facts", "- Badge is 99999"]])
def test_an_answer_without_a_fact_is_refused(lines: list[str]) -> None:
    assert revise(*lines, fresh=[entry("likes tea")]).objection == "no fact is left in it"


def test_an_answer_that_drops_most_facts_is_refused() -> None:
    revision = revise("# Facts", OLD[0], "- likes tea", fresh=[entry("likes tea")])
    assert revision.objection == "it drops 4 of 5 facts that no entry contradicts"
    assert not revise("# Facts", *OLD[:3], "- likes tea", fresh=[entry("likes tea")]).objection


def test_what_newer_facts_contradict_may_go() -> None:
    fresh = [
        entry("moved to Bergen", "Exports go through Ningbo port only", "badge number is 7781")
    ]
    lines = ["- Lives in Bergen", "- Exports: Ningbo port only", "- Badge number 7781", *OLD[3:]]
    assert not revise("# Facts", *lines, fresh=fresh).objection


def test_the_same_facts_in_other_words_are_not_lost() -> None:
    lines = [
        "## Home",
        "Oslo is where they live.",
        "## Trade",
        "Port of exports: Shanghai, no other.",
        "Badge 5512; answers should be short. Anna is the sister.",
    ]
    assert not revise(*lines, fresh=[entry("likes tea")]).objection


def test_with_no_room_for_all_what_is_dropped_for_it_is_no_loss() -> None:
    document: list[Line] = [(f"- Likes book {n} of shelf {n}", (f"old#{n}",)) for n in range(60)]
    fresh = [entry(*(f"Likes film {n} of hall {n}" for n in range(60)))]
    answer = [
        *(line for line, _ in document[:8]),
        *(f"- Likes film {n} of hall {n}" for n in range(20)),
    ]
    assert not revise(*answer, fresh=fresh, document=document, limit=150).objection
    assert revise(*answer, fresh=fresh, document=document).objection


def test_what_was_saved_is_put_back() -> None:
    fresh = [entry("Never mail the client", kind="save"), entry("likes tea", key="newer")]
    revision = revise("# Facts", *OLD, fresh=fresh)
    assert revision.text.endswith("\n\n- Never mail the client")
    assert revision.kept_saved == 1
    assert revision.origins["- Never mail the client"] == ("new#0",)


def test_a_save_that_a_later_fact_replaces_is_not_put_back() -> None:
    fresh = [entry("lives in Turku", kind="save"), entry("moved to Bergen", key="newer")]
    lines = ["# Facts", "- Lives in Bergen", *OLD[1:]]
    assert revise(*lines, fresh=fresh).text == "\n".join(lines)


@pytest.mark.parametrize("limit", [60, 120, 300])
def test_over_the_limit_the_oldest_go_first_and_what_was_saved_last(limit: int) -> None:
    days = [entry(f"Likes book {n} of shelf {n}", key=f"2026-{n:03d}") for n in range(80)]
    saved = entry("Never mail the client", kind="save", key="2025-000")
    answer = ["# Facts", "- Never mail the client", *(f"- {e.facts[0].text}" for e in days)]
    text = revise(*answer, fresh=[saved, *days], document=[], limit=limit).text
    assert estimate_text(text) <= limit
    assert "Never mail the client" in text
    assert "book 79" in text
    assert "book 0 " not in text


def test_a_line_that_has_no_room_even_alone_takes_none_with_it() -> None:
    long = " and ".join(f"tea number {n} of shelf {n}" for n in range(90))
    fresh = [entry(f"Likes {long}", kind="save")]
    kept = revise("- Drinks coffee", document=[("- Drinks coffee", ("old#0",))], fresh=fresh)
    assert "- Likes" in kept.text
    bounded = revise(
        "- Drinks coffee", document=[("- Drinks coffee", ("old#0",))], fresh=fresh, limit=100
    )
    assert (bounded.objection, bounded.text) == ("", "- Drinks coffee")


def test_an_answer_of_which_nothing_fits_is_refused() -> None:
    joined = "- Drinks coffee, " + " and ".join(f"likes film {n}" for n in range(200))
    document = [("- Drinks coffee", ("old#0",))]
    fresh = [entry(f"likes film {n}", key=f"2026-{n:03d}") for n in range(200)]
    assert "fits the limit" in revise(joined, document=document, fresh=fresh, limit=100).objection


def test_a_heading_over_nothing_goes() -> None:
    document: list[Line] = []
    answer = ["# A", "", "## B", "", "## C", "", "- likes tea", "", "# D"]
    assert (
        revise(*answer, document=document, fresh=[entry("likes tea")]).text
        == "# A\n\n## C\n\n- likes tea"
    )
