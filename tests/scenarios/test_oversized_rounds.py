"""What does not fit though nothing older is left: tool rounds and tails over the window (R22)."""

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from everlong.nodes.pruning import EVICTED
from everlong.nodes.tokens import estimate_messages
from everlong.stores import files, transcripts
from failing_store import FailingStore
from orders import ROUNDS, answering
from scripted_model import ScriptedModel, asks_for_summary, calling

WINDOW = 64_000
USABLE = WINDOW - 20_000
KNOWN = {"window_tokens": WINDOW, "trigger_messages": 0}
PAGES = 12


@tool
def fetch(number: int) -> str:
    """Fetch a page."""
    return f"HEAD-{number} " + f"figure {number}17,204 " * 2_000 + f"TAIL-{number}"


def fetching(*, pages=PAGES, refuses=False):
    """Fetch all pages at once, then answer; refuse what is over the window, as providers do."""

    def script(messages):
        if refuses and estimate_messages(messages) > WINDOW:
            return ContextOverflowError("prompt is too long: 99000 tokens > 64000 maximum")
        if asks_for_summary(messages):
            return "They spoke of orders."
        if messages[-1].type == "tool":
            return "read them"
        return calling(*(("fetch", {"number": number}) for number in range(pages)))

    return ScriptedModel(script=script)


def results_of(messages):
    return [message for message in messages if isinstance(message, ToolMessage)]


@pytest.mark.parametrize("known", [True, False], ids=["window known", "window unknown"])
async def test_one_batch_that_is_over_the_window_is_shortened_and_goes_on(converse, known):
    settings = KNOWN if known else {"trigger_messages": 0}
    talk = converse(model=fetching(refuses=True), tools=[fetch], compaction=settings)
    await talk.seed(ROUNDS)
    assert await talk.say("fetch them all") == "read them"
    assert estimate_messages(talk.last_request) < USABLE
    sent = results_of(talk.last_request)
    assert len(sent) == PAGES
    assert all(f"HEAD-{n}" in one.text for n, one in enumerate(sent))
    assert all(f"TAIL-{n}" in one.text for n, one in enumerate(sent))
    assert len(talk.watcher.requests) == (2 if known else 3)


async def test_every_result_is_readable_by_its_path_and_whole_in_the_transcript(converse):
    talk = converse(model=fetching(), tools=[fetch], compaction=KNOWN)
    await talk.say("fetch them all")
    entries = await transcripts.read(talk.store, "kim", "thread-1")
    whole = {entry.message_id: entry for entry in entries if entry.role == "tool"}
    shortened = [
        one for one in results_of(await talk.messages()) if EVICTED in one.additional_kwargs
    ]
    assert shortened
    for number, result in enumerate(results_of(await talk.messages())):
        full = fetch.invoke({"number": number})
        assert await transcripts.full_text(talk.store, "kim", whole[result.id]) == full
        if result in shortened:
            path = result.additional_kwargs[EVICTED]["path"]
            assert path in result.text
            assert await files.read_text(talk.store, "kim", path) == full


async def test_results_are_shortened_no_more_than_the_window_asks(converse):
    roomy = KNOWN | {"window_tokens": 110_000}
    lengths = []
    for settings, thread in ((KNOWN, "t1"), (roomy, "t2")):
        talk = converse(model=fetching(), tools=[fetch], compaction=settings, thread_id=thread)
        await talk.say("fetch them all")
        lengths.append(sum(len(one.text) for one in results_of(talk.last_request)))
    assert lengths[0] < lengths[1]


async def test_the_meter_tells_the_truth_after_shortening(converse):
    talk = converse(model=fetching(), tools=[fetch], compaction=KNOWN)
    await talk.say("fetch them all")
    values = await talk.values()
    assert values["meter"]["tokens"] == estimate_messages(values["messages"])
    assert values["compaction"]["tokens_after"] < USABLE < values["compaction"]["tokens_before"]


async def test_a_batch_that_no_model_has_read_is_not_pruned_as_old(converse):
    talk = converse(
        model=fetching(pages=3),
        tools=[fetch],
        compaction=KNOWN | {"prune": {"protect_tokens": 1_000, "minimum_tokens": 1_000}},
    )
    await talk.seed([HumanMessage("word " * 30_000, id="h"), AIMessage("ok", id="a")])
    await talk.say("fetch them all")
    assert all(
        one.text == fetch.invoke({"number": n})
        for n, one in enumerate(results_of(talk.last_request))
    )


