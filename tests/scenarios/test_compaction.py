"""When a compaction happens, what it replaces, and what it leaves alone."""

import logging

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from everlong.nodes.transcript import is_summary
from everlong.stores import transcripts
from failing_store import FailingStore
from scripted_model import ScriptedModel, asks_for_summary, calling

SMALL = {"trigger_messages": 6, "keep_messages": 2, "flush_before": False}
ROUNDS = [
    message
    for number in range(5)
    for message in (
        HumanMessage(f"Question {number}: what of order PX-{4470 + number}?", id=f"h{number}"),
        AIMessage(
            f"Order PX-{4470 + number} is on its way, " + "as planned " * 20, id=f"a{number}"
        ),
    )
]


def answering(*, summary="They spoke of orders PX-4470 to PX-4474."):
    def script(messages):
        return summary if asks_for_summary(messages) else "ok"

    return ScriptedModel(script=script)


async def compacted(talk):
    return [message for message in await talk.messages() if is_summary(message)]


async def test_the_summary_is_a_user_message_right_after_the_system_message(converse):
    talk = converse(model=answering(), compaction=SMALL)
    await talk.seed(ROUNDS)
    await talk.say("next")
    system, summary, answer, question = talk.last_request
    assert system.type == "system"
    assert summary.type == "human"
    assert summary.name == "__compaction_summary__"
    assert summary.text.startswith("Here is a summary of the conversation to date:")
    assert (answer.id, question.text) == ("a4", "next")


async def test_identifiers_that_a_summary_drops_are_carried_over_by_code(converse):
    talk = converse(model=answering(summary="They spoke of orders."), compaction=SMALL)
    for number in range(12):
        await talk.say(
            f"Order PX-{4470 + number} costs ${number + 1},250.00 on 2026-03-{number + 10}."
        )
    (summary,) = await compacted(talk)
    for number in range(10):
        assert f"PX-{4470 + number}" in summary.text
        assert f"${number + 1},250.00" in summary.text
        assert f"2026-03-{number + 10}" in summary.text


async def test_the_next_compaction_merges_the_old_summary_and_not_its_frame(converse):
    summaries = answering(summary="PART")
    talk = converse(model=answering(), summary_model=summaries, compaction=SMALL)
    for number in range(8):
        await talk.say(f"message {number}")
    assert len(await compacted(talk)) == 1
    inner = [request[-1].text for request in summaries.requests]
    assert "[earlier summary]\nPART" in inner[-1]
    assert "Here is a summary" not in inner[-1]


async def test_a_summary_by_the_same_model_extends_the_request_that_was_sent_last(converse):
    model = answering()
    talk = converse(model=model, compaction=SMALL)
    await talk.say(*(f"message {number} about PX-{4470 + number}" for number in range(8)))
    for number, request in enumerate(model.requests):
        if asks_for_summary(request):
            before = model.requests[number - 1]
            assert [m.text for m in request[:-1]] == [m.text for m in before[: len(request) - 1]]
            assert model.tools[number] == model.tools[number - 1] != []


async def test_a_summariser_that_calls_a_tool_is_asked_again_in_text(converse):
    def script(messages):
        if not asks_for_summary(messages):
            return "ok"
        rendered = "<conversation>" in messages[-1].text
        return "They spoke of PX-4470." if rendered else calling(("list_files", {}))

    model = ScriptedModel(script=script)
    talk = converse(model=model, compaction=SMALL)
    await talk.seed(ROUNDS)
    await talk.say("next")
    assert sum(map(asks_for_summary, model.requests)) == 2
    assert "They spoke of PX-4470." in (await compacted(talk))[0].text


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "  \n",
        "<summary></summary>",
        "Error: rate limited",
        "word " * 4000,
        AIMessage("cut off in the mid", response_metadata={"finish_reason": "length"}),
        AIMessage("", additional_kwargs={"refusal": "I cannot help with that."}),
        AIMessage([{"type": "thinking", "thinking": "hm", "signature": "sig"}]),
        RuntimeError("401 bad key"),
        60.0,
    ],
    ids=lambda bad: repr(bad)[:30],
)
async def test_no_bad_summary_replaces_history_that_still_fits(converse, bad):
    summaries = ScriptedModel(script=[bad])
    talk = converse(
        model=ScriptedModel(script=["the answer"]),
        summary_model=summaries,
        compaction=SMALL | {"summary_seconds": 0.3},
    )
    await talk.seed(ROUNDS)
    assert await talk.say("and now?") == "the answer"
    messages = await talk.messages()
    assert [message.id for message in messages[:10]] == [message.id for message in ROUNDS]
    assert len(summaries.requests) == 1
    assert (await talk.values())["compaction"]["outcome"] == "refused"
    assert not any("401" in message.text for message in messages)


