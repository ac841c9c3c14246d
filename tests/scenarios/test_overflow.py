"""The provider says that the request is too long: compact, ask once more, or say so."""

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everlong.nodes.tokens import estimate_messages
from orders import ROUNDS, SMALL, compacted
from scripted_model import ScriptedModel, asks_for_summary, calling


@pytest.mark.parametrize(
    "error",
    [
        ContextOverflowError("too long"),
        RuntimeError(
            "Error code: 400 - This model's maximum context length is 600 tokens. However, your "
            "messages resulted in 900 tokens."
        ),
    ],
    ids=["typed", "worded"],
)
async def test_an_overflow_is_compacted_and_asked_again_once(converse, error):
    model = ScriptedModel(script=[error, "the answer"])
    talk = converse(
        model=model,
        summary_model=ScriptedModel(script=["They spoke of orders."]),
        compaction={"enabled": False, "keep_messages": 2},
    )
    await talk.seed(ROUNDS)
    assert await talk.say("and now?") == "the answer"
    assert len(model.requests) == 2
    assert (await talk.values())["compaction"]["trigger"] == "overflow"
    assert len(await compacted(talk)) == 1


async def test_a_second_overflow_reaches_the_caller_and_the_question_stays(converse):
    model = ScriptedModel(script=[ContextOverflowError("too long"), ContextOverflowError("again")])
    talk = converse(model=model, summary_model=ScriptedModel(script=["Orders."]), compaction=SMALL)
    await talk.seed(ROUNDS[:4])
    with pytest.raises(ContextOverflowError, match="again"):
        await talk.say("and now?")
    assert (await talk.messages())[-1].text == "and now?"


async def test_overflow_recovery_has_a_switch_of_its_own(converse):
    model = ScriptedModel(script=[ContextOverflowError("too long")])
    talk = converse(model=model, compaction={"overflow_retry": False})
    with pytest.raises(ContextOverflowError):
        await talk.say("and now?")


async def test_a_digest_stands_in_when_nothing_fits_and_no_summary_can_be_had(converse):
    model = ScriptedModel(script=[ContextOverflowError("too long"), "saved"])
    talk = converse(
        model=model,
        summary_model=ScriptedModel(script=[RuntimeError("down")]),
        compaction={"trigger_messages": 0, "keep_messages": 2},
    )
    await talk.seed(ROUNDS)
    assert await talk.say("and now?") == "saved"
    (summary,) = await compacted(talk)
    receipt = (await talk.values())["compaction"]
    assert (receipt["outcome"], receipt["by"]) == ("done", "digest")
    assert "down" not in summary.text
    for number in range(4):
        assert f"PX-{4470 + number}" in summary.text


def refusing(*, above, error):
    """Refuse each request that we estimate to be over so many tokens."""

    def script(messages):
        if asks_for_summary(messages):
            return "They spoke of orders."
        return error if estimate_messages(messages) > above else "saved"

    return ScriptedModel(script=script)


@pytest.mark.parametrize("tokens", [40_000, 60_000, 400_000])
async def test_a_refusal_that_names_no_limit_makes_room_for_a_long_message(converse, tokens):
    error = ContextOverflowError("Input is too long for requested model")
    talk = converse(model=refusing(above=32_000, error=error))
    await talk.seed(ROUNDS)
    assert await talk.say("word " * tokens) == "saved"
    assert len(talk.watcher.requests) == 2


async def test_a_refusal_that_names_no_limit_makes_room_among_many_results(converse):
    calls = calling(*(("fetch", {"n": n}) for n in range(10)), prefix="c").model_copy(
        update={"id": "a"}
    )
    results = [
        ToolMessage("17,204 " * 4_000, tool_call_id=call["id"], name="fetch", id=call["id"])
        for call in calls.tool_calls
    ]
    error = ContextOverflowError("Input is too long for requested model")
    talk = converse(model=refusing(above=64_000, error=error))
    await talk.send({"messages": [HumanMessage("Fetch them.", id="h"), calls, *results]})
    assert (await talk.messages())[-1].text == "saved"


async def test_what_the_provider_counted_goes_before_our_estimate(converse):
    error = ContextOverflowError("prompt is too long: 90000 tokens > 60000 maximum")
    talk = converse(model=refusing(above=25_000, error=error), compaction={"keep_messages": 8})
    parts = [
        kind("word " * 4_500, id=f"{name}{number}")
        for number in range(5)
        for kind, name in ((HumanMessage, "h"), (AIMessage, "a"))
    ]
    await talk.seed(parts)
    assert await talk.say("and now?") == "saved"
    kept = estimate_messages(talk.last_request)
    assert kept < 40_000 * 45_000 // 90_000 + 2_000


async def test_the_limit_that_a_provider_named_holds_for_later_calls(converse):
    error = ContextOverflowError("prompt is too long: 90000 tokens > 60000 maximum")
    talk = converse(model=refusing(above=60_000, error=error))
    await talk.say("word " * 70_000)
    refused = len(talk.watcher.requests)
    await talk.say("word " * 80_000)
    assert len(talk.watcher.requests) == refused + 1
    assert (await talk.values())["compaction"]["trigger"] == "tokens"


async def test_where_nothing_can_be_cut_the_error_reaches_the_caller_and_all_is_kept(converse):
    error = ContextOverflowError("prompt is too long: 90000 tokens > 4000 maximum")
    talk = converse(model=refusing(above=4_000, error=error))
    pinned = HumanMessage("word " * 6_000, id="p", additional_kwargs={"pin": True})
    await talk.seed([pinned, AIMessage("Noted.", id="a")])
    with pytest.raises(ContextOverflowError):
        await talk.say("and now?")
    left = await talk.messages()
    assert next(one for one in left if one.id == "p").content == pinned.content
    assert left[-1].text == "and now?"
    assert "human message p" in (await talk.values())["compaction"]["too_long"]
