"""Each of the eight invariants fails on a call that breaks it, and on nothing else."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from call_invariants import INVARIANTS, check_call
from conversation import Conversation
from everlong.nodes.context import Context
from everlong.nodes.inner import ask
from observed import Exchange, Observed
from scripted_model import ScriptedModel, asks_for_summary, calling, kind_of

SUMMARY = "They looked twice and found herons."


@tool
def look(place: str) -> str:
    """Look somewhere."""
    return f"{place}: herons"


def script(messages):
    if asks_for_summary(messages):
        return SUMMARY
    if kind_of(messages) == "flush":
        return "- The user counts herons."
    asked = messages[-1].type == "human" and "look" in messages[-1].text
    calls = calling(("look", {"place": "pond"}), prefix=f"c{len(messages)}")
    return calls if asked else "Two herons."


async def broken_by(change: Callable[[Observed], Observed | None]) -> Observed:
    """Return a call that compacted, called a tool and flushed, with one thing changed."""
    talk = Conversation(
        saver=InMemorySaver(),
        store=InMemoryStore(),
        context=Context.model_validate(
            {
                "user_id": "kim",
                "model": ScriptedModel(script=script),
                "memory": {"consolidate": "on_request"},
                "compaction": {"trigger_messages": 6, "keep_messages": 2},
            }
        ),
        tools=[look],
    )
    await talk.say("hello", "and now?", "please look at the pond")
    call = talk.last_call
    assert {one.kind for one in call.exchanges} == {"answer", "summary", "flush"}
    assert any(mode == "values" for mode, _ in call.steps)
    assert call.chunks
    assert call.places
    assert call.written
    return change(call) or call


def unanswered(call):
    call.requests[-1] = [m for m in call.requests[-1] if not isinstance(m, ToolMessage)]


def empty_block(call):
    call.requests[-1] = [*call.requests[-1], HumanMessage([{"type": "text", "text": ""}])]


def two_summaries(call):
    first, summary, *rest = call.requests[-1]
    call.requests[-1] = [first, summary, summary, *rest]


def summary_by_the_assistant(call):
    first, summary, *rest = call.requests[-1]
    call.requests[-1] = [first, AIMessage(summary.text, name=summary.name), *rest]


def summary_after_the_question(call):
    first, summary, question, *rest = call.requests[-1]
    call.requests[-1] = [first, question, summary, *rest]


def another_question(call):
    call.requests[-1] = [
        m.model_copy(update={"content": "please"}) if m.id == call.newest.id else m
        for m in call.requests[-1]
    ]


def preview_of_another_text(call):
    record = {"everlong_evicted": {"path": "large/x.txt", "chars": 3}}
    call.previewed["large/x.txt"] = "another text"
    call.requests[-1] = [
        m.model_copy(update={"content": "[large/x.txt]", "additional_kwargs": record})
        if m.id == call.newest.id
        else m
        for m in call.requests[-1]
    ]


def question_lost(call):
    kept = [m for m in call.messages if m.id != call.newest.id]
    return replace(call, values={**call.values, "messages": kept})


def half_replaced(call):
    mode, values = call.steps[-1]
    call.steps.insert(-1, (mode, {**values, "messages": call.messages[2:][::-1]}))


def failed_and_changed(call):
    for number, (mode, what) in enumerate(call.steps):
        if mode == "updates" and what.get("compact"):
            receipt = {"compaction": {"outcome": "failed"}}
            call.steps[number] = (mode, {"compact": {**what["compact"], **receipt}})


def tried_again(call):
    began = next(e for e in call.events if e["type"] == "compaction.started")
    refused = {"type": "compaction.finished", "outcome": "refused", "requests": 1}
    call.events[:] = [began, refused, began, refused]


def tried_again_for_little(call):
    began = next(e for e in call.events if e["type"] == "compaction.started")
    little = {"type": "compaction.finished", "outcome": "done", "settled": True, "requests": 1}
    call.events[:] = [began, little, began, little]


def two_overflows(call):
    began = {"type": "compaction.started", "trigger": "overflow"}
    call.events[:] = [*call.events, began, began]


def flushed_often(call):
    (flush, *_) = call.of_kind("flush")
    call.exchanges += [Exchange("flush", [HumanMessage(f"{n}"), *flush.request]) for n in range(2)]


def flushed_over_and_over(call):
    call.exchanges += call.of_kind("flush") * 6


def summarised_unasked(call):
    call.events.clear()


def asked_over_and_over(call):
    call.exchanges += call.of_kind("summary") * 72


def summary_in_the_answer(call):
    chunk = AIMessageChunk(SUMMARY[:9], id="x")
    rest = AIMessageChunk(SUMMARY[9:], id="x")
    call.chunks += [(one, {"langgraph_node": "reason"}) for one in (chunk, rest)]


def summary_as_a_message(call):
    summary = next(m for m in call.messages if m.name == "__compaction_summary__")
    call.chunks.append((summary, {"langgraph_node": "reason"}))


def chunk_of_a_flush(call):
    call.chunks.append((AIMessageChunk("."), {"langgraph_node": "flush_memory"}))


def summary_in_an_event(call):
    call.events.append({"type": "compaction.finished", "outcome": "done", "text": SUMMARY})


def foreign_place(call):
    call.places.add(("users", "kimo", "memory"))


def every_place(call):
    call.places.add(())


def nul_in_the_store(call):
    call.written.append(("k", {"text": "a\x00b"}))


def surrogate_in_the_state(call):
    call.values = {**call.values, "archived": {"through": "\ud83d"}}


BROKEN = {
    "pairs": [unanswered, empty_block],
    "one_summary": [two_summaries, summary_by_the_assistant, summary_after_the_question],
    "newest_question": [another_question, preview_of_another_text],
    "no_half_state": [question_lost, half_replaced, failed_and_changed],
    "bounded_inner_calls": [
        tried_again,
        tried_again_for_little,
        two_overflows,
        flushed_often,
        flushed_over_and_over,
        summarised_unasked,
        asked_over_and_over,
    ],
    "quiet_stream": [
        summary_in_the_answer,
        summary_as_a_message,
        chunk_of_a_flush,
        summary_in_an_event,
    ],
    "own_places": [foreign_place, every_place],
    "storable_text": [nul_in_the_store, surrogate_in_the_state],
}


async def test_a_sound_call_breaks_nothing():
    check_call(await broken_by(lambda call: call))


@pytest.mark.parametrize(
    ("name", "change"),
    [(name, change) for name, changes in BROKEN.items() for change in changes],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
async def test_each_invariant_fails_on_what_breaks_it(name, change):
    call = await broken_by(change)
    with pytest.raises(AssertionError) as caught:
        check_call(call)
    assert any(f"invariant `{name}`" in note for note in caught.value.__notes__)
    check_call(call, {name: "it is broken on purpose"})


async def test_an_inner_error_that_ends_the_call_is_told_by_its_way():
    async def failing(call: Observed) -> None:
        try:
            model = ScriptedModel(script=[RuntimeError("503")])
            await ask(model, [HumanMessage("sum up")], kind="summary", seconds=1)
        except RuntimeError as error:
            call.error = error

    call = await broken_by(lambda call: call)
    await failing(call)
    with pytest.raises(AssertionError, match="503"):
        check_call(call)
    call.error = asyncio.CancelledError()
    check_call(call)


async def test_only_a_known_invariant_is_waived_and_only_with_a_reason():
    call = await broken_by(lambda call: call)
    with pytest.raises(AssertionError, match="one of"):
        check_call(call, {"everything": "no time"})
    with pytest.raises(AssertionError, match="a reason"):
        check_call(call, {"pairs": " "})


async def test_a_conversation_checks_a_call_that_raises_too():
    talk = Conversation(
        saver=InMemorySaver(),
        store=InMemoryStore(),
        context=Context(user_id="kim", model=ScriptedModel(script=[RuntimeError("down")])),
    )
    with pytest.raises(RuntimeError, match="down"):
        await talk.say("hello")
    call = talk.last_call
    assert str(call.error) == "down"
    assert [message.text for message in call.messages] == ["hello"]


def test_the_eight_are_there():
    assert list(INVARIANTS) == list(BROKEN)
    assert Exchange("answer", [], None).text == ""