async def test_arguments_over_the_window_are_shortened_after_the_results(converse):
    written = "line of a long report\n" * 12_000
    caller = calling(("write", {"path": "report.txt", "text": written}), prefix="c")
    talk = converse(model=ScriptedModel(script=["ok"]), compaction=KNOWN)
    await talk.send(
        {
            "messages": [
                HumanMessage("Write the report.", id="h"),
                caller.model_copy(update={"id": "a"}),
                ToolMessage("written", tool_call_id="c_0_write", name="write", id="t"),
            ]
        }
    )
    assert estimate_messages(talk.last_request) < USABLE
    (called,) = [one for one in talk.last_request if one.id == "a"]
    assert called.tool_calls[0]["args"]["path"] == "report.txt"
    assert "large_tool_results/" in called.tool_calls[0]["args"]["text"]
    entries = await transcripts.read(talk.store, "kim", "thread-1")
    assert written in transcripts.messages_of(entries)[1].tool_calls[0]["args"]["text"]


async def test_a_tail_that_does_not_fit_shrinks_from_its_old_end_first(converse):
    model = fetching()
    talk = converse(model=model, compaction=KNOWN | {"keep_messages": 20})
    long = [
        kind(f"{name}{number}: " + "word " * 9_000, id=f"{name}{number}")
        for number in range(5)
        for kind, name in ((HumanMessage, "h"), (AIMessage, "a"))
    ]
    await talk.seed(long)
    await talk.send({"messages": [HumanMessage("Where are we?", id="asked")]})
    receipt = (await talk.values())["compaction"]
    assert receipt["plain_cut"] == 0
    assert 0 < receipt["safe_cut"] < len(long)
    assert "so that the request fits" in receipt["cut_reason"]
    kept = [one.id for one in talk.last_request if one.id in {each.id for each in long}]
    assert kept == [one.id for one in long[receipt["safe_cut"] :]]
    assert len(kept) >= 3
    assert not any(EVICTED in one.additional_kwargs for one in talk.last_request)


async def test_the_pins_stay_whole_while_everything_else_gives_way(converse):
    pinned = HumanMessage("The safe word is heron. " * 800, id="p", additional_kwargs={"pin": True})
    talk = converse(model=fetching(), tools=[fetch], compaction=KNOWN)
    await talk.seed([pinned, AIMessage("Noted.", id="a")])
    await talk.say("fetch them all")
    assert next(one for one in talk.last_request if one.id == "p").content == pinned.content


async def test_without_a_store_old_messages_are_still_summarised(converse):
    talk = converse(
        model=fetching(), compaction=KNOWN | {"trigger_messages": 6, "keep_messages": 2}
    )
    talk.use_store(None)
    await talk.seed(ROUNDS)
    await talk.say("next")
    receipt = (await talk.values())["compaction"]
    assert (receipt["outcome"], receipt["by"]) == ("done", "model")


async def test_without_a_store_what_cannot_be_moved_out_stays_and_is_named(converse, caplog):
    talk = converse(model=fetching(), tools=[fetch], compaction=KNOWN)
    talk.use_store(None)
    await talk.seed(ROUNDS)
    assert await talk.say("fetch them all") == "read them"
    assert all(
        one.text == fetch.invoke({"number": n})
        for n, one in enumerate(results_of(talk.last_request))
    )
    receipt = (await talk.values())["compaction"]
    assert receipt["outcome"] == "done"
    assert "no store" in receipt["too_long"]
    assert "no store" in caplog.text


async def test_a_store_that_cannot_be_written_leaves_the_history_and_the_call_goes_on(
    backend, converse, caplog
):
    talk = converse(model=fetching(), tools=[fetch], compaction=KNOWN)
    talk.use_store(FailingStore(backend.store))
    await talk.seed(ROUNDS)
    before = [one.id for one in await talk.messages()]
    talk.store.fail_writes = OSError("disk full")
    assert await talk.say("fetch them all") == "read them"
    assert [one.id for one in await talk.messages()][: len(before)] == before
    assert (await talk.values())["compaction"]["outcome"] == "failed"
    assert "disk full" in caplog.text
    talk.store.fail_writes = None
    await talk.compact()
    assert (await talk.values())["compaction"]["outcome"] == "done"


async def test_a_message_that_cannot_be_stored_stays_and_the_others_are_summarised(
    backend, converse, caplog
):
    talk = converse(model=answering(), compaction=KNOWN, transcript=False)
    talk.use_store(FailingStore(backend.store))
    await talk.seed(ROUNDS)
    talk.store.fail_writes = OSError("disk full")
    big = HumanMessage("word " * 70_000, id="big")
    assert (await talk.send({"messages": [big]}))[-1].type == "ai"
    assert talk.last_request[-1].content == big.content
    assert (await talk.values())["compaction"]["outcome"] == "done"
    assert "disk full" in caplog.text
