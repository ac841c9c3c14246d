"""Our nodes in a graph that is not ours: what its provider refuses, fails at and reports."""

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage

from everlong.stores import compactions
from foreign_graph import KIM, SUMMARY, foreign, texts, thread, user
from scripted_model import ScriptedModel, asks_for_summary


def too_long(tokens):
    """Answer as a provider with such a window does."""

    def script(messages):
        if asks_for_summary(messages):
            return SUMMARY
        if len(messages) > tokens:
            return ContextOverflowError(f"maximum context length is {4_000} tokens")
        return f"{len(messages)} heard"

    return script


async def test_an_overflow_is_answered_in_the_same_call(backend):
    compaction = {"trigger_messages": 0, "keep_messages": 2, "flush_before": False}
    graph = foreign(backend, ScriptedModel(script=too_long(5)), compaction=compaction)
    for text in ("one", "two", "three", "four " * 40):
        after = await graph.ainvoke(user(text), thread(), context=KIM)
    assert after["messages"][-1].text.endswith("heard")
    receipts = await compactions.read(backend.store, "kim", "t1")
    assert {one["trigger"] for one in receipts} == {"overflow"}


async def test_a_second_overflow_is_the_callers_and_the_question_stays(backend):
    compaction = {"trigger_messages": 0, "keep_messages": 2, "flush_before": False}
    graph = foreign(backend, ScriptedModel(script=too_long(0)), compaction=compaction)
    with pytest.raises(ContextOverflowError, match="maximum context length is 4000"):
        await graph.ainvoke(user("one"), thread(), context=KIM)
    assert texts((await graph.aget_state(thread())).values["messages"]) == ["one"]


async def test_any_other_error_of_the_model_is_its_own(backend):
    graph = foreign(backend, ScriptedModel(script=[ValueError("no such thing")]))
    with pytest.raises(ValueError, match="no such thing"):
        await graph.ainvoke(user("one"), thread(), context=KIM)


async def test_the_providers_figure_counts_with_what_our_nodes_do_not_see(backend):
    def script(messages):
        if asks_for_summary(messages):
            return SUMMARY
        usage = {"input_tokens": 5_000, "output_tokens": 1, "total_tokens": 5_001}
        return AIMessage(f"{len(messages)} heard", usage_metadata=usage)

    compaction = {"trigger_messages": 0, "trigger_tokens": 5_000, "keep_messages": 2}
    model = ScriptedModel(script=script)
    graph = foreign(backend, model, compaction=compaction | {"flush_before": False})
    for text in ("one", "two", "three"):
        await graph.ainvoke(user(text), thread(), context=KIM)
    assert any(map(asks_for_summary, model.requests))
