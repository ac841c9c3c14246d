"""Pinned messages survive every path word for word, and no more is pinned than a window bears."""

import logging

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from everlong.graph.agent import build
from everlong.graph.pins import pin, pinned, unpin
from everlong.graph.runtime import Agent
from everlong.nodes.errors import InvalidInputError, MissingUserError
from everlong.nodes.transcript import is_summary
from everlong.stores.postgres import open_stores
from scripted_model import ScriptedModel, asks_for_summary, calling

SMALL = {"trigger_messages": 6, "keep_messages": 2, "flush_before": False}
MARK = {"pin": True}
RULE = "Rule: 每次报价都含税。 Never ship before 2026-03-05."


def rounds(count, *, size=20):
    return [
        message
        for number in range(count)
        for message in (
            HumanMessage(f"Question {number}? " + "as agreed " * size, id=f"h{number}"),
            AIMessage(f"Answer {number}. " + "as planned " * size, id=f"a{number}"),
        )
    ]


def answering(*, summary="They spoke.", overflows=0):
    refused = iter([ContextOverflowError("too long")] * overflows)

    def script(messages):
        if asks_for_summary(messages):
            return summary
        return next(refused, "ok")

    return ScriptedModel(script=script)


def said(messages):
    return [message.text for message in messages if message.type != "system"]


PATHS = {
    "summary": lambda: {"model": answering(), "compaction": SMALL},
    "digest": lambda: {
        "model": answering(overflows=1),
        "summary_model": ScriptedModel(script=lambda _: RuntimeError("down")),
        "compaction": SMALL | {"trigger_messages": 0},
    },
    "window": lambda: {"model": answering(), "compaction": SMALL | {"strategy": "window"}},
    "overflow": lambda: {
        "model": answering(overflows=1),
        "summary_model": ScriptedModel(script=lambda _: "They spoke."),
        "compaction": SMALL | {"enabled": False},
    },
    "a shrinking tail": lambda: {
        "model": answering(),
        "compaction": {
            "trigger_messages": 0,
            "window_tokens": 8_000,
            "reserve_tokens": 1_000,
            "keep_messages": 30,
            "flush_before": False,
        },
    },
}


@pytest.mark.parametrize("path", PATHS)
async def test_a_pinned_message_stays_word_for_word_between_summary_and_tail(converse, path):
    talk = converse(**PATHS[path]())
    mark = HumanMessage(RULE, id="p1", additional_kwargs=MARK)
    history = rounds(20, size=80)
    await talk.seed([*history[:6], mark, *history[6:]])
    await talk.say("next")
    messages = await talk.messages()
    at = next(index for index, message in enumerate(messages) if message.id == "p1")
    assert (messages[at].text, messages[at].additional_kwargs) == (RULE, MARK)
    assert at == (0 if path == "window" else 1)
    assert all(is_summary(message) for message in messages[:at])
    assert messages[at + 1].id != "h3"
    assert RULE in said(talk.last_request)
    assert (await talk.values())["compaction"]["outcome"] == "done"


async def test_a_pinned_message_outlives_one_compaction_after_the_other(converse):
    talk = converse(model=answering(), compaction=SMALL)
    await talk.seed([HumanMessage(RULE, id="p1", additional_kwargs=MARK), *rounds(3)])
    await talk.say(*(f"message {number}" for number in range(9)))
    messages = await talk.messages()
    assert [is_summary(messages[0]), messages[1].id] == [True, "p1"]
    assert messages[1].text == RULE


async def test_a_pinned_result_keeps_its_call_and_the_other_results_of_it(converse):
    call = calling(("price", {"n": 1}), ("price", {"n": 2})).model_copy(update={"id": "c"})
    results = [
        ToolMessage("12.40 " * 900, tool_call_id=call.tool_calls[0]["id"], name="price", id="r0"),
        ToolMessage("USD 7", tool_call_id=call.tool_calls[1]["id"], name="price", id="r1"),
    ]
    results[1].additional_kwargs.update(MARK)
    talk = converse(
        model=answering(),
        compaction=SMALL
        | {"prune": {"protect_tokens": 0, "minimum_tokens": 0, "preview_chars": 100}},
    )
    await talk.seed([*rounds(1), call, *results, *rounds(6)[2:]])
    await talk.say("next")
    messages = await talk.messages()
    assert is_summary(messages[0])
    assert messages[1:4] == [call, *results]