async def test_thinking_beside_a_summary_is_not_stored(converse):
    content = [
        {"type": "thinking", "thinking": "let me see", "signature": "sig"},
        {"type": "text", "text": "They spoke of PX-4470."},
    ]
    talk = converse(
        model=ScriptedModel(script=["ok"]),
        summary_model=ScriptedModel(script=[AIMessage(content)]),
        compaction=SMALL,
    )
    await talk.seed(ROUNDS)
    await talk.say("next")
    (summary,) = await compacted(talk)
    assert "PX-4470" in summary.text
    assert "let me see" not in str(summary.content)


async def test_a_refused_summary_is_not_tried_again_in_the_same_call(converse):
    def script(messages):
        if asks_for_summary(messages):
            return ""
        return "done" if messages[-1].type == "tool" else calling(("list_files", {}))

    model = ScriptedModel(script=script)
    talk = converse(model=model, compaction=SMALL)
    await talk.seed(ROUNDS)
    assert await talk.say("look") == "done"
    assert sum(asks_for_summary(request) for request in model.requests) == 1


async def test_the_open_question_stays_word_for_word_however_long_the_tool_loop(converse):
    def script(messages):
        if asks_for_summary(messages):
            return "Files were listed."
        rounds = sum(message.type == "tool" for message in messages)
        asked = len([m for m in messages if m.type == "human" and m.name is None])
        if is_summary(messages[1]) and rounds >= 1:
            return f"done after {asked}"
        return calling(("list_files", {"prefix": f"p{len(messages)}"}), prefix=f"c{len(messages)}")

    talk = converse(model=ScriptedModel(script=script), compaction=SMALL)
    await talk.say("Look through every folder, please: order PX-4471.")
    humans = [message for message in talk.last_request if message.type == "human"]
    assert is_summary(humans[0])
    assert humans[1].text == "Look through every folder, please: order PX-4471."
    assert talk.last_request[2] is not None
    assert talk.last_request[3].tool_calls


async def test_system_messages_of_the_history_are_kept_and_sent_as_one(converse):
    talk = converse(
        model=answering(), compaction=SMALL, system_prompt="You are the billing helper."
    )
    await talk.seed(
        [
            SystemMessage("Never state prices without VAT.", id="s1"),
            *ROUNDS[:4],
            SystemMessage("From now on be brief.", id="s2"),
            *ROUNDS[4:],
        ]
    )
    await talk.say("and for two?")
    (system,) = [message for message in talk.last_request if message.type == "system"]
    assert talk.last_request[0] is system
    assert (
        system.text.index("billing helper") < system.text.index("VAT") < system.text.index("brief")
    )
    stored = [message.id for message in await talk.messages() if message.type == "system"]
    assert stored == ["s1", "s2"]
    assert "VAT" not in (await compacted(talk))[0].text


async def test_pinned_messages_stay_between_summary_and_tail(converse):
    talk = converse(model=answering(), compaction=SMALL)
    pinned = HumanMessage("The safe word is heron.", id="p1", additional_kwargs={"pin": True})
    await talk.seed([*ROUNDS[:2], pinned, *ROUNDS[2:]])
    await talk.say("next")
    summary, second, *_ = await talk.messages()
    assert is_summary(summary)
    assert (second.id, second.text) == ("p1", "The safe word is heron.")


