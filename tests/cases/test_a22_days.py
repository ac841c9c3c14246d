"""A22: a fact's day is the user's, counted from the day on which it was said."""

from datetime import datetime

import pytest

from everlong.nodes.relative_days import relative_words
from everlong.stores import ledger, pages
from everlong.stores.entries import render_day
from given import case
from scripted_model import ScriptedModel, kind_of

GIVEN = case("A22")
ZONE = GIVEN["settings"]["user_timezone"]
FIRST, SECOND = GIVEN["steps"]
BACKLOG = SECOND["process_backlog"][0]
ON = {"enabled": True, "consolidate": "on_request"}


def instant(text):
    return datetime.fromisoformat(text)


def flushing(*answers):
    """Give an answer to each flush; an error stays until it is taken away."""
    left = list(answers)

    def script(messages):
        if kind_of(messages) != "flush":
            return "Noted."
        return left[0] if isinstance(left[0], Exception) else left.pop(0)

    return ScriptedModel(script=script), left


@pytest.mark.parametrize(
    "line",
    [
        "- Dentist visit moved to tomorrow [1]",
        "- Dentist visit moved to tomorrow",
        "- Dentist visit moved to 2026-03-10 [1]",
        "- Dentist visit moved to 10 March 2026 [1]",
        "- 牙医改到明天 [1]",
    ],
)
async def test_tomorrow_is_the_day_after_on_the_user_s_clock(converse, line):
    model, _ = flushing(line)
    talk = converse(model=model, memory=ON, time_zone=ZONE, clock=lambda: instant(FIRST["now"]))
    await talk.say(FIRST["human"])
    (entry,) = await ledger.entries(talk.store, "kim")
    (fact,) = entry.facts
    assert "2026-03-10" in fact.text or "10 March 2026" in fact.text
    assert fact.doubt == ""
    assert entry.day == "2026-03-09"
    page = await pages.read_page(talk.store, "kim", "memory/2026-03-09.md")
    assert page == render_day([entry])
    assert "## Memory Flush — 2026-03-09T01:30:00+08:00" in render_day([entry])
    assert relative_words(page) == []
    asked = next(r[-1].text for r in model.requests if kind_of(r) == "flush")
    assert "2026-03-09T01:30:00+08:00" in asked


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("- Signed the lease yesterday [1]", BACKLOG["human"]),
        ("- Signed the lease yesterday", BACKLOG["human"]),
        ("- Signed the lease on 2026-03-01 [1]", BACKLOG["human"]),
        ("- 昨天签了租约 [1]", "我昨天签了租约。"),
    ],
)
async def test_yesterday_counts_from_the_message_not_from_the_day_of_processing(
    converse, line, said
):
    model, left = flushing(RuntimeError("503 overloaded"), line)
    now = [instant(BACKLOG["message_time"])]
    talk = converse(model=model, memory=ON, time_zone=ZONE, clock=lambda: now[0])
    await talk.say(said)
    now[0] = instant(SECOND["now"])
    left.pop(0)
    await talk.say("Hello again.")
    (entry,) = await ledger.entries(talk.store, "kim")
    assert "2026-03-01" in entry.text
    assert entry.facts[0].doubt == ""
    assert entry.day == "2026-03-20"
    asked = [r[-1].text for r in model.requests if kind_of(r) == "flush"][-1]
    assert "[user 1, 2026-03-02]" in asked
    assert "[user 3]\nHello again." in asked


async def test_what_a_compaction_removes_keeps_its_own_day(converse):
    model, left = flushing(RuntimeError("503 overloaded"), "- Signed the lease yesterday [1]")
    now = [instant(BACKLOG["message_time"])]
    talk = converse(
        model=model,
        memory=ON,
        time_zone=ZONE,
        clock=lambda: now[0],
        compaction={"trigger_messages": 5, "keep_messages": 2},
    )
    await talk.say(BACKLOG["human"], "And?")
    now[0] = instant(SECOND["now"])
    left[:1] = []
    left.append("NO_REPLY")
    await talk.say("Hello again.")
    facts = [f for e in await ledger.entries(talk.store, "kim") for f in e.facts]
    assert [(f.text, f.doubt) for f in facts] == [("Signed the lease on 2026-03-01", "")]


async def test_a_day_counted_from_the_day_of_processing_is_doubted(converse):
    line = "- Signed the lease on 2026-03-19 [1]"
    model, left = flushing(RuntimeError("503 overloaded"), line)
    now = [instant(BACKLOG["message_time"])]
    talk = converse(model=model, memory=ON, time_zone=ZONE, clock=lambda: now[0])
    await talk.say(BACKLOG["human"])
    now[0] = instant(SECOND["now"])
    left.pop(0)
    await talk.say("Hello again.")
    (entry,) = await ledger.entries(talk.store, "kim")
    assert entry.facts[0].doubt == "2026-03-19 was never said"


async def test_the_default_clock_is_utc(converse):
    model, _ = flushing("- Dentist visit moved to tomorrow [1]")
    talk = converse(model=model, memory=ON, clock=lambda: instant(FIRST["now"]))
    await talk.say(FIRST["human"])
    (entry,) = await ledger.entries(talk.store, "kim")
    assert (entry.day, entry.facts[0].text) == ("2026-03-08", "Dentist visit moved to 2026-03-09")
    assert "## Memory Flush — 2026-03-08T17:30:00Z" in render_day([entry])


async def test_the_offline_model_counts_from_the_message_too(converse):
    now = [instant(FIRST["now"])]
    talk = converse(model="offline", memory=ON, time_zone=ZONE, clock=lambda: now[0])
    await talk.say(FIRST["human"])
    (entry,) = await ledger.entries(talk.store, "kim")
    assert entry.text == "- I moved my dentist visit to 2026-03-10"


@pytest.mark.parametrize("again", ["tomorrow", "next Tuesday", "明天"])
async def test_the_document_keeps_no_bare_words_either(converse, again):
    def script(messages):
        kind = kind_of(messages)
        if kind == "flush":
            return "- Dentist visit moved to tomorrow [1]\n- Likes tea [1]"
        return f"# Dates\n- Dentist visit {again}\n- Likes tea" if kind == "consolidation" else "ok"

    talk = converse(
        model=ScriptedModel(script=script), memory=ON, clock=lambda: instant(FIRST["now"])
    )
    await talk.say(f"{FIRST['human']} And I like tea.")
    await talk.send({"request": {"consolidate": True}})
    document = await pages.document_text(talk.store, "kim")
    assert relative_words(document) == []
    assert "Likes tea" in document
