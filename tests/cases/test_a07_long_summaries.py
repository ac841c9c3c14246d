"""A07: a summary longer than what it replaces, or hardly shorter."""

import re

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from everlong.nodes.tokens import estimate_messages
from everlong.nodes.transcript import is_summary
from given import case
from scripted_model import ScriptedModel

A07 = case("A07")
SHORT, LONG = A07["variants"]


def history(count, tokens_each):
    kinds = (HumanMessage, AIMessage)
    words = "word " * (tokens_each - 12)
    return [kinds[at % 2](f"Part {at}: {words}", id=f"m{at}") for at in range(count)]


def summariser(variant):
    (given,) = variant["summary_model"]
    return ScriptedModel(script=lambda _: given["text"])


async def receipt_of(talk):
    return (await talk.values())["compaction"]


@pytest.mark.parametrize("times", [1, 3])
async def test_1_a_summary_that_is_not_smaller_is_discarded(converse, times):
    summaries = summariser(SHORT)
    talk = converse(
        model=ScriptedModel(script=lambda _: "ok"),
        summary_model=summaries,
        compaction=SHORT["settings"],
    )
    messages = history(6, 45)
    assert 200 < estimate_messages(messages) < 400
    await talk.seed(messages)
    await talk.say("go on")
    for _ in range(times - 1):
        await talk.say("and on")
    left = await talk.messages()
    assert [one.id for one in left[:6]] == [one.id for one in messages]
    assert [one.content for one in left[:6]] == [one.content for one in messages]
    receipt = await receipt_of(talk)
    assert receipt["outcome"] == "refused"
    after, before = map(int, re.findall(r"\d+", receipt["reason"]))
    assert "not smaller" in receipt["reason"]
    assert after > 2_000
    assert before < 400


async def test_1_before_and_after_are_measured_in_the_same_way(converse):
    same = "word " * 300
    talk = converse(
        model=ScriptedModel(script=["ok"]),
        summary_model=ScriptedModel(script=[same * 20]),
        compaction={"trigger_messages": 4, "keep_messages": 1, "trigger_tokens": 0},
    )
    await talk.seed(
        [HumanMessage(same * 10, id="a"), AIMessage(same * 10, id="b"), HumanMessage("go")]
    )
    await talk.say("go on")
    after, before = map(int, re.findall(r"\d+", (await receipt_of(talk))["reason"]))
    assert abs(after - before) < 100


async def test_2_a_gain_that_leaves_the_request_over_its_trigger_is_not_paid_for_again(converse):
    summaries = summariser(LONG)
    talk = converse(
        model=ScriptedModel(script=lambda _: "ok"),
        summary_model=summaries,
        compaction=LONG["settings"] | {"window_tokens": 128_000, "flush_before": False},
    )
    messages = history(30, 2_333)
    assert 65_000 < estimate_messages(messages) < 75_000
    await talk.seed(messages)
    for _ in range(4):
        await talk.say("go on")
    assert len(summaries.requests) == 1
    assert (await receipt_of(talk))["settled"]
    await talk.say("word " * 6_200)
    assert len(summaries.requests) == 2


async def test_2_a_gain_below_the_setting_counts_as_none(converse):
    summaries = summariser(LONG)
    talk = converse(
        model=ScriptedModel(script=lambda _: "ok"),
        summary_model=summaries,
        compaction=LONG["settings"]
        | {"trigger_tokens": 65_000, "window_tokens": 128_000, "min_gain": 0.5},
    )
    await talk.seed(history(30, 2_333))
    for _ in range(3):
        await talk.say("go on")
    assert len(summaries.requests) == 1
    assert (await receipt_of(talk))["settled"]


async def test_3_above_the_window_a_digest_cuts_it_to_its_budget(converse):
    summaries = summariser(LONG)
    talk = converse(
        model=ScriptedModel(script=["ok"]),
        summary_model=summaries,
        compaction=LONG["settings"] | {"window_tokens": 64_000, "flush_before": False},
    )
    await talk.seed(history(30, 2_333))
    assert await talk.say("go on") == "ok"
    receipt = await receipt_of(talk)
    assert (receipt["outcome"], receipt["by"]) == ("done", "digest")
    assert "does not fit" in receipt["reason"]
    assert estimate_messages(talk.last_request) < 12_000
    assert is_summary(talk.last_request[1])
    assert len(summaries.requests) == 1


async def test_3_a_summary_that_fits_the_window_is_taken_however_long(converse):
    talk = converse(
        model=ScriptedModel(script=["ok"]),
        summary_model=ScriptedModel(script=["word " * 20_000]),
        compaction=LONG["settings"] | {"window_tokens": 64_000, "flush_before": False},
    )
    await talk.seed(history(30, 2_333))
    await talk.say("go on")
    assert (await receipt_of(talk))["by"] == "model"