async def test_nothing_is_compacted_below_the_triggers(converse):
    talk = converse(model=answering(), compaction={"trigger_messages": 0})
    await talk.seed(ROUNDS)
    await talk.say("next")
    assert len(await talk.messages()) == 12
    assert "compaction.started" not in talk.event_types()


async def test_the_token_threshold_counts_the_fixed_parts(converse):
    long_rules = "Always answer in the style of the house. " * 300
    settings = {"trigger_messages": 0, "trigger_tokens": 2_500, "keep_messages": 2}
    talk = converse(model=answering(), compaction=settings)
    await talk.seed(ROUNDS)
    await talk.say("without rules")
    assert "compaction.started" not in talk.event_types()
    ruled = converse(model=answering(), compaction=settings, rules=long_rules, thread_id="t2")
    await ruled.seed(ROUNDS)
    await ruled.say("with rules")
    assert "compaction.started" in ruled.event_types()


@pytest.mark.parametrize(
    "error",
    [
        ContextOverflowError("too long"),
        RuntimeError(
            "Error code: 400 - This model's maximum context length is 600 tokens. However, your "
            "messages resulted in 900 tokens."
        ),
    ],
    ids=["typed", "worded"],
)
async def test_an_overflow_is_compacted_and_asked_again_once(converse, error):
    model = ScriptedModel(script=[error, "the answer"])
    talk = converse(
        model=model,
        summary_model=ScriptedModel(script=["They spoke of orders."]),
        compaction={"enabled": False, "keep_messages": 2},
    )
    await talk.seed(ROUNDS)
    assert await talk.say("and now?") == "the answer"
    assert len(model.requests) == 2
    assert (await talk.values())["compaction"]["trigger"] == "overflow"
    assert len(await compacted(talk)) == 1


async def test_a_second_overflow_reaches_the_caller_and_the_question_stays(converse):
    model = ScriptedModel(script=[ContextOverflowError("too long"), ContextOverflowError("again")])
    talk = converse(model=model, summary_model=ScriptedModel(script=["Orders."]), compaction=SMALL)
    await talk.seed(ROUNDS[:4])
    with pytest.raises(ContextOverflowError, match="again"):
        await talk.say("and now?")
    assert (await talk.messages())[-1].text == "and now?"


async def test_overflow_recovery_has_a_switch_of_its_own(converse):
    model = ScriptedModel(script=[ContextOverflowError("too long")])
    talk = converse(model=model, compaction={"overflow_retry": False})
    with pytest.raises(ContextOverflowError):
        await talk.say("and now?")


async def test_a_digest_stands_in_when_nothing_fits_and_no_summary_can_be_had(converse):
    model = ScriptedModel(script=[ContextOverflowError("too long"), "saved"])
    talk = converse(
        model=model,
        summary_model=ScriptedModel(script=[RuntimeError("down")]),
        compaction={"trigger_messages": 0, "keep_messages": 2},
    )
    await talk.seed(ROUNDS)
    assert await talk.say("and now?") == "saved"
    (summary,) = await compacted(talk)
    receipt = (await talk.values())["compaction"]
    assert (receipt["outcome"], receipt["by"]) == ("done", "digest")
    assert "down" not in summary.text
    for number in range(4):
        assert f"PX-{4470 + number}" in summary.text


async def test_the_tail_alone_over_the_trigger_never_summarises_the_summary(converse):
    summary = HumanMessage(
        "Earlier: invoices 1-200 checked.", name="__compaction_summary__", id="s"
    )
    rows = "row,12,ok\n" * 12_000
    model = answering(summary="S")
    talk = converse(
        model=model,
        compaction={"trigger_tokens": 50_000, "keep_messages": 5, "window_tokens": 400_000},
    )
    await talk.seed(
        [
            summary,
            HumanMessage(f"Part 1 {rows}", id="h1"),
            AIMessage("Read.", id="a1"),
            HumanMessage(f"Part 2 {rows}", id="h2"),
            AIMessage("Read.", id="a2"),
        ]
    )
    for _ in range(3):
        await talk.say("next")
    asked = [r for r in model.requests if asks_for_summary(r)]
    assert len(asked) <= 1
    assert len(model.requests) - len(asked) == 3


