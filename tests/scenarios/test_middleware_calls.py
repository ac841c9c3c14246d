"""Our middleware in langchain's `create_agent`: calls that overflow, fail, pause or are cut off."""

import asyncio
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage
from langgraph.types import Command, interrupt

from everlong.stores import compactions
from foreign_graph import KIM, SUMMARY, says, texts, thread, user
from invariants import check_pairs, check_summary
from langchain_agent import LARGE, check_sent, maker
from scripted_model import Breaking, ScriptedModel, asks_for_summary, calling


@pytest.fixture
def agent(backend):
    return maker(backend)


def limited(most: int):
    """Answer as a provider whose window takes so many messages."""

    def script(messages):
        if asks_for_summary(messages):
            return SUMMARY
        if len(messages) > most:
            return ContextOverflowError("maximum context length is 4000 tokens")
        return f"{len(messages)} heard"

    return script


UNTRIGGERED = {"trigger_messages": 0, "keep_messages": 2, "flush_before": False}


async def test_an_overflow_is_answered_in_the_same_call_and_its_tokens_stream(agent, backend):
    graph = agent(ScriptedModel(script=limited(6)), settings={"compaction": UNTRIGGERED})
    words: list[str] = []
    for text in ("one", "two", "three", "four " * 40):
        words.clear()
        async for part, _ in graph.astream(
            user(text), thread(), context=KIM, stream_mode="messages"
        ):
            words.append(part.text)
    assert "".join(words) == "4 heard"
    receipts = await compactions.read(backend.store, "kim", "t1")
    assert [(one["trigger"], one["outcome"]) for one in receipts] == [("overflow", "done")]
    after = (await graph.aget_state(thread())).values["messages"]
    check_summary(after)
    assert after[-1].text == "4 heard"


async def test_a_second_overflow_is_the_providers_and_the_question_stays(agent):
    graph = agent(ScriptedModel(script=limited(0)), settings={"compaction": UNTRIGGERED})
    with pytest.raises(ContextOverflowError, match="4000 tokens"):
        await graph.ainvoke(user("one"), thread(), context=KIM)
    assert texts((await graph.aget_state(thread())).values["messages"]) == ["one"]


async def test_what_has_begun_to_stream_is_not_asked_again(agent):
    broken = Breaking("half an answer", ContextOverflowError("maximum context length"))
    model = ScriptedModel(script=[broken])
    graph = agent(model, settings={"compaction": UNTRIGGERED})
    with pytest.raises(ContextOverflowError):
        async for _ in graph.astream(user("one"), thread(), context=KIM, stream_mode="messages"):
            pass
    assert len(model.requests) == 1


async def test_overflow_recovery_has_a_switch_of_its_own(agent):
    model = ScriptedModel(script=limited(0))
    graph = agent(model, settings={"compaction": UNTRIGGERED | {"overflow_retry": False}})
    with pytest.raises(ContextOverflowError):
        await graph.ainvoke(user("one"), thread(), context=KIM)
    assert len(model.requests) == 1


async def test_a_malformed_call_is_answered_where_the_history_is_compacted_too(agent):
    done.clear()
    bad = [{"name": "charge_card", "args": "{oops]", "id": "bad1", "error": ""}]

    def script(messages):
        if asks_for_summary(messages):
            return SUMMARY
        if len(done) < 6:
            asking = calling(("charge_card", {"amount": len(done)}), prefix=f"c{len(done)}")
            is_fourth = len(done) == 3
            return asking.model_copy(update={"invalid_tool_calls": bad}) if is_fourth else asking
        return "charged"

    model = ScriptedModel(script=script)
    graph = agent(model, [charge_card])
    await graph.ainvoke(user("charge six times"), thread(), context=KIM)
    after = await graph.ainvoke(user("so?"), thread(), context=KIM)
    check_sent(model)
    check_pairs(after["messages"])
    assert len(done) == 6
    assert any(map(asks_for_summary, model.requests))


@pytest.mark.parametrize("refusal", ["", "I cannot help with that.", RuntimeError("down")])
async def test_no_unacceptable_summary_replaces_the_history(agent, refusal):
    def script(messages):
        return refusal if asks_for_summary(messages) else f"{len(messages)} heard"

    graph = agent(ScriptedModel(script=script))
    for text in ("one", "two", "three", "four"):
        after = await graph.ainvoke(user(text), thread(), context=KIM)
    assert texts(after["messages"])[::2] == ["one", "two", "three", "four"]
    assert after["messages"][-1].text == "8 heard"


async def test_no_inner_word_is_in_any_stream(agent):
    graph = agent(ScriptedModel(script=says))
    for text in ("one", "two", "three"):
        await graph.ainvoke(user(text), thread(), context=KIM)
    words, told = [], []
    async for mode, part in graph.astream(
        user("four"), thread(), context=KIM, stream_mode=["messages", "custom"]
    ):
        if mode == "messages":
            words.append(part[0].text)
        else:
            told.append(part["type"])
    assert "".join(words) == "4 heard"
    assert told == ["compaction.started", "compaction.finished"]
    for text in ("five", "six", "seven"):
        async for event in graph.astream_events(user(text), thread(), context=KIM, version="v2"):
            if event["event"] == "on_chat_model_stream":
                assert SUMMARY not in event["data"]["chunk"].text


