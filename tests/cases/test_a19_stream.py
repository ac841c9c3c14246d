"""A19: what the user sees while the graph compacts, flushes and consolidates."""

import time
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage

from everlong.nodes.transcript import SUMMARY_NAME
from given import case, messages_of
from inner_words import check_quiet, shown
from scripted_model import ScriptedModel, kind_of

GIVEN = case("A19")
MODES: list[str] = [mode for mode in GIVEN["modes"] if mode != "events"]
FLUSH, CONSOLIDATED = "FLUSH-TOKEN", "DOCUMENT-TOKEN"
FACT = "Likes counting."
"""What is not in doubt; nobody said the tokens."""
INNER = ("SUMMARY-TOKEN", FLUSH, CONSOLIDATED)
*BEFORE, QUESTION = messages_of(GIVEN["messages"])
SEEDED = [
    message.model_copy(update={"content": f"{message.text} {'and so on ' * 200}"})
    for message in BEFORE
]
"""Long enough to be worth a compaction at an overflow, too."""
TRIGGERS = ("automatic", "overflow", "forced")


def said(answers: list[dict[str, Any]]) -> str:
    return "".join(answers[0]["stream"])


@pytest.fixture(params=["models of their own", "one model for all"])
def begin(request, converse):
    """Begin the case's conversation, with a way to trigger, and models that may fail or wait."""

    async def begin_with(
        trigger: str = "automatic",
        *,
        flush: Any = None,
        answer: Any = None,
        summary: Any = None,
        **compaction: Any,
    ) -> Any:
        turns = iter([ContextOverflowError("too long")] if trigger == "overflow" else [])
        flushes = iter([] if flush is None else [flush])
        summary = said(GIVEN["summary_model"]) if summary is None else summary
        by_kind = {
            "answer": lambda: next(turns, answer or said(GIVEN["agent_model"])),
            "summary": lambda: summary,
            "flush": lambda: next(flushes, f"- {said(GIVEN['flush_model'])}\n- {FACT}"),
            "consolidation": lambda: f"# Memory\n\n- {CONSOLIDATED}\n- {FACT}",
        }
        models = {
            name: ScriptedModel(script=lambda messages: by_kind[kind_of(messages)]())
            for name in ("model", "summary_model", "memory_model")
        }
        triggered = GIVEN["settings"]["trigger_messages"] if trigger == "automatic" else 0
        keep = GIVEN["settings"]["keep_messages"]
        talk = converse(
            **(models if "own" in request.param else {"model": models["model"]}),
            memory={"flush": "always", "consolidate_every_minutes": 0},
            compaction={"trigger_messages": triggered, "keep_messages": keep, **compaction},
        )
        await talk.seed(SEEDED)
        return talk

    return begin_with


def given_to(trigger: str) -> dict[str, Any]:
    return {"request": {"compact": True}} if trigger == "forced" else {"messages": [QUESTION]}


async def stream(talk: Any, trigger: str, mode: Any, **options: Any) -> list[Any]:
    running = talk.graph.astream(
        given_to(trigger), talk.config, context=talk.context, stream_mode=mode, **options
    )
    return [part async for part in running]


@pytest.mark.parametrize("subgraphs", [False, True])
@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("mode", [*MODES, MODES])
async def test_no_inner_word_is_in_any_stream(begin, mode, trigger, subgraphs):
    talk = await begin(trigger)
    parts = await stream(talk, trigger, mode, subgraphs=subgraphs)
    check_quiet(parts, INNER)
    if trigger != "forced" and mode != "custom":
        assert said(GIVEN["agent_model"]) in "\n".join(shown(parts))


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_no_inner_word_is_in_the_event_stream_and_no_inner_call_is_in_it(begin, trigger):
    talk = await begin(trigger)
    events = [
        event
        async for event in talk.graph.astream_events(
            given_to(trigger), talk.config, context=talk.context, version="v2", subgraphs=True
        )
    ]
    check_quiet(events, INNER)
    models = [event for event in events if event["event"].startswith("on_chat_model")]
    assert {event["metadata"]["langgraph_node"] for event in models} <= {"reason"}
    words = [event["data"]["chunk"].text for event in models if "stream" in event["event"]]
    assert "".join(words) == ("" if trigger == "forced" else said(GIVEN["agent_model"]))


