"""When a compaction happens, what it replaces, and what it leaves alone."""

import logging

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from everlong.nodes.transcript import is_summary
from everlong.stores import transcripts
from failing_store import FailingStore
from orders import ROUNDS, SMALL, answering, compacted
from scripted_model import ScriptedModel, asks_for_summary, calling


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
    settings = {"trigger_messages": 0, "trigger_tokens": 3_600, "keep_messages": 2}
    talk = converse(model=answering(), compaction=settings)
    await talk.seed(ROUNDS)
    await talk.say("without rules")
    assert "compaction.started" not in talk.event_types()
    ruled = converse(model=answering(), compaction=settings, rules=long_rules, thread_id="t2")
    await ruled.seed(ROUNDS)
    await ruled.say("with rules")
    assert "compaction.started" in ruled.event_types()


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


READ = "figure 17,204 " * 1_500


def reading(count):
    return [
        message
        for number in range(count)
        for message in (
            HumanMessage(f"read {number}", id=f"h{number}"),
            calling(
                ("fetch", {"note": f"N{number} " + "as asked " * 400}), prefix=f"c{number}"
            ).model_copy(update={"id": f"a{number}"}),
            ToolMessage(READ, tool_call_id=f"c{number}_0_fetch", name="fetch", id=f"t{number}"),
            AIMessage(f"read it {number}", id=f"b{number}"),
        )
    ]


async def test_shortening_does_not_spare_the_summary_where_messages_triggered(converse):
    model = answering()
    prune = {"protect_tokens": 8_000, "minimum_tokens": 4_000}
    talk = converse(
        model=model, compaction={"trigger_messages": 24, "keep_messages": 8, "prune": prune}
    )
    await talk.seed(reading(6))
    await talk.say("and?")
    assert sum(map(asks_for_summary, model.requests)) == 1
    assert (await talk.values())["compaction"]["outcome"] == "done"


@pytest.mark.parametrize(("messages", "shortened"), [(24, False), (25, True)])
async def test_arguments_are_shortened_from_so_many_messages_on_system_messages_aside(
    converse, messages, shortened
):
    talk = converse(
        model=answering(),
        compaction={
            "trigger_messages": 0,
            "keep_messages": 30,
            "truncate_args": {"enabled": True, "keep_messages": 4, "trigger_tokens": 10**6},
        },
    )
    extra = [HumanMessage(f"note {number}") for number in range(messages - 24)]
    await talk.seed([SystemMessage("Be brief.", id="s"), *reading(6), *extra])
    await talk.compact()
    first = next(one for one in await talk.messages() if one.id == "a0")
    assert ("large_tool_results/" in str(first.tool_calls)) is shortened