async def test_a_model_that_fails_costs_the_answer_and_not_the_history(agent):
    outcomes: list[Any] = [RuntimeError("down")]

    def script(messages):
        fails = messages[-1].text == "four" and outcomes
        return outcomes.pop() if fails and not asks_for_summary(messages) else says(messages)

    graph = agent(ScriptedModel(script=script))
    for text in ("one", "two", "three"):
        await graph.ainvoke(user(text), thread(), context=KIM)
    with pytest.raises(RuntimeError, match="down"):
        await graph.ainvoke(user("four"), thread(), context=KIM)
    after = await graph.ainvoke(user("five"), thread(), context=KIM)
    check_summary(after["messages"])
    assert texts(after["messages"])[-2:] == ["five", "4 heard"]


async def test_a_compaction_whose_answer_failed_has_replaced_nothing(agent):
    failing = [RuntimeError("down")]

    def script(messages):
        return failing.pop() if failing and not asks_for_summary(messages) else says(messages)

    model = ScriptedModel(script=script)
    graph = agent(model)
    imported = [("user" if n % 2 else "assistant", f"line {n}") for n in range(1, 10)]
    with pytest.raises(RuntimeError, match="down"):
        await graph.ainvoke({"messages": imported}, thread(), context=KIM)
    state = (await graph.aget_state(thread())).values["messages"]
    assert texts(state) == [text for _, text in imported]
    await graph.ainvoke(user("so?"), thread(), context=KIM)
    first, again = (request for request in model.requests if asks_for_summary(request))
    lines = [text for text in texts(again) if text.startswith("line")]
    assert lines[:7] == [f"line {number}" for number in range(1, 8)]
    assert lines[:7] == [text for text in texts(first) if text.startswith("line")][:7]


async def test_a_cancel_ends_the_call_and_the_next_one_goes_on(agent):
    hangs = [True]

    def script(messages):
        return 60.0 if hangs and not asks_for_summary(messages) else says(messages)

    graph = agent(ScriptedModel(script=script))
    running = asyncio.create_task(graph.ainvoke(user("one"), thread(), context=KIM))
    await asyncio.sleep(0.2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    hangs.clear()
    after = await graph.ainvoke(user("two"), thread(), context=KIM)
    assert texts(after["messages"]) == ["one", "two", "3 heard"]


done: list[str] = []


def charge_card(amount: int) -> str:
    """Charge the card."""
    done.append(f"charged {amount}")
    return f"charged {amount}, receipt 881"


def ask_person(question: str) -> str:
    """Ask the person, and wait for the answer."""
    return f"the person said {interrupt(question)}"


async def test_a_pause_goes_on_with_the_answer_and_nothing_runs_twice(agent):
    done.clear()
    calls = calling(("charge_card", {"amount": 20}), ("ask_person", {"question": "Send?"}))
    model = ScriptedModel(script=[calls, "sent", "bye"])
    graph = agent(model, [charge_card, ask_person], settings=LARGE)
    paused = await graph.ainvoke(user("go"), thread(), context=KIM)
    assert [one.value for one in paused["__interrupt__"]] == ["Send?"]
    again = agent(model, [charge_card, ask_person], settings=LARGE)
    after = await again.ainvoke(Command(resume="yes"), thread(), context=KIM)
    assert sorted(texts(after["messages"])[2:4]) == [
        "charged 20, receipt 881",
        "the person said yes",
    ]
    assert done == ["charged 20"]
    await graph.ainvoke(user("bye"), thread(), context=KIM)
    check_sent(model)


async def test_who_types_instead_of_answering_loses_no_result_that_was_there(agent):
    done.clear()
    calls = calling(("charge_card", {"amount": 20}), ("ask_person", {"question": "Send?"}))
    model = ScriptedModel(script=[calls, "your receipt is 881"])
    graph = agent(model, [charge_card, ask_person])
    await graph.ainvoke(user("go"), thread(), context=KIM)
    after = await graph.ainvoke(user("never mind, my receipt?"), thread(), context=KIM)
    check_sent(model)
    found = {m.name: (m.status, m.text) for m in model.requests[-1] if m.type == "tool"}
    assert found["charge_card"] == ("success", "charged 20, receipt 881")
    assert found["ask_person"][0] == "error"
    assert done == ["charged 20"]
    assert texts(after["messages"])[-1] == "your receipt is 881"
    check_pairs(after["messages"])


async def test_a_malformed_call_is_answered_and_its_good_neighbour_runs_once(agent):
    done.clear()
    asking = AIMessage(
        "",
        tool_calls=[{"name": "charge_card", "args": {"amount": 20}, "id": "ok1"}],
        invalid_tool_calls=[{"name": "charge_card", "args": "{oops]", "id": "bad1", "error": ""}],
    )
    model = ScriptedModel(script=[asking, "one of them", "and on"])
    graph = agent(model, [charge_card], settings=LARGE)
    await graph.ainvoke(user("charge twice"), thread(), context=KIM)
    await graph.ainvoke(user("so?"), thread(), context=KIM)
    check_sent(model)
    assert done == ["charged 20"]