@pytest.mark.parametrize("trigger", ["automatic", "overflow"])
async def test_ainvoke_returns_the_answer_and_no_inner_word(begin, trigger):
    talk = await begin(trigger)
    answered = await talk.graph.ainvoke(given_to(trigger), talk.config, context=talk.context)
    check_quiet(answered, INNER)
    assert answered["messages"][-1].text == said(GIVEN["agent_model"])
    assert answered["messages"][0].name == SUMMARY_NAME


@pytest.mark.parametrize("trigger", TRIGGERS)
async def test_the_users_message_stream_is_the_answer_and_nothing_else(begin, trigger):
    talk = await begin(trigger)
    parts = await stream(talk, trigger, "messages")
    words = "".join(message.text for message, _ in parts if isinstance(message, AIMessage))
    assert words == ("" if trigger == "forced" else said(GIVEN["agent_model"]))


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize(
    ("summary", "outcome"), [(None, "done"), ("", "refused"), (RuntimeError("down"), "failed")]
)
async def test_a_status_event_tells_begin_and_end_with_counts(begin, trigger, summary, outcome):
    talk = await begin(trigger, summary=summary)
    await talk.send(given_to(trigger))
    started, finished = (event for event in talk.events if event["type"].startswith("compaction."))
    reason = {"automatic": "messages", "forced": "manual"}.get(trigger, trigger)
    assert (started["type"], started["trigger"]) == ("compaction.started", reason)
    count = 4 if trigger == "forced" else 5
    assert started["messages"] == finished["messages_before"] == count
    assert started["tokens"] == finished["tokens_before"] > 0
    if trigger == "overflow":
        outcome = "done"  # the request did not fit, so a digest stood in
    assert (finished["type"], finished["outcome"]) == ("compaction.finished", outcome)
    assert finished["messages_after"] == (3 if outcome == "done" else count)
    assert finished["tokens_after"] > 0


async def test_the_answer_is_complete_before_flush_and_consolidation_finish(begin):
    talk = await begin(flush=0.4, flush_before=False)
    at: dict[str, float] = {}
    async for mode, part in talk.graph.astream(
        given_to("automatic"),
        talk.config,
        context=talk.context,
        stream_mode=["messages", "values", "updates", "custom"],
    ):
        if mode == "messages" and isinstance(part[0], AIMessage):
            at["words"] = time.perf_counter()
        elif mode == "values" and part["messages"][-1].type == "ai":
            at.setdefault("values", time.perf_counter())
        elif mode == "custom":
            at[part["type"]] = time.perf_counter()
        elif mode == "updates":
            at[next(iter(part))] = time.perf_counter()
    for told in ("words", "values", "reason"):
        assert at[told] < at["memory.flushed"] - 0.2
        assert at[told] < at["memory.consolidated"] - 0.2


@pytest.mark.parametrize("failing", ["flush", "consolidation"])
async def test_an_error_after_the_answer_does_not_reach_the_client(begin, failing):
    talk = await begin()

    def script(messages):
        kind = kind_of(messages)
        return RuntimeError("NOT FOR USERS") if kind == failing else f"- {FLUSH}\n- {FACT}"

    memory = {"memory_model": ScriptedModel(script=script)}
    talk.context = talk.context.model_copy(update=memory)
    parts = await stream(talk, "automatic", MODES)
    assert "NOT FOR USERS" not in repr(parts)
    assert (await talk.messages())[-1].text == said(GIVEN["agent_model"])


async def test_text_for_the_user_is_text_and_not_a_printed_list_of_blocks(begin):
    talk = await begin(answer=AIMessage([{"type": "text", "text": said(GIVEN["agent_model"])}]))
    parts = await stream(talk, "automatic", MODES)
    assert said(GIVEN["agent_model"]) in list(shown(parts))
    assert not any("'type': 'text'" in text or '"type": "text"' in text for text in shown(parts))
    assert (await talk.messages())[-1].text == said(GIVEN["agent_model"])
