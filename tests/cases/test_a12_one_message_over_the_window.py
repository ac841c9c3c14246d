"""A12: one message larger than the window."""

import re

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everlong.nodes.pruning import EVICTED
from everlong.nodes.tokens import estimate_messages
from everlong.nodes.transcript import is_summary
from everlong.stores import files, transcripts
from given import case, messages_of
from scripted_model import ScriptedModel, asks_for_summary, calling

A12 = case("A12")
SETTINGS = A12["settings"]
H0, A0, BIG = messages_of(A12["messages"])
REFUSAL = "prompt is too long: 338000 tokens > 32000 maximum"
TOLD = re.compile(r"stored whole as (large_tool_results/\w+\.txt)")


def is_flush(messages):
    return "NO_REPLY" in messages[-1].text


def answering(*, refuses=False, flush="NO_REPLY"):
    """Look into the log when asked for a worker; refuse what is over the window, if so told."""

    def script(messages):
        if is_flush(messages):
            return flush
        if refuses and estimate_messages(messages) > SETTINGS["window_tokens"]:
            return ContextOverflowError(REFUSAL)
        if asks_for_summary(messages):
            return "The user prefers metric units."
        last = messages[-1]
        if last.type == "tool":
            return "7" if "worker=7" in last.text else "not found"
        path = next((found[1] for one in messages if (found := TOLD.search(one.text))), "")
        return calling(("read_file", {"path": path})) if "worker number" in last.text else "Read."

    return ScriptedModel(script=script)


def begin(converse, *, known=True, **context):
    settings = SETTINGS if known else {"keep_messages": SETTINGS["keep_messages"]}
    given = {"model": answering(), "compaction": settings} | context
    return converse(**given)


async def run(talk):
    await talk.seed([H0, A0])
    await talk.send({"messages": [BIG]})


@pytest.mark.parametrize("known", [True, False], ids=["window known", "window unknown"])
async def test_1_the_text_moves_to_the_store_with_a_preview_and_a_readable_path(converse, known):
    talk = begin(converse, model=answering(refuses=True), known=known)
    await run(talk)
    (big,) = [one for one in await talk.messages() if one.id == "big"]
    path = big.additional_kwargs[EVICTED]["path"]
    assert await files.read_text(talk.store, "kim", path) == BIG.content
    assert await files.read_text(talk.store, "eve", path) is None
    assert path in big.text
    assert "read_file" in big.text
    assert f"{len(BIG.content):,} characters" in big.text
    assert "Here is the log: 2026-03-01 worker=7 ok" in big.text
    assert big.text.endswith("worker=7 ok\n")
    assert len(big.text) < 2_500
    assert talk.last_request[-1].text == big.text


async def test_1_where_the_window_is_known_no_provider_refuses_first(converse):
    talk = begin(converse, model=answering(refuses=True))
    await run(talk)
    assert len(talk.watcher.requests) == 1
    assert (await talk.values())["compaction"]["trigger"] == "tokens"


async def test_1_where_it_is_unknown_the_refusal_leads_to_the_same(converse):
    talk = begin(converse, model=answering(refuses=True), known=False)
    await run(talk)
    assert len(talk.watcher.requests) == 2
    assert (await talk.values())["compaction"]["trigger"] == "overflow"


@pytest.mark.parametrize("known", [True, False], ids=["window known", "window unknown"])
async def test_1_nothing_loops(converse, known):
    model = answering(refuses=True)
    talk = begin(converse, model=model, known=known)
    await run(talk)
    assert sum(map(asks_for_summary, model.requests)) <= 2
    await talk.say("and?", "and?")
    assert sum(map(asks_for_summary, model.requests)) <= 2


@pytest.mark.parametrize("known", [True, False], ids=["window known", "window unknown"])
async def test_2_the_next_turn_works_and_knows_what_was_said_before(converse, known):
    talk = begin(converse, model=answering(refuses=True), known=known)
    await run(talk)
    question = A12["steps"][1]["send"]["human"]
    assert await talk.say(question) == A12["agent_model"][1]["text"]
    request = talk.last_request
    known_texts = [one.text for one in request if one.id in ("h0", "a0") or is_summary(one)]
    assert any("metric units" in text for text in known_texts)


async def test_2_the_meter_tells_the_truth_afterwards(converse):
    talk = begin(converse)
    await run(talk)
    values = await talk.values()
    assert values["meter"]["tokens"] == estimate_messages(values["messages"])
    assert values["compaction"]["tokens_after"] < 2_000


async def test_2_the_transcript_keeps_the_whole_text(converse):
    talk = begin(converse)
    await run(talk)
    entries = await transcripts.read(talk.store, "kim", "thread-1")
    (entry,) = [one for one in entries if one.message_id == "big"]
    assert await transcripts.full_text(talk.store, "kim", entry) == BIG.content