async def test_pinning_by_id_keeps_a_message_and_unpinning_lets_it_go(converse):
    talk = converse(model=answering(), compaction=SMALL)
    await talk.seed(rounds(2))
    found = await pin(talk.graph, talk.config, "h0", context=talk.context)
    assert [message.id for message in found.messages] == ["h0"]
    assert found.most_tokens == 40_000
    assert 0 < found.tokens < 200
    again = await pin(talk.graph, talk.config, "h0", context={"user_id": "kim"})
    assert again.tokens == found.tokens
    await talk.say("one", "two", "three")
    messages = await talk.messages()
    assert [is_summary(messages[0]), messages[1].id] == [True, "h0"]
    assert (await pinned(talk.graph, talk.config, context=talk.context)).tokens == found.tokens
    assert not (await unpin(talk.graph, talk.config, "h0", context=talk.context)).messages
    await talk.say("four", "five", "six")
    assert "h0" not in [message.id for message in await talk.messages()]


async def test_pinning_runs_nothing_and_changes_nothing_else(converse):
    talk = converse(model=answering(), compaction={"trigger_messages": 0})
    await talk.say("one", "two")
    before = await talk.values()
    first = before["messages"][0]
    await pin(talk.graph, talk.config, first.id, context=talk.context)
    after = await talk.values()
    assert after["messages"][0] == first.model_copy(update={"additional_kwargs": MARK})
    assert after["messages"][1:] == before["messages"][1:]
    assert {k: v for k, v in after.items() if k != "messages"} == {
        k: v for k, v in before.items() if k != "messages"
    }
    assert (await talk.graph.aget_state(talk.config)).next == ()


WINDOW = {"window_tokens": 8_000, "reserve_tokens": 1_000, "trigger_messages": 0}


async def test_pinning_more_than_a_quarter_of_the_window_is_refused_with_both_sizes(converse):
    talk = converse(model=answering(), compaction=WINDOW)
    await talk.seed(
        [HumanMessage("word " * 1_000, id="h0"), HumanMessage("word " * 1_200, id="h1")]
    )
    await pin(talk.graph, talk.config, "h0", context=talk.context)
    with pytest.raises(InvalidInputError, match=r"at most 2,000 .* got 2,\d\d\d"):
        await pin(talk.graph, talk.config, "h1", context=talk.context)
    assert [m.id for m in await talk.messages() if m.additional_kwargs] == ["h0"]


async def test_an_edit_of_the_state_cannot_pin_more_either(converse):
    talk = converse(model=answering(), compaction=WINDOW)
    await talk.say("hello")
    long = {
        "role": "user",
        "content": "word " * 2_500,
        "id": "h1",
        "additional_kwargs": {"pin": True},
    }
    with pytest.raises(InvalidInputError, match="at most 2,000 pinned"):
        await talk.graph.aupdate_state(talk.config, {"messages": [long]}, as_node="consolidate")
    assert len(await talk.messages()) == 2


@pytest.mark.parametrize(
    ("message_id", "why"),
    [
        ("nowhere", "got 'nowhere', which is none"),
        ("s1", "a system message"),
        ("s0", "a summary"),
    ],
)
async def test_what_cannot_be_pinned_is_refused_with_the_reason(converse, message_id, why):
    talk = converse(model=answering(), compaction=WINDOW)
    await talk.seed(
        [
            HumanMessage("They spoke.", name="__compaction_summary__", id="s0"),
            SystemMessage("Be brief.", id="s1"),
            *rounds(1),
        ]
    )
    with pytest.raises(InvalidInputError, match=why):
        await pin(talk.graph, talk.config, message_id, context=talk.context)


