"""Each attempt to compact leaves one record, whatever it came to."""

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everlong.nodes.transcript import is_summary
from everlong.stores import compactions
from orders import ROUNDS, SMALL, answering, only_record, records
from scripted_model import ScriptedModel, calling

SUMMARY = AIMessage(
    "They spoke of orders; the invoice is QQ-77123.",
    usage_metadata={
        "input_tokens": 900,
        "output_tokens": 12,
        "total_tokens": 912,
        "input_token_details": {"cache_read": 800},
    },
)


@pytest.mark.parametrize(
    ("summary", "outcome", "reason"),
    [
        (SUMMARY, "done", ""),
        ("", "refused", "empty"),
        ("word " * 4000, "refused", "not smaller"),
        (RuntimeError("401 bad key"), "failed", "401 bad key"),
        (60.0, "failed", "0.3"),
    ],
    ids=["done", "empty", "longer", "error", "too late"],
)
async def test_every_attempt_leaves_one_record_with_its_outcome_and_why(
    converse, summary, outcome, reason
):
    settings = SMALL | {"summary_seconds": 0.3}
    talk = converse(
        model=ScriptedModel(script=["the answer"]),
        summary_model=ScriptedModel(script=[summary]),
        compaction=settings,
    )
    await talk.seed(ROUNDS)
    await talk.say("and now?")
    record = await only_record(talk)
    assert record["outcome"] == outcome
    assert reason in record["reason"]
    assert (record["trigger"], record["plain_cut"], record["safe_cut"]) == ("messages", 9, 9)
    assert record["cut_reason"]
    assert record["model"] == "ScriptedModel"
    assert record["messages_before"] == 11
    assert record["messages_after"] == (3 if outcome == "done" else 11)
    for size in ("tokens", "request"):
        smaller = record[f"{size}_after"] < record[f"{size}_before"]
        assert smaller is (outcome == "done")
    assert 0 <= record["milliseconds"] < 60_000
    assert record["at"] == "2026-03-09T12:00:00.000Z"
    assert ("message_ids" in record) is (outcome == "done")
    assert (await talk.values())["compaction"]["outcome"] == outcome


async def test_the_record_of_a_compaction_tells_cost_length_and_identifiers(converse):
    talk = converse(model=answering(SUMMARY), compaction=SMALL)
    await talk.seed(ROUNDS)
    await talk.say("and now?")
    record = await only_record(talk)
    assert record["usage"] == {"input": 900, "cached": 800, "output": 12}
    assert record["requests"] == 1
    assert record["by"] == "model"
    (summary,) = [message for message in await talk.messages() if is_summary(message)]
    assert record["summary_id"] == summary.id
    assert 0 < record["summary_tokens"] < 200
    assert record["carried"] == [f"PX-{4470 + number}" for number in reversed(range(5))]
    assert record["carried_over"] == 5
    assert record["invented"] == ["QQ-77123"]
    assert record["request_before"] > record["tokens_before"] > record["summary_tokens"]


async def test_a_compaction_that_was_asked_for_tells_who_asked_and_for_what(converse):
    talk = converse(model=answering(SUMMARY), compaction=SMALL)
    await talk.seed(ROUNDS)
    await talk.compact("keep the order numbers")
    record = await only_record(talk)
    assert (record["trigger"], record["outcome"]) == ("manual", "done")
    assert (record["asked_by"], record["instructions"]) == ("kim", "keep the order numbers")
    assert "instructions" not in (await talk.values())["compaction"]


async def test_an_attempt_with_nothing_to_replace_is_recorded_too(converse):
    model = answering()
    talk = converse(model=model, compaction={"keep_messages": 20})
    await talk.seed(ROUNDS[:4])
    await talk.compact()
    record = await only_record(talk)
    assert (record["trigger"], record["outcome"]) == ("manual", "nothing to replace")
    assert record["reason"]
    assert record["model"] == ""
    assert "message_ids" not in record
    assert model.requests == []


async def test_an_overflow_and_a_digest_are_recorded(converse):
    talk = converse(
        model=ScriptedModel(script=[ContextOverflowError("too long"), "saved"]),
        summary_model=ScriptedModel(script=[RuntimeError("down")]),
        compaction={"trigger_messages": 0, "keep_messages": 2},
    )
    await talk.seed(ROUNDS)
    assert await talk.say("and now?") == "saved"
    record = await only_record(talk)
    assert (record["trigger"], record["outcome"], record["by"]) == ("overflow", "done", "digest")
    assert "down" in record["reason"]
    assert "carried_over" in record


async def test_shortened_results_are_recorded_without_a_model(converse):
    results = [
        message
        for number in range(6)
        for message in (
            HumanMessage(f"read {number}", id=f"h{number}"),
            calling(("fetch", {"n": number}), prefix=f"c{number}").model_copy(
                update={"id": f"a{number}"}
            ),
            ToolMessage(
                "figure 17,204 " * 1_500,
                tool_call_id=f"c{number}_0_fetch",
                name="fetch",
                id=f"t{number}",
            ),
            AIMessage(f"read it {number}", id=f"b{number}"),
        )
    ]
    talk = converse(
        model=answering(SUMMARY),
        compaction={
            "trigger_messages": 0,
            "trigger_tokens": 40_000,
            "prune": {"protect_tokens": 8_000, "minimum_tokens": 4_000},
        },
    )
    await talk.seed(results)
    await talk.say("and?")
    record = await only_record(talk)
    assert (record["trigger"], record["outcome"]) == ("tokens", "shortened")
    assert record["tokens_after"] < record["tokens_before"]
    assert record["request_after"] < 40_000 <= record["request_before"]
    assert record["messages_before"] == record["messages_after"] == 25
    assert (record["model"], record["requests"]) == ("", 0)


async def test_attempts_are_read_in_the_order_in_which_they_were_made(converse):
    summaries = iter(["", SUMMARY, RuntimeError("down"), SUMMARY])
    talk = converse(
        model=answering(SUMMARY),
        summary_model=ScriptedModel(script=lambda _: next(summaries)),
        compaction=SMALL,
    )
    await talk.seed(ROUNDS)
    for number in range(4):
        await talk.compact()
        await talk.seed([HumanMessage("more", id=f"m{number}"), AIMessage("yes", id=f"n{number}")])
        await talk.seed([HumanMessage("more", id=f"o{number}"), AIMessage("yes", id=f"p{number}")])
    made = await records(talk)
    assert [one["outcome"] for one in made] == ["refused", "done", "failed", "done"]
    assert [one["number"] for one in made] == [1, 2, 3, 4]
    assert len({one["id"] for one in made}) == 4
    assert await records(talk, limit=1) == made[-1:]
    assert await compactions.find(talk.store, "kim", "thread-1", made[1]["id"][:9]) == made[1]