async def test_a_compaction_alone_answers_nothing_and_the_next_call_does(converse):
    model = answering()
    talk = converse(model=model, compaction=SMALL)
    await talk.seed(ROUNDS)
    await talk.compact("keep the order numbers")
    assert len(await talk.messages()) == 3
    assert "keep the order numbers" in model.requests[-1][-1].text
    assert await talk.say("next") == "ok"


async def test_the_archive_has_every_word_that_compaction_removed(converse):
    talk = converse(model=answering(), compaction=SMALL)
    said = [f"message {number} about heron-{number}" for number in range(9)]
    await talk.say(*said)
    entries = await transcripts.read(talk.store, "kim", "thread-1")
    assert [e.text for e in entries if e.role == "human"] == said
    assert len(entries) == 18


async def test_an_archive_that_cannot_be_written_leaves_the_history(backend, converse, caplog):
    talk = converse(model=answering(), compaction=SMALL)
    talk.use_store(FailingStore(backend.store))
    await talk.seed(ROUNDS)
    talk.store.fail_writes = OSError("disk full")
    assert await talk.say("next") == "ok"
    assert len(await talk.messages()) == 12
    assert (await talk.values())["compaction"]["outcome"] == "failed"
    assert "disk full" in caplog.text
    talk.store.fail_writes = None
    await talk.say("and next")
    entries = await transcripts.read(talk.store, "kim", "thread-1")
    assert [entry.text for entry in entries][-4:] == ["next", "ok", "and next", "ok"]


async def test_old_tool_results_are_shortened_before_any_summary_is_paid_for(converse):
    rounds = []
    for number in range(6):
        rounds += [
            HumanMessage(f"read {number}", id=f"h{number}"),
            calling(("fetch", {"n": number}), prefix=f"c{number}").model_copy(
                update={"id": f"a{number}"}
            ),
            ToolMessage(
                f"HEAD {number} " + "figure 17,204 " * 1_500 + f" TAIL {number}",
                tool_call_id=f"c{number}_0_fetch",
                name="fetch",
                id=f"t{number}",
            ),
            AIMessage(f"read it {number}", id=f"b{number}"),
        ]
    model = answering()
    talk = converse(
        model=model,
        compaction={
            "trigger_messages": 0,
            "trigger_tokens": 40_000,
            "prune": {"protect_tokens": 8_000, "minimum_tokens": 4_000},
        },
    )
    await talk.seed(rounds)
    before = [message.id for message in await talk.messages()]
    await talk.say("and?")
    after = await talk.messages()
    assert [message.id for message in after[: len(before)]] == before
    assert not any(asks_for_summary(request) for request in model.requests)
    assert (await talk.values())["compaction"]["outcome"] == "shortened"
    first = next(message for message in after if message.id == "t0")
    assert "HEAD 0" in first.text
    assert "TAIL 0" in first.text
    assert len(first.text) < 2_500
    assert "large_tool_results/" in first.text


async def test_the_window_strategy_drops_without_a_model_and_cuts_at_a_user_message(converse):
    model = answering()
    talk = converse(
        model=model, compaction={"strategy": "window", "trigger_messages": 6, "keep_messages": 2}
    )
    await talk.seed(ROUNDS)
    await talk.say("next")
    assert [message.text for message in await talk.messages()] == ["next", "ok"]
    assert len(model.requests) == 1
    entries = await transcripts.read(talk.store, "kim", "thread-1")
    assert entries[0].text == ROUNDS[0].text


async def test_settings_that_compact_all_the_time_are_named_once(converse, caplog):
    caplog.set_level(logging.WARNING, logger="everlong.compaction")
    talk = converse(
        model=answering(),
        compaction={"trigger_messages": 7, "keep_messages": 6, "flush_before": False},
    )
    await talk.say("a", "b")
    warnings = [r.getMessage() for r in caplog.records if "trigger_messages` 7" in r.getMessage()]
    assert len(warnings) == 1
    assert "at every request" in warnings[0]
