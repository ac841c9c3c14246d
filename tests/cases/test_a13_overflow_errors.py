"""A13: which errors are overflows, what follows, and that nobody gets two answers in one."""

import logging
import traceback

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage

from everlong.nodes.errors import InvalidInputError
from everlong.nodes.overflow import overflow_in
from everlong.nodes.tokens import estimate_messages
from everlong.nodes.transcript import is_summary
from everlong.stores import ledger
from given import case
from provider_errors import ProviderError
from scripted_model import Breaking, ScriptedModel, asks_for_summary, kind_of

TABLE = case("A13")["table"]
FIRST = TABLE[0]


def error_of(row):
    """Return the error of a row of the table."""
    if "wrapped" not in row:
        return ProviderError(row["text"], row["status"], row.get("code"))
    outer = RuntimeError("model node failed")
    outer.__cause__ = error_of(FIRST)
    return outer


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row.get("text", "wrapped"))[:50])
def test_each_row_of_the_table_is_told_apart(row):
    found = overflow_in(error_of(row))
    assert (found is not None) is row["overflow"]
    if found is not None and "wrapped" not in row:
        assert found.limit == row.get("limit", found.limit)
        assert found.requested == row.get("requested", found.requested)


HISTORY = [
    message
    for number in range(12)
    for message in (
        HumanMessage(f"Order PX-{4470 + number}: " + "as agreed " * 110, id=f"h{number}"),
        AIMessage(f"Noted PX-{4470 + number}, " + "as planned " * 110, id=f"a{number}"),
    )
]
TOO_LONG = "prompt is too long: 5200 tokens > 4000 maximum"


def wrapped():
    """Return an overflow as a framework passes it on: the provider's own error is its cause."""
    outer = RuntimeError("model node failed")
    outer.__cause__ = ProviderError(TOO_LONG, 400)
    return outer


def refusing(times, *, answer="the answer", error=wrapped):
    """Return a model whose answers to the user are refused so many times."""
    left = iter([error] * times)

    def script(messages):
        kind = kind_of(messages)
        if kind == "flush":
            return "- the customer's orders are PX-4470 and on"
        if kind == "summary":
            return "They spoke of orders."
        return next(left, lambda: answer)()

    return ScriptedModel(script=script)


def answered(model):
    """Return the requests for an answer."""
    return [request for request in model.requests if kind_of(request) == "answer"]


@pytest.mark.parametrize("enabled", [True, False], ids=["compaction on", "compaction off"])
async def test_an_overflow_is_flushed_compacted_to_the_named_limit_and_asked_again(
    converse, enabled
):
    model = refusing(1)
    talk = converse(
        model=model,
        memory={"enabled": True, "tools": False, "consolidate": "on_request"},
        compaction={"enabled": enabled, "trigger_messages": 0, "keep_messages": 20},
        eviction={"enabled": False},
    )
    await talk.seed(HISTORY)
    assert await talk.say("and now?") == "the answer"
    first, second = answered(model)
    assert estimate_messages(first) > 4_000
    assert estimate_messages(second) <= 4_000
    assert is_summary(second[1])
    kinds = [kind_of(request) for request in model.requests]
    assert kinds.index("flush") < kinds.index("summary")
    assert talk.event_types().count("compaction.started") == 1
    inner = [request for request in model.requests if kind_of(request) == "summary"]
    assert max(map(estimate_messages, inner)) <= 4_000
    entries = await ledger.entries(talk.store, "kim")
    assert "PX-4470" in entries[0].text
    values = await talk.values()
    assert values["compaction"]["trigger"] == "overflow"
    assert list(values["named_windows"].values()) == [4_000]


async def test_a_named_limit_is_believed_in_the_next_calls_before_anyone_refuses(converse):
    model = refusing(1)
    talk = converse(model=model, compaction={"trigger_messages": 0, "flush_before": False})
    await talk.seed(HISTORY)
    for number in range(12):
        await talk.say(f"Order PX-{5500 + number}: " + "as agreed " * 60)
    assert max(map(estimate_messages, answered(model)[1:])) <= 4_000
    assert talk.event_types().count("compaction.started") > 1


@pytest.mark.parametrize("named", [True, False], ids=["a named limit", "no limit"])
async def test_the_second_overflow_reaches_the_caller_with_its_cause(converse, named):
    errors = [wrapped(), wrapped()] if named else [ContextOverflowError("a"), wrapped()]
    steps = iter(errors)
    model = ScriptedModel(
        script=lambda asked: "Orders." if asks_for_summary(asked) else next(steps)
    )
    talk = converse(model=model, compaction={"trigger_messages": 0, "flush_before": False})
    await talk.seed(HISTORY)
    with pytest.raises(RuntimeError, match="model node failed") as caught:
        await talk.say("and now?")
    assert caught.value is errors[1]
    assert caught.value.__cause__ is errors[1].__cause__
    assert TOO_LONG in "".join(traceback.format_exception(caught.value))
    assert len(answered(model)) == 2
    messages = await talk.messages()
    assert (messages[-1].type, messages[-1].text) == ("human", "and now?")


async def test_what_is_no_overflow_is_not_compacted_and_not_asked_again(converse):
    for row in (row for row in TABLE if not row["overflow"]):
        model = ScriptedModel(script=[error_of(row)])
        talk = converse(model=model, thread_id=row["text"], compaction={"trigger_messages": 0})
        await talk.seed(HISTORY)
        with pytest.raises(ProviderError):
            await talk.say("and now?")
        assert talk.event_types() == []
        assert len(await talk.messages()) == 25


