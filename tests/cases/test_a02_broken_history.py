"""A02: a history that others broke is repaired once, and said so."""

import logging

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everlong.nodes.transcript import is_summary
from given import case, messages_of
from scripted_model import ScriptedModel, asks_for_summary
from strategies import call

GIVEN = case("A02")
MESSAGES = messages_of(GIVEN["messages"])
PLAIN = GIVEN["settings"] | {"flush_before": False}
PLAIN.pop("second_run")


def model():
    def script(messages):
        return GIVEN["summary_model"][0]["text"] if asks_for_summary(messages) else "Done."

    return ScriptedModel(script=script)


def repairs(caplog):
    return [r.getMessage() for r in caplog.records if "Repaired" in r.getMessage()]


@pytest.fixture(params=["sent", "seeded"])
def begin(request, converse):
    """Give the broken history with the new message, or find it in the thread."""

    async def begun(compaction, messages=MESSAGES):
        talk = converse(model=model(), compaction=compaction)
        if request.param == "seeded":
            await talk.seed(messages[:-1])
        await talk.send({"messages": messages[-1:] if request.param == "seeded" else messages})
        return talk

    return begun


async def test_the_thread_goes_on_and_the_log_names_each_repair(begin, caplog):
    caplog.set_level(logging.WARNING)
    talk = await begin(PLAIN)
    sent = talk.last_request[1:]
    assert [message.id for message in sent] == ["h1", "a1", "t1", "h2"]
    assert sent[2].content == "(no output)"
    assert sent[2].tool_call_id == "k1"
    assert (await talk.messages())[-1].text == "Done."
    logged = "\n".join(repairs(caplog))
    assert all(f"{name}" in logged for name in ("t0", "a0", "t1", "a2", "thread-1"))


@pytest.mark.parametrize("trigger", [100, 5])
async def test_a_second_call_repairs_nothing_more(begin, caplog, trigger):
    talk = await begin(PLAIN)
    caplog.set_level(logging.WARNING)
    caplog.clear()
    talk.context = talk.context.model_copy(
        update={
            "compaction": talk.context.compaction.model_copy(
                update={"trigger_messages": trigger, "keep_messages": 3}
            )
        }
    )
    await talk.say("and now?", "and then?")
    assert repairs(caplog) == []
    assert any(map(is_summary, talk.last_request)) is (trigger == 5)


# The cut falls on a run of results of which the first has no call.
MIXED = [
    HumanMessage("Look at both.", id="h1"),
    AIMessage("", id="a1", tool_calls=[call("here")]),
    ToolMessage("stray", id="t0", tool_call_id="missing"),
    ToolMessage("found", id="t1", tool_call_id="here"),
    AIMessage("Looked.", id="a2"),
    HumanMessage("go on", id="h2"),
]


@pytest.mark.parametrize("backend", ["memory"], indirect=True)
@pytest.mark.parametrize("keep", range(1, 6))
@pytest.mark.parametrize("stray_first", [True, False])
async def test_a_cut_on_a_run_with_a_stray_result_keeps_only_pairs(begin, keep, stray_first):
    messages = list(MIXED)
    if not stray_first:
        messages[2], messages[3] = messages[3], messages[2]
    compaction = {"trigger_messages": 5, "keep_messages": keep, "flush_before": False}
    talk = await begin(compaction, messages)
    await talk.say("and more", "and more")
    requests = [r for r in talk.context.model.requests if not asks_for_summary(r)]
    assert len(requests) == 3
    assert not any(message.id == "t0" for request in requests for message in request)
    pairs = {"a1", "t1"}
    for request in requests:
        assert pairs & {message.id for message in request} in (set(), pairs)


async def test_nothing_stray_reaches_a_summary_request_either(begin):
    talk = await begin({"trigger_messages": 5, "keep_messages": 2, "flush_before": False})
    await talk.say("and now?", "and then?")
    asked = [r for r in talk.context.model.requests if asks_for_summary(r)]
    assert asked
    for request in asked:
        assert not any("removed long ago" in message.text for message in request)
