"""The summary: where it stands, what it holds, and which one is no summary."""

import pytest
from langchain_core.messages import AIMessage

from orders import ROUNDS, SMALL, answering, compacted
from scripted_model import ScriptedModel, asks_for_summary, calling


async def test_the_summary_is_a_user_message_right_after_the_system_message(converse):
    talk = converse(model=answering(), compaction=SMALL)
    await talk.seed(ROUNDS)
    await talk.say("next")
    system, summary, answer, question = talk.last_request
    assert system.type == "system"
    assert summary.type == "human"
    assert summary.name == "__compaction_summary__"
    assert summary.text.startswith("Here is a summary of the conversation to date:")
    assert (answer.id, question.text) == ("a4", "next")


async def test_identifiers_that_a_summary_drops_are_carried_over_by_code(converse):
    talk = converse(model=answering(summary="They spoke of orders."), compaction=SMALL)
    for number in range(12):
        await talk.say(
            f"Order PX-{4470 + number} costs ${number + 1},250.00 on 2026-03-{number + 10}."
        )
    (summary,) = await compacted(talk)
    for number in range(10):
        assert f"PX-{4470 + number}" in summary.text
        assert f"${number + 1},250.00" in summary.text
        assert f"2026-03-{number + 10}" in summary.text


async def test_the_next_compaction_merges_the_old_summary_and_not_its_frame(converse):
    summaries = answering(summary="PART")
    talk = converse(model=answering(), summary_model=summaries, compaction=SMALL)
    for number in range(8):
        await talk.say(f"message {number}")
    assert len(await compacted(talk)) == 1
    inner = [request[-1].text for request in summaries.requests]
    assert "[earlier summary]\nPART" in inner[-1]
    assert "Here is a summary" not in inner[-1]


async def test_a_summary_by_the_same_model_extends_the_request_that_was_sent_last(converse):
    model = answering()
    talk = converse(model=model, compaction=SMALL)
    await talk.say(*(f"message {number} about PX-{4470 + number}" for number in range(8)))
    for number, request in enumerate(model.requests):
        if asks_for_summary(request):
            before = model.requests[number - 1]
            assert [m.text for m in request[:-1]] == [m.text for m in before[: len(request) - 1]]
            assert model.tools[number] == model.tools[number - 1] != []


async def test_a_summariser_that_calls_a_tool_is_asked_again_in_text(converse):
    def script(messages):
        if not asks_for_summary(messages):
            return "ok"
        rendered = "<conversation>" in messages[-1].text
        return "They spoke of PX-4470." if rendered else calling(("list_files", {}))

    model = ScriptedModel(script=script)
    talk = converse(model=model, compaction=SMALL)
    await talk.seed(ROUNDS)
    await talk.say("next")
    assert sum(map(asks_for_summary, model.requests)) == 2
    assert "They spoke of PX-4470." in (await compacted(talk))[0].text


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "  \n",
        "<summary></summary>",
        "Error: rate limited",
        "word " * 4000,
        AIMessage("cut off in the mid", response_metadata={"finish_reason": "length"}),
        AIMessage("", additional_kwargs={"refusal": "I cannot help with that."}),
        AIMessage([{"type": "thinking", "thinking": "hm", "signature": "sig"}]),
        RuntimeError("401 bad key"),
        60.0,
    ],
    ids=lambda bad: repr(bad)[:30],
)
async def test_no_bad_summary_replaces_history_that_still_fits(converse, bad):
    summaries = ScriptedModel(script=[bad])
    talk = converse(
        model=ScriptedModel(script=["the answer"]),
        summary_model=summaries,
        compaction=SMALL | {"summary_seconds": 0.3},
    )
    await talk.seed(ROUNDS)
    assert await talk.say("and now?") == "the answer"
    messages = await talk.messages()
    assert [message.id for message in messages[:10]] == [message.id for message in ROUNDS]
    assert len(summaries.requests) == 1
    no_answer = isinstance(bad, RuntimeError | float)
    outcome = (await talk.values())["compaction"]["outcome"]
    assert outcome == ("failed" if no_answer else "refused")
    assert not any("401" in message.text for message in messages)


async def test_thinking_beside_a_summary_is_not_stored(converse):
    content = [
        {"type": "thinking", "thinking": "let me see", "signature": "sig"},
        {"type": "text", "text": "They spoke of PX-4470."},
    ]
    talk = converse(
        model=ScriptedModel(script=["ok"]),
        summary_model=ScriptedModel(script=[AIMessage(content)]),
        compaction=SMALL,
    )
    await talk.seed(ROUNDS)
    await talk.say("next")
    (summary,) = await compacted(talk)
    assert "PX-4470" in summary.text
    assert "let me see" not in str(summary.content)