@pytest.mark.parametrize("named", [True, False], ids=["a named limit", "no limit"])
async def test_recovery_can_be_switched_off(converse, named):
    error = wrapped() if named else ContextOverflowError("too long")
    model = ScriptedModel(script=[error])
    talk = converse(model=model, compaction={"enabled": False, "overflow_retry": False})
    await talk.seed(HISTORY)
    with pytest.raises(type(error)) as caught:
        await talk.say("and now?")
    assert caught.value is error
    assert len(await talk.messages()) == 25


async def test_compaction_switched_off_recovers_where_neither_window_nor_limit_is_known(converse):
    model = refusing(1, error=lambda: ContextOverflowError("too long"))
    talk = converse(model=model, compaction={"enabled": False, "flush_before": False})
    await talk.seed(HISTORY)
    assert await talk.say("and now?") == "the answer"
    first, second = answered(model)
    assert estimate_messages(second) < 0.8 * estimate_messages(first)
    assert await talk.say("and then?") == "the answer"
    assert talk.event_types().count("compaction.started") == 1


V3_IS_NEW = pytest.mark.filterwarnings("ignore:The v3 streaming protocol")


async def ainvoke(talk, given):
    """Return what the caller is shown: nothing but the answer."""
    after = await talk.graph.ainvoke(given, talk.config, context=talk.context)
    return after["messages"][-1].text


def streaming(mode):
    async def astream(talk, given):
        """Return the text that a client puts together from the stream."""
        shown: dict[str, str] = {}
        async for part in talk.graph.astream(
            given, talk.config, context=talk.context, stream_mode=mode
        ):
            if mode == "messages":
                chunk, _ = part
                if isinstance(chunk, AIMessage):
                    shown[chunk.id] = shown.get(chunk.id, "") + chunk.text
        return "|".join(shown.values()) if mode == "messages" else None

    return astream


def events(version):
    async def astream_events(talk, given):
        shown = ""
        stream = talk.graph.astream_events(
            given, talk.config, context=talk.context, version=version
        )
        async for event in await stream if version == "v3" else stream:
            if event.get("event") == "on_chat_model_stream":
                shown += event["data"]["chunk"].text
            elif event.get("method") == "messages":
                data = event["params"]["data"][0]
                shown += data.get("delta", {}).get("text", "")
        return shown

    return astream_events


RUNS = {
    "ainvoke": ainvoke,
    **{mode: streaming(mode) for mode in ("messages", "updates", "values", "custom")},
    "events v2": events("v2"),
    "events v3": events("v3"),
}
STREAMED = ("messages", "events v2", "events v3")
"""Where the model's answer is given out bit by bit."""


@V3_IS_NEW
@pytest.mark.parametrize("run", RUNS)
async def test_recovery_is_the_same_however_the_call_is_run(converse, run):
    model = refusing(1)
    talk = converse(model=model, compaction={"trigger_messages": 0, "flush_before": False})
    await talk.seed(HISTORY)
    shown = await RUNS[run](talk, {"messages": "and now?"})
    assert shown in (None, "the answer")
    assert (await talk.messages())[-1].text == "the answer"
    assert len(answered(model)) == 2


@V3_IS_NEW
@pytest.mark.parametrize("begun", ["The first half", " "], ids=["text", "a blank"])
@pytest.mark.parametrize("run", STREAMED)
async def test_no_second_answer_follows_one_that_has_begun(converse, run, begun, caplog):
    caplog.set_level(logging.INFO)
    model = ScriptedModel(script=[Breaking(f"{begun} of the", wrapped()), "the second answer"])
    talk = converse(model=model, compaction={"trigger_messages": 0, "flush_before": False})
    await talk.seed(HISTORY)
    with pytest.raises(RuntimeError, match="model node failed") as caught:
        await RUNS[run](talk, {"messages": "and now?"})
    assert isinstance(caught.value.__cause__, ProviderError)
    assert len(model.requests) == 1
    messages = await talk.messages()
    assert len(messages) == 25
    assert messages[-1].text == "and now?"
    assert "Compaction triggered" not in caplog.text
    after = await talk.graph.ainvoke({"messages": "again"}, talk.config, context=talk.context)
    assert after["messages"][-1].text == "the second answer"


@pytest.mark.parametrize("run", [run for run in RUNS if run not in STREAMED])
async def test_where_nothing_was_given_out_an_answer_that_breaks_off_is_asked_again(converse, run):
    breaking = Breaking("The first half of the", wrapped())
    script = iter([breaking, "the answer"])
    model = ScriptedModel(
        script=lambda asked: "Orders." if asks_for_summary(asked) else next(script)
    )
    talk = converse(model=model, compaction={"trigger_messages": 0, "flush_before": False})
    await talk.seed(HISTORY)
    await RUNS[run](talk, {"messages": "and now?"})
    assert (await talk.messages())[-1].text == "the answer"


async def test_the_users_own_listeners_hear_each_request_once(converse):
    talk = converse(model=refusing(1), compaction={"trigger_messages": 0, "flush_before": False})
    await talk.seed(HISTORY)
    await talk.say("and now?")
    assert len(talk.watcher.requests) == 2


async def test_a_call_without_await_is_refused_before_anything_is_written(converse):
    talk = converse(model=refusing(0))
    for run in (talk.graph.invoke, talk.graph.stream):
        with pytest.raises(InvalidInputError, match="expected `ainvoke` or `astream`"):
            run({"messages": "and now?"}, talk.config, context=talk.context)
    assert await talk.messages() == []