@pytest.mark.parametrize("act", [pin, unpin])
async def test_another_users_thread_cannot_be_pinned_in(converse, act):
    talk = converse(model=answering())
    await talk.say("mine")
    mine = (await talk.messages())[0]
    with pytest.raises(InvalidInputError, match="not a thread of 'eve'"):
        await act(talk.graph, talk.config, mine.id, context={"user_id": "eve"})
    with pytest.raises(InvalidInputError, match="not a thread of 'eve'"):
        await pinned(talk.graph, talk.config, context={"user_id": "eve"})
    with pytest.raises(MissingUserError):
        await act(talk.graph, talk.config, mine.id, context=None)
    assert (await talk.messages())[0] == mine


async def test_a_thread_in_the_middle_of_a_call_is_not_touched(converse):
    talk = converse(model=answering())
    await talk.say("mine")
    first = (await talk.messages())[0]
    await talk.graph.ainvoke(
        {"messages": "more"}, talk.config, context=talk.context, interrupt_before=["reason"]
    )
    before = await talk.graph.aget_state(talk.config)
    with pytest.raises(InvalidInputError, match="stopped before"):
        await pin(talk.graph, talk.config, first.id, context=talk.context)
    assert await talk.graph.aget_state(talk.config) == before


async def test_an_incoming_mark_that_would_pin_too_much_is_taken_off_and_told_of(converse, caplog):
    caplog.set_level(logging.WARNING)
    talk = converse(model=answering(), compaction=WINDOW)
    small = HumanMessage("word " * 1_000, id="p0", additional_kwargs=MARK)
    large = HumanMessage("word " * 1_200, id="p1", additional_kwargs=MARK | {"note": "mine"})
    await talk.send({"messages": [small]})
    await talk.send({"messages": [large]})
    kept = {message.id: message.additional_kwargs for message in await talk.messages()}
    assert kept["p0"] == MARK
    assert kept["p1"] == {"note": "mine"}
    (event,) = [event for event in talk.events if event["type"] == "pin.refused"]
    assert (event["message_id"], event["most_tokens"]) == ("p1", 2_000)
    assert 2_000 < event["tokens"] < 4_000
    assert "Message p1 is kept but not pinned" in caplog.text
    assert large.text in said(talk.last_request)


async def test_marks_of_one_call_are_taken_in_their_order(converse):
    talk = converse(model=answering(), compaction=WINDOW)
    await talk.send(
        {
            "messages": [
                HumanMessage("word " * size, id=f"p{at}", additional_kwargs=MARK)
                for at, size in enumerate((900, 1_200, 300))
            ]
        }
    )
    kept = [message.id for message in await talk.messages() if message.additional_kwargs == MARK]
    assert kept == ["p0", "p2"]


@pytest.mark.parametrize(
    ("words", "is_kept"), [(8_000, True), (60_000, False)], ids=["fits", "too much"]
)
async def test_an_unknown_window_allows_a_quarter_of_the_fallback(converse, words, is_kept):
    talk = converse(model=answering(), compaction={"trigger_messages": 0})
    await talk.send({"messages": [HumanMessage("word " * words, id="p0", additional_kwargs=MARK)]})
    assert ("pin" in (await talk.messages())[0].additional_kwargs) is is_kept


async def test_an_agent_pins_while_no_call_holds_the_thread(dsn):
    async with open_stores(dsn, pool_size=4) as stores:
        graph = build().compile(checkpointer=stores.saver, store=stores.store)
        agent = Agent(graph, stores)
        context = {"user_id": "kim", "model": answering(), "memory": {"enabled": False}}
        config = {"configurable": {"thread_id": "t1"}}
        after = await agent.ainvoke({"messages": "mine"}, config, context=context)
        found = await pin(agent, config, after["messages"][0].id, context=context)
        assert [message.text for message in found.messages] == ["mine"]
        assert (await pinned(agent, config, context=context)).tokens == found.tokens
        assert not (await unpin(agent, config, found.messages[0].id, context=context)).messages
