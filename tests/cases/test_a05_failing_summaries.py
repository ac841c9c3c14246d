"""A05: a summary call that fails, times out, breaks off or is cancelled costs no history."""

import asyncio
import logging
import time

import pytest
from langchain_core.exceptions import ModelConnectionError
from langchain_core.messages import AIMessage, HumanMessage

from everlong.stores import compactions
from given import case, messages_of
from provider_errors import ProviderError, refused
from scripted_model import Breaking, ScriptedModel, calling

GIVEN = case("A05")
VARIANTS = GIVEN["variants"]
SETTINGS = {
    "trigger_messages": GIVEN["settings"]["trigger_messages"],
    "keep_messages": GIVEN["settings"]["keep_messages"],
    "summary_seconds": GIVEN["settings"]["summary_timeout_s"],
    "flush_before": False,
}
HISTORY = [
    message
    for number in range(0, 80, 2)
    for message in (
        HumanMessage(f"Item {number} costs {number}.", id=f"m{number}"),
        AIMessage(f"Noted, {number}.", id=f"m{number + 1}"),
    )
]
(NEW,) = messages_of(GIVEN["messages"][1:])


def scripted(step):
    """Return what a scripted model does for one step of the given script."""
    if "raise" in step:
        return refused(step["raise"])
    if "stream_then_raise" in step:
        return Breaking("SUMMARY of", ModelConnectionError(step["stream_then_raise"]))
    return float(step["hang_s"])


def failing(variant):
    """Return a summariser that plays the given script, and its last step for ever."""
    steps = iter(variant["summary_model"])
    last = variant["summary_model"][-1]
    return ScriptedModel(script=lambda _: scripted(next(steps, last)))


def conversation(converse, summariser, *, answers=("42",), seconds=SETTINGS["summary_seconds"]):
    return converse(
        model=ScriptedModel(script=list(answers)),
        summary_model=summariser,
        compaction=SETTINGS | {"summary_seconds": seconds},
    )


FAILURES = {
    "429": (VARIANTS[0], 5, "429", 3),
    "hang": (VARIANTS[1], 0.5, "no answer within `summary_seconds` 0.5", 1),
    "401": (VARIANTS[2], 5, "401", 1),
    "broken stream": (VARIANTS[3], 5, "closed", 3),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failed_summary_costs_nothing_but_an_entry_in_the_record(converse, name):
    variant, seconds, reason, tries = FAILURES[name]
    summariser = failing(variant)
    talk = conversation(converse, summariser, seconds=seconds)
    await talk.seed(HISTORY)
    messages = await talk.send({"messages": [NEW]})
    assert messages[:-1] == [*HISTORY, NEW]
    assert messages[-1].text == "42"
    (request,) = talk.watcher.requests
    assert [m.id for m in request[1:]] == [m.id for m in [*HISTORY, NEW]]
    assert len(summariser.requests) == tries
    stored = "\n".join(message.text for message in [*messages, *request[1:]])
    assert not any(word in stored for word in ("rate limited", "bad key", "closed", "SUMMARY of"))
    (entry,) = await compactions.read(talk.store, "kim", talk.thread_id)
    assert entry["outcome"] == "failed"
    assert reason in entry["reason"]
    assert talk.event_types() == ["compaction.started", "compaction.finished"]
    assert talk.events[-1]["outcome"] == "failed"


class Streaming(ScriptedModel):
    """A model that streams even where nobody listens."""

    streaming: bool = False


async def test_a_summary_whose_stream_breaks_off_is_never_taken_for_one(converse):
    broken = scripted(VARIANTS[3]["summary_model"][0])
    talk = conversation(converse, Streaming(script=lambda _: broken, streaming=True))
    await talk.seed(HISTORY)
    messages = await talk.send({"messages": [NEW]})
    assert messages[:-1] == [*HISTORY, NEW]
    assert (await talk.values())["compaction"]["outcome"] == "failed"
    assert not any("SUMMARY" in str(chunk) for chunk, _ in talk.calls[0].chunks)


async def test_an_attempt_follows_in_the_next_turn_and_not_in_the_same(converse):
    summariser = failing(VARIANTS[2])
    looking = [calling(("list_files", {}), prefix=f"c{at}") for at in range(3)]
    talk = conversation(converse, summariser, answers=[*looking, "42", "43"])
    await talk.seed(HISTORY)
    assert await talk.say("And the total?") == "42"
    assert len(summariser.requests) == 1
    assert await talk.say("And now?") == "43"
    assert len(summariser.requests) == 2
    assert len(await compactions.read(talk.store, "kim", talk.thread_id)) == 2


async def test_a_summariser_that_recovers_gets_its_summary_in(converse):
    steps = iter([refused("429 rate limited"), refused("529 overloaded"), "They named 80 items."])
    summariser = ScriptedModel(script=lambda _: next(steps))
    talk = conversation(converse, summariser)
    await talk.seed(HISTORY)
    await talk.send({"messages": [NEW]})
    assert len(summariser.requests) == 3
    assert "They named 80 items." in (await talk.messages())[0].text


class Retrying(ScriptedModel):
    """A model whose client tries again by itself, as those of the providers do."""

    max_retries: int | None = 2


async def test_what_a_client_tries_again_by_itself_is_not_tried_again_on_top(converse):
    summariser = Retrying(script=lambda _: refused("429 rate limited"))
    talk = conversation(converse, summariser)
    await talk.seed(HISTORY)
    await talk.send({"messages": [NEW]})
    assert len(summariser.requests) == 1


@pytest.mark.parametrize(("status", "asked"), [(429, 3), (503, 3), (401, 1), (404, 1), (400, 1)])
async def test_openais_own_client_tries_a_bounded_number_of_times(
    converse, openai_server, status, asked
):
    openai_server.fail_next(status, times=20)
    talk = converse(
        model=ScriptedModel(script=["42"]),
        summary_model="openai:gpt-4o",
        compaction=SETTINGS,
    )
    await talk.seed(HISTORY)
    messages = await talk.send({"messages": [NEW]})
    assert messages[-1].text == "42"
    assert len(messages) == 82
    assert len(openai_server.requests) == asked
    receipt = (await talk.values())["compaction"]
    assert receipt["outcome"] == "failed"
    assert f"HTTP {status}" in receipt["reason"]


async def test_a_cancel_ends_the_call_and_is_no_failure_of_compaction(converse, caplog):
    caplog.set_level(logging.INFO)
    cancel_after_s = VARIANTS[4]["cancel_after_s"]
    summariser = failing(VARIANTS[4])
    talk = conversation(converse, summariser)
    await talk.seed(HISTORY)
    call = asyncio.create_task(talk.send({"messages": [NEW]}))
    await asyncio.wait([call], timeout=cancel_after_s)
    assert summariser.requests
    began = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - began < 3
    assert talk.watcher.requests == []
    assert await talk.messages() == [*HISTORY, NEW]
    assert not (await talk.values()).get("compaction")
    assert await compactions.read(talk.store, "kim", talk.thread_id) == []
    assert talk.event_types() == ["compaction.started"]
    assert "failed" not in caplog.text


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("You exceeded your current quota", 429, "insufficient_quota"),
        ProviderError("invalid request", 400),
        ProviderError("forbidden", 403),
        RuntimeError("a bug"),
    ],
    ids=str,
)
async def test_what_waiting_cannot_mend_is_not_tried_again(converse, error):
    summariser = ScriptedModel(script=[error])
    talk = conversation(converse, summariser)
    await talk.seed(HISTORY)
    await talk.send({"messages": [NEW]})
    assert len(summariser.requests) == 1
