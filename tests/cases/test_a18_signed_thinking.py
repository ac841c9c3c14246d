"""A18: signed thoughts go back byte for byte in the running turn, or leave as whole steps."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from everlong.nodes.transcript import is_summary
from given import case, messages_of
from scripted_model import ScriptedModel, asks_for_summary

GIVEN = case("A18")
(QUESTION,) = messages_of(GIVEN["messages"][:1])
SETTINGS = GIVEN["settings"] | {"flush_before": False}
SIGNED = "sig-"
SUMMARY = "Steps were made: services one and two were audited."
LONG = "a line of the configuration " * 200


def step(number: int, argument: str = "v") -> AIMessage:
    """An assistant's step: a signed thought, then a call."""
    thought = {
        "type": "thinking",
        "thinking": f"step {number}",
        "signature": f"{SIGNED}{number}" + "x" * 4_000,
    }
    args = {"key": argument}
    use = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": args}
    calls = [{"name": "look", "args": args, "id": f"c{number}", "type": "tool_call"}]
    return AIMessage([thought, use], id=f"a{number}", tool_calls=calls)


def steps(count: int = 6, *, first: int = 1, argument: str = "v") -> list[BaseMessage]:
    """The case's steps, each with its result."""
    made: list[BaseMessage] = []
    for number in range(first, first + count):
        made.append(step(number, argument))
        result = f"service {number} is fine. " + LONG
        made.append(ToolMessage(result, id=f"t{number}", tool_call_id=f"c{number}", name="look"))
    return made


HISTORY = [QUESTION, *steps()]


@tool
def look(key: str) -> str:
    """Look."""
    return f"looked at {key}. " + LONG


def answering(messages: list[BaseMessage]) -> Any:
    return SUMMARY if asks_for_summary(messages) else "All three are fine."


@pytest.fixture(params=["same model", "own model"])
def begin(request, converse):
    def begun(script: Any = answering, **compaction: Any):
        more: dict[str, Any] = {}
        if request.param == "own model":
            more["summary_model"] = ScriptedModel(script=lambda _: SUMMARY)
        return converse(
            model=ScriptedModel(script=script),
            tools=[look],
            max_tool_rounds=40,
            compaction=SETTINGS | compaction,
            **more,
        )

    return begun


def check_thoughts(request: list[BaseMessage], stored: dict[str, Any]) -> None:
    """Each step that is kept is as it was stored, and none has lost its thought."""
    for message in request:
        if isinstance(message, AIMessage) and message.tool_calls:
            assert message.content == stored[str(message.id)]
            kinds = [block["type"] for block in message.content]
            assert kinds == ["thinking", "tool_use"]


ORIGINAL = {str(message.id): message.content for message in HISTORY}


@pytest.mark.parametrize("keep", [1, 4, 7])
async def test_steps_leave_as_a_whole_and_the_question_stays(begin, keep):
    talk = begin(keep_messages=keep)
    await talk.send({"messages": HISTORY})
    sent = talk.context.model.requests[-1]
    check_thoughts(sent, ORIGINAL)
    summary, question, *kept = sent[1:]
    assert is_summary(summary)
    assert (question.id, question.content) == ("h1", QUESTION.content)
    assert kept[0].type == "ai"
    assert [message.id for message in kept] == [m.id for m in HISTORY[-len(kept) :]]
    for message in await talk.messages():
        if message.id in ORIGINAL:
            assert message.content == ORIGINAL[message.id]
    again = begin()
    await again.say("and the fourth?")
    check_thoughts(again.context.model.requests[-1], ORIGINAL)


async def test_a_loop_of_the_models_own_keeps_its_thoughts_as_they_came(begin):
    asked = [step(number) for number in range(1, 15)]
    left = list(asked)

    def script(messages: list[BaseMessage]) -> Any:
        if asks_for_summary(messages):
            return SUMMARY
        return left.pop(0) if left else "All three are fine."

    talk = begin(script)
    await talk.send({"messages": [QUESTION]})
    stored = {str(message.id): message.content for message in asked}
    requests = [r for r in talk.context.model.requests if not asks_for_summary(r)]
    assert len(requests) == 15
    for request in requests:
        check_thoughts(request, stored)
        assert [m.content for m in request if m.id == "h1"] == [QUESTION.content]
    assert any(is_summary(message) for message in requests[-1])


async def test_shortening_of_results_and_arguments_leaves_the_running_turn_signed(begin):
    long = {"argument": LONG * 2}
    history = [
        HumanMessage("Audit the first two.", id="h0"),
        *steps(2, first=20, **long),
        AIMessage("They are fine.", id="a0"),
        QUESTION,
        *steps(5, **long),
    ]
    talk = begin(
        trigger_messages=0,
        trigger_tokens=18_000,
        keep_tokens=10_000,
        truncate_args={"enabled": True, "trigger_messages": 2, "keep_messages": 2},
        prune={"protect_tokens": 2_000, "minimum_tokens": 1_000},
    )
    await talk.send({"messages": history})
    sent = talk.context.model.requests[-1]
    original = {str(message.id): message.content for message in history}
    turn = [m for m in sent if str(m.id) in {f"a{n}" for n in range(1, 6)}]
    assert turn
    check_thoughts(turn, original)
    shortened = [m for m in sent if m.type == "tool" and m.content != original[str(m.id)]]
    assert shortened
    earlier = [m for m in sent if m.id in ("a20", "a21")]
    assert earlier
    assert (await talk.values())["compaction"]["outcome"] == "shortened"
    for message in earlier:
        # What is cut in an earlier turn loses its thought with it, and keeps its call.
        assert [block["type"] for block in message.content] == ["tool_use"]
        assert len(message.content[0]["input"]["key"]) < 1_000
        assert message.content[0]["input"] == message.tool_calls[0]["args"]


async def test_no_signature_and_no_thought_is_in_a_summary_request_in_text(begin):
    talk = begin()
    await talk.send({"messages": HISTORY})
    asked = (talk.context.summary_model or talk.context.model).requests
    (request,) = [r for r in asked if asks_for_summary(r)]
    instruction = request[-1].text
    assert SIGNED not in instruction
    assert "step 1" not in instruction
    if talk.context.summary_model is None:
        # The very messages that were sent come before: the provider asks for them as they were.
        check_thoughts(request[:-1], ORIGINAL)
    else:
        assert len(request) == 1
        assert "[assistant calls look]" in instruction
    (summary,) = [m for m in await talk.messages() if is_summary(m)]
    assert SIGNED not in summary.text


async def test_a_repair_leaves_the_thoughts_beside_what_it_removes(begin):
    asking = step(7)
    blank = {"type": "text", "text": ""}
    broken = asking.model_copy(update={"content": [asking.content[0], blank, asking.content[1]]})
    talk = begin(trigger_messages=100)
    stray = ToolMessage("left over", id="t0", tool_call_id="gone")
    result = ToolMessage("", id="t7", tool_call_id="c7", name="look")
    await talk.send({"messages": [stray, QUESTION, broken, result]})
    sent = talk.context.model.requests[-1]
    assert [message.id for message in sent[1:]] == ["h1", "a7", "t7"]
    assert sent[2].content == asking.content


async def test_a_call_that_the_user_walked_away_from_is_closed_beside_its_thought(begin):
    talk = begin(trigger_messages=100)
    await talk.send({"messages": [QUESTION, step(1), HumanMessage("never mind", id="h2")]})
    sent = talk.context.model.requests[-1]
    assert [message.type for message in sent[1:]] == ["human", "ai", "tool", "human"]
    assert sent[2].content == step(1).content
    assert sent[3].status == "error"
