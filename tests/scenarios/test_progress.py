"""No attempt follows one that came to nothing, until the history has grown (R22)."""

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from everlong.nodes.tokens import estimate_messages
from orders import ROUNDS, SMALL
from scripted_model import ScriptedModel, calling

BAD = ["", RuntimeError("401 bad key"), "word " * 4_000]
BY_TOKENS = {"trigger_messages": 0, "trigger_tokens": 2_000, "keep_messages": 2}


def kind(bad):
    return type(bad).__name__ if isinstance(bad, Exception) else f"{len(bad)} characters"


def looping(rounds, *, overflow_at=0):
    """Call a tool so many times, then answer; refuse one request, counted from 1, as too long."""
    asked = []

    def script(messages):
        asked.append(len(messages))
        if len(asked) == overflow_at:
            return ContextOverflowError("too long")
        call = calling(("list_files", {"prefix": "p"}), prefix=f"c{len(asked)}")
        return call if len(asked) <= rounds else "done"

    return ScriptedModel(script=script)


@tool
def pages(number: int, words: int) -> str:
    """Read a page."""
    return f"Page {number} of order PX-{9_000 + number}. " + "word " * words


def reading(rounds, *, words):
    """Read so many pages, one after the other, then answer."""
    return ScriptedModel(
        script=[
            *(
                calling(("pages", {"number": at, "words": words}), prefix=f"p{at}")
                for at in range(rounds)
            ),
            "done",
        ]
    )


def summarising(answer):
    return ScriptedModel(script=lambda _: answer)


@pytest.mark.parametrize("bad", BAD, ids=kind)
async def test_a_failed_attempt_is_not_repeated_in_the_same_call(converse, bad):
    summaries = summarising(bad)
    talk = converse(model=looping(4), summary_model=summaries, compaction=SMALL)
    await talk.seed(ROUNDS)
    assert await talk.say("look") == "done"
    assert len(summaries.requests) == 1


@pytest.mark.parametrize("bad", BAD, ids=kind)
async def test_it_is_repeated_in_the_same_call_on_overflow(converse, bad):
    summaries = summarising(bad)
    model = looping(4, overflow_at=3)
    talk = converse(model=model, summary_model=summaries, compaction=SMALL)
    await talk.seed(ROUNDS)
    assert await talk.say("look") == "done"
    assert len(summaries.requests) == 2
    assert (await talk.values())["compaction"]["trigger"] == "overflow"


async def test_a_call_that_outgrows_the_window_afterwards_is_not_sent_to_be_refused(converse):
    """What a failed attempt left in place gives way to a digest; the model is not asked again."""
    summaries = summarising(RuntimeError("401 bad key"))
    model = reading(8, words=700)
    talk = converse(
        model=model,
        summary_model=summaries,
        tools=[pages],
        compaction=SMALL | {"window_tokens": 6_000, "reserve_tokens": 1_000},
    )
    await talk.seed(ROUNDS)
    assert await talk.say("read it all") == "done"
    assert len(summaries.requests) == 1
    assert all(estimate_messages(request) < 6_000 for request in model.requests)
    assert any(event.get("by") == "digest" for event in talk.events)


async def test_successful_ones_repeat_between_tool_rounds(converse):
    summaries = summarising("They looked through the folders.")
    talk = converse(model=looping(9), summary_model=summaries, compaction=SMALL)
    await talk.seed(ROUNDS)
    model = talk.context.model
    assert await talk.say("look") == "done"
    assert 2 <= len(summaries.requests) <= 9
    assert all(len(request) <= 8 for request in model.requests)


@pytest.mark.parametrize("bad", BAD, ids=kind)
async def test_later_calls_wait_for_growth_by_a_tenth_of_the_message_trigger(converse, bad):
    summaries = summarising(bad)
    talk = converse(
        model=ScriptedModel(script=lambda _: "ok"),
        summary_model=summaries,
        compaction={"trigger_messages": 40, "keep_messages": 10},
    )
    await talk.seed(
        [
            (HumanMessage, AIMessage)[at % 2](f"Message {at} of order PX-{4470 + at}", id=f"m{at}")
            for at in range(40)
        ]
    )
    tried = []
    for _ in range(5):
        await talk.say("and?")
        tried.append(len(summaries.requests))
    assert tried == [1, 1, 2, 2, 3]  # at 41, 45 and 49 messages: each four more than the last


@pytest.mark.parametrize("bad", BAD[:2], ids=kind)
async def test_later_calls_wait_for_growth_by_a_tenth_of_the_token_trigger(converse, bad):
    summaries = summarising(bad)
    talk = converse(
        model=ScriptedModel(script=lambda _: "ok"), summary_model=summaries, compaction=BY_TOKENS
    )
    await talk.seed([HumanMessage("word " * 2_100, id="h"), AIMessage("ok", id="a")])
    tried = []
    for size in (1, 150, 1, 150, 1):
        await talk.say("word " * size)
        tried.append(len(summaries.requests))
    assert tried == [1, 1, 1, 2, 2]


async def test_many_short_messages_do_not_renew_an_attempt_that_tokens_triggered(converse):
    summaries = summarising("")
    talk = converse(
        model=ScriptedModel(script=lambda _: "ok"),
        summary_model=summaries,
        compaction=BY_TOKENS | {"trigger_messages": 30},
    )
    await talk.seed([HumanMessage("word " * 2_100, id="h"), AIMessage("ok", id="a")])
    await talk.say(*["."] * 8)
    assert len(summaries.requests) == 1


async def test_a_corrected_token_count_is_no_growth(converse):
    def script(messages):
        usage = {"input_tokens": 9_000, "output_tokens": 1, "total_tokens": 9_001}
        return AIMessage("ok", usage_metadata=usage)

    summaries = summarising("")
    talk = converse(
        model=ScriptedModel(script=script), summary_model=summaries, compaction=BY_TOKENS
    )
    await talk.seed([HumanMessage("word " * 2_100, id="h"), AIMessage("ok", id="a")])
    await talk.say("a", "b", "c")
    assert len(summaries.requests) == 1


async def test_shortening_that_frees_little_is_not_repeated_either(converse):
    figures = ToolMessage("figure 17,204 " * 500, tool_call_id="c_0_f", name="f", id="t")
    settings = {"protect_tokens": 0, "minimum_tokens": 0, "preview_chars": 5_500}
    talk = converse(
        model=ScriptedModel(script=lambda _: "ok"),
        summary_model=summarising(""),
        compaction={"trigger_messages": 0, "trigger_tokens": 9_500, "prune": settings},
    )
    await talk.seed(
        [
            HumanMessage("word " * 6_200, id="h"),
            calling(("f", {}), prefix="c").model_copy(update={"id": "a"}),
            figures,
            AIMessage("ok", id="b"),
        ]
    )
    await talk.say("go on")
    receipt = (await talk.values())["compaction"]
    assert (receipt["outcome"], receipt["settled"]) == ("shortened", True)


async def test_a_compaction_that_a_person_asks_for_is_always_tried(converse):
    summaries = summarising("")
    talk = converse(
        model=ScriptedModel(script=lambda _: "ok"), summary_model=summaries, compaction=SMALL
    )
    await talk.seed(ROUNDS)
    await talk.say("next")
    await talk.compact()
    await talk.compact()
    assert len(summaries.requests) == 3
