"""A06: history is never hidden behind a summary that says nothing."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from everlong.nodes.transcript import is_summary
from everlong.stores import compactions
from given import case, messages_of
from scripted_model import ScriptedModel, asks_for_summary

GIVEN = case("A06")
SETTINGS = GIVEN["settings"] | {"flush_before": False}
HISTORY = [
    message
    for number in range(1, 9)
    for message in (
        HumanMessage(f"Fact F{number}: the code is F{number}.", id=f"h{number}"),
        AIMessage(f"I noted F{number}.", id=f"a{number}"),
    )
]
(NEW,) = messages_of(GIVEN["messages"][1:])
EMPTY = [
    AIMessage(step.get("text", step.get("content")))
    for variant in GIVEN["variants"]
    for step in variant["summary_model"]
] + [
    AIMessage([{"type": "text", "text": " "}]),
    AIMessage([{"type": "reasoning", "reasoning": "I should sum up..."}]),
    AIMessage("<think>I should sum up...</think>"),
    AIMessage("", additional_kwargs={"reasoning_content": "I should sum up..."}),
    AIMessage("<summary>\n</summary>"),
]


def refused_history(messages):
    assert messages[:-1] == [*HISTORY, NEW]
    assert messages[-1].text == "ok"


@pytest.mark.parametrize("own_model", [False, True], ids=["the same model", "its own model"])
@pytest.mark.parametrize("empty", EMPTY, ids=lambda answer: str(answer.content)[:40])
async def test_an_empty_summary_leaves_the_history_where_it_is(converse, empty, own_model):
    model = ScriptedModel(script=lambda asked: empty if asks_for_summary(asked) else "ok")
    own = {"summary_model": ScriptedModel(script=lambda _: empty)} if own_model else {}
    talk = converse(model=model, compaction=SETTINGS, **own)
    await talk.seed(HISTORY)
    refused_history(await talk.send({"messages": [NEW]}))
    said = "\n".join(message.text for message in talk.last_request)
    assert all(f"F{number}" in said for number in range(1, 9))
    asked = [*model.requests, *(own["summary_model"].requests if own else [])]
    assert 1 <= sum(map(asks_for_summary, asked)) <= 2
    (entry,) = await compactions.read(talk.store, "kim", talk.thread_id)
    assert (entry["outcome"], entry["reason"]) == ("refused", "empty")


@pytest.mark.parametrize(
    "refusal",
    [
        AIMessage("I'm sorry, I can't help with that."),
        AIMessage("抱歉，我无法协助处理该请求。"),
        AIMessage("", additional_kwargs={"refusal": "No."}),
    ],
    ids=["English", "Chinese", "field"],
)
async def test_a_refusal_is_no_summary_either(converse, refusal):
    summariser = ScriptedModel(script=[refusal])
    talk = converse(
        model=ScriptedModel(script=["ok"]), summary_model=summariser, compaction=SETTINGS
    )
    await talk.seed(HISTORY)
    refused_history(await talk.send({"messages": [NEW]}))
    (entry,) = await compactions.read(talk.store, "kim", talk.thread_id)
    assert (entry["outcome"], entry["reason"]) == ("refused", "a refusal")


@pytest.mark.parametrize(
    "content",
    [
        [
            {"type": "thinking", "thinking": "I should sum up...", "signature": "sig"},
            {"type": "text", "text": "They named F1 to F8."},
        ],
        "<think>I should sum up...</think>They named F1 to F8.",
        "<summary>They named F1 to F8.</summary>",
    ],
    ids=["block", "tag", "wrapped"],
)
async def test_text_beside_thinking_is_taken_and_nothing_else_is_stored(converse, content):
    talk = converse(
        model=ScriptedModel(script=["ok"]),
        summary_model=ScriptedModel(script=[AIMessage(content)]),
        compaction=SETTINGS,
    )
    await talk.seed(HISTORY)
    summary = (await talk.send({"messages": [NEW]}))[0]
    assert is_summary(summary)
    assert isinstance(summary.content, str)
    assert "They named F1 to F8." in summary.text
    everything = str(await talk.values())
    assert "I should sum up" not in everything
    assert "sig" not in str(summary)
