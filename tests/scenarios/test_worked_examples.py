"""E1 and E3 of docs/behaviour.md, with scripted models, on both backends."""

import logging

from everlong.graph.demo_examples import FINISHED_LIST
from everlong.nodes.transcript import is_summary
from everlong.stores import transcripts
from scripted_model import ScriptedModel


async def test_e1_the_plain_cut_moves_back_to_the_call(converse, caplog):
    caplog.set_level(logging.INFO, logger="everlong.compaction")
    model = ScriptedModel(script=["Oslo 1240, Bergen 310; Narvik was asked for."])
    talk = converse(
        model=model,
        compaction={"trigger_messages": 6, "keep_messages": 2, "keep_tokens": 0},
    )
    after = await talk.send({"messages": list(FINISHED_LIST), "request": {"compact": True}})
    assert [message.type for message in after] == ["human", "ai", "tool", "ai"]
    assert is_summary(after[0])
    assert [message.id for message in after[1:]] == ["a3", "t3", "a4"]
    receipt = (await talk.values())["compaction"]
    assert (receipt["plain_cut"], receipt["safe_cut"]) == (7, 6)
    lines = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
    tokens = receipt["tokens_before"]
    assert lines == [
        f"Compaction triggered: total=9 msgs / {tokens} tokens, cutoff=6, keeping=3 msgs",
        "Compaction complete: 9 msgs → 1 summary + 3 tail = 4 total",
        "Compacted to 4 messages before reasoning",
    ]


async def test_e3_five_plain_rounds_compact_in_the_third_fourth_and_fifth(converse, caplog):
    caplog.set_level(logging.INFO, logger="everlong.compaction")
    answers = ScriptedModel(
        script=["Confirmed.", "夜莺", "莺夜", "夜莺; the sentence is gone", "夜莺"]
    )
    summaries = ScriptedModel(script=["The code word is 夜莺."] * 3)
    talk = converse(
        model=answers,
        summary_model=summaries,
        compaction={"trigger_messages": 5, "keep_messages": 2, "keep_tokens": 0},
    )
    first = "Remember the code word “夜莺”, only confirm."
    stored = []
    for text in (first, "What is it?", "Say it backwards.", "What was it?", "Again."):
        await talk.say(text)
        stored.append(len(await talk.messages()))
    assert stored == [2, 4, 4, 4, 4]
    assert [len(request) - 1 for request in talk.watcher.requests] == [1, 3, 3, 3, 3]
    triggered = [m for r in caplog.records if "triggered" in (m := r.getMessage())]
    assert len(triggered) == 3
    assert all("cutoff=3, keeping=2 msgs" in line for line in triggered)
    fourth = "\n".join(message.text for message in talk.watcher.requests[3])
    assert "夜莺" in fourth
    assert first not in fourth
    entries = await transcripts.read(talk.store, "kim", "thread-1")
    assert [entry.role for entry in entries] == ["human", "ai"] * 5
    assert entries[0].text == first
