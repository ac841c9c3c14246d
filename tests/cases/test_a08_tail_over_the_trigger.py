"""A08: the tail alone is above the trigger."""

import logging

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from everlong.nodes.transcript import is_summary
from everlong.stores import files
from given import case, messages_of
from scripted_model import ScriptedModel

A08 = case("A08")
SETTINGS = A08["settings"]


def summariser():
    text = A08["summary_model"][0]["text"]
    return ScriptedModel(script=[text], profile={"max_input_tokens": 400_000})


def begin(converse, *, summaries=None, **settings):
    context = {name: settings.pop(name) for name in ("system_prompt",) if name in settings}
    return converse(
        model=ScriptedModel(script=["ok", "ok", "ok"]),
        summary_model=summaries or summariser(),
        compaction=SETTINGS | settings,
        **context,
    )


async def receipt_of(talk):
    return (await talk.values())["compaction"]


@pytest.mark.parametrize("window", [SETTINGS["window_tokens"], 400_000])
@pytest.mark.parametrize("keep", [1, 3, 5])
async def test_1_and_2_the_summary_is_never_summarised_alone_and_at_most_once(
    converse, window, keep
):
    summaries = summariser()
    talk = begin(converse, summaries=summaries, window_tokens=window, keep_messages=keep)
    await talk.seed(messages_of(A08["messages"]))
    for step in A08["steps"]:
        assert await talk.say(step["send"]["human"]) == "ok"
    assert len(talk.watcher.requests) == 3
    assert len(summaries.requests) <= 1
    for request in summaries.requests:
        assert "Part 1" in request[-1].text


async def test_3_a_step_that_changes_nothing_says_no_change(converse):
    talk = begin(converse, window_tokens=400_000)
    await talk.seed(messages_of(A08["messages"]))
    await talk.say("next")
    receipt = await receipt_of(talk)
    assert receipt["outcome"] == "nothing to replace"
    assert "no change" in receipt["reason"]
    assert [one.id for one in await talk.messages()][:5] == ["sum", "h1", "a1", "h2", "a2"]


async def test_3_where_a_cut_changes_nothing_the_next_step_still_runs(converse):
    summary, part, *_ = messages_of(A08["messages"])
    talk = begin(converse, window_tokens=64_000)
    await talk.send({"messages": [summary, part]})
    receipt = await receipt_of(talk)
    assert receipt["outcome"] == "shortened"
    preview = next(one for one in talk.last_request if one.id == "h1")
    path = preview.additional_kwargs["everlong_evicted"]["path"]
    assert await files.read_text(talk.store, "kim", path) == part.content
    assert is_summary(talk.last_request[1])


@pytest.mark.parametrize("window", [0, 128_000])
async def test_4_fixed_parts_above_the_trigger_are_named_once_and_nothing_is_compacted(
    converse, caplog, window
):
    caplog.set_level(logging.WARNING, logger="everlong.compaction")
    talk = begin(
        converse,
        summaries=ScriptedModel(script=[]),
        trigger_tokens=3_000,
        window_tokens=window,
        system_prompt="You help with invoices. " * 1_000,
    )
    greetings = [HumanMessage("Hello " * 900), AIMessage("Hello.")] * 3
    await talk.seed([one.model_copy() for one in greetings])
    await talk.say("next", "next", "next")
    told = [one.getMessage() for one in caplog.records if "fixed parts" in one.getMessage()]
    assert len(told) == 1
    assert "3000" in told[0]
    assert "trigger_tokens" in told[0]
    assert "compaction.started" not in talk.event_types()
    assert len(await talk.messages()) == 12
    assert not (await talk.values()).get("compaction")


async def test_4_fixed_parts_above_the_trigger_leave_the_window_as_the_trigger(converse):
    summaries = summariser()
    talk = begin(
        converse,
        summaries=summaries,
        trigger_tokens=3_000,
        system_prompt="You help with invoices. " * 1_000,
    )
    await talk.seed(messages_of(A08["messages"]))
    await talk.say("next")
    assert len(summaries.requests) == 1
    assert (await receipt_of(talk))["outcome"] == "done"


async def test_4_fixed_parts_above_the_window_are_named_and_reach_the_provider(converse, caplog):
    talk = begin(
        converse,
        summaries=ScriptedModel(script=[]),
        window_tokens=4_000,
        trigger_tokens=0,
        system_prompt="You help with invoices. " * 1_000,
    )
    assert await talk.say("next") == "ok"
    assert "compaction cannot help" in caplog.text
    assert talk.last_request[-1].text == "next"