@pytest.mark.parametrize("known", [True, False], ids=["window known", "window unknown"])
async def test_3_the_flush_input_is_bounded_and_a_refusal_is_not_retried(converse, known):
    flushes = ScriptedModel(script=lambda _: RuntimeError("Error code: 400 - too long"))
    talk = begin(
        converse,
        known=known,
        model=answering(refuses=True),
        memory_model=flushes,
        memory={"enabled": True, "consolidate": "on_request"},
    )
    await run(talk)
    assert 1 <= len(flushes.requests) <= 2
    assert all(len(request[-1].text) < 80_000 for request in flushes.requests)
    assert "I prefer metric units" in flushes.requests[-1][-1].text


async def test_4_calls_elsewhere_in_the_thread_are_untouched(converse):
    caller = calling(("list_files", {"prefix": "x" * 3_000})).model_copy(update={"id": "ac"})
    earlier = [
        HumanMessage("List them.", id="hc"),
        caller,
        ToolMessage("none", tool_call_id="call_0_list_files", name="list_files", id="tc"),
        AIMessage("There are none.", id="ad"),
    ]
    talk = begin(converse, compaction=SETTINGS | {"keep_messages": 8})
    await talk.seed([*earlier, H0, A0])
    await talk.send({"messages": [BIG]})
    by_id = {one.id: one for one in await talk.messages()}
    for message in earlier:
        assert by_id[message.id].content == message.content
    assert by_id["ac"].tool_calls == caller.tool_calls


def attachment(kind, name, tokens):
    text = f"{name} begins. " + "row " * tokens + f"{name} ends."
    if kind == "document":
        source = {"type": "text", "media_type": "text/plain", "data": text}
        return {"type": kind, "title": name, "source": source}
    return {"type": kind, "text": text, "title": name}


@pytest.mark.parametrize("known", [True, False], ids=["window known", "window unknown"])
async def test_vary_answered_long_ago_it_keeps_the_summary_input_bounded(converse, known):
    model = answering()
    talk = begin(converse, known=known, model=model)
    answered = [BIG, AIMessage("Read.", id="read"), HumanMessage("Thanks.", id="h2")]
    await talk.seed([H0, A0, *answered, AIMessage("Welcome.", id="a2")])
    for _ in range(3):
        await talk.say("and?")
    summaries = [request for request in model.requests if asks_for_summary(request)]
    window = SETTINGS["window_tokens"] if known else 160_000
    assert all(estimate_messages(request) < window for request in summaries)
    assert len(summaries) <= 2
    assert estimate_messages(talk.last_request) < window


async def test_vary_the_user_is_told_which_message_moved(converse):
    talk = begin(converse)
    await run(talk)
    (told,) = [event for event in talk.events if event["type"] == "eviction"]
    (big,) = [one for one in await talk.messages() if one.id == "big"]
    assert (told["message"], told["what"]) == ("big", "user message")
    assert told["path"] == big.additional_kwargs[EVICTED]["path"]
    assert told["chars"] == len(BIG.content)


@pytest.mark.parametrize("kind", ["text-plain", "document", "text"])
async def test_vary_attachments_are_named_and_the_chat_text_stays(converse, kind):
    share = int(SETTINGS["window_tokens"] * 0.45)
    names = ["north.txt", "south.txt", "east.txt"]
    asked = {"type": "text", "text": "Compare these three, please."}
    content = [asked, *(attachment(kind, name, share) for name in names)]
    talk = begin(converse)
    await talk.send({"messages": [HumanMessage(content, id="three")]})
    sent = talk.last_request[-1]
    assert sent.id == "three"
    first, *previews = [block["text"] for block in sent.content]
    assert first == asked["text"]
    for name, text in zip(names, previews, strict=True):
        assert text.startswith(f"[The attachment {name!r} is too long")
        assert f"{name} begins." in text
        assert f"{name} ends." in text
    path = sent.additional_kwargs[EVICTED]["path"]
    whole = await files.read_text(talk.store, "kim", path)
    for name, text in zip(names, previews, strict=True):
        offset = int(re.search(r"offset=(\d+)", text)[1])
        assert whole[offset:].startswith(f"{name} begins.")


@pytest.mark.parametrize("language", ["日志 2026-03-01 正常。", "2026-03-01 worker=7 ok\n"])
async def test_vary_a_message_in_any_language_over_a_window_of_any_size(converse, language):
    talk = begin(converse, compaction={"window_tokens": 8_000})
    await talk.seed([H0, A0])
    await talk.send({"messages": [HumanMessage(language * 9_000, id="big")]})
    assert estimate_messages(talk.last_request) < 8_000
    assert await talk.say("next") == "Read."


async def test_vary_without_a_store_the_text_stays_and_the_log_names_it(converse, caplog):
    talk = begin(converse)
    talk.use_store(None)
    await run(talk)
    assert talk.last_request[-1].content == BIG.content
    assert "no store" in caplog.text
    assert "too_long" in (await talk.values())["compaction"]
