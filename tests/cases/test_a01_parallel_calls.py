"""A01: a cut never falls inside a group of parallel calls."""

from collections.abc import Sequence

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everlong.nodes.tokens import tail_size
from everlong.nodes.transcript import is_summary
from given import case, messages_of
from scripted_model import ScriptedModel

GIVEN = case("A01")
MESSAGES = messages_of(GIVEN["messages"])
SUMMARY = GIVEN["summary_model"][0]["text"]
IDS = [message.id for message in MESSAGES]
A1, T3 = IDS.index("a1"), IDS.index("t3")
WITHIN_T1 = [tail_size(MESSAGES[-1]) + 200, 1_000, sum(map(tail_size, MESSAGES[3:])) + 100]


def reordered(order: Sequence[int]) -> list[BaseMessage]:
    results = MESSAGES[2:5]
    return [*MESSAGES[:2], *(results[place] for place in order), *MESSAGES[5:]]


def twice() -> list[BaseMessage]:
    """The group, and a second one right after it, whose calls have ids of their own."""
    asking = MESSAGES[1]
    assert isinstance(asking, AIMessage)
    calls = [{**call, "id": f"d{call['id']}"} for call in asking.tool_calls]
    again = [asking.model_copy(update={"id": "b1", "tool_calls": calls})]
    again += [
        result.model_copy(update={"id": f"u{at}", "tool_call_id": f"d{result.tool_call_id}"})
        for at, result in enumerate(MESSAGES[2:5])
    ]
    return [*MESSAGES[:5], *again, *MESSAGES[5:]]


def speaking() -> list[BaseMessage]:
    asking = MESSAGES[1].model_copy(update={"content": "I look all three up."})
    return [MESSAGES[0], asking, *MESSAGES[2:]]


VARIATIONS = {
    "as given": MESSAGES,
    "results in reverse": reordered((2, 1, 0)),
    "results mixed": reordered((1, 2, 0)),
    "two groups in a row": twice(),
    "text and calls": speaking(),
}


in_memory = pytest.mark.parametrize("backend", ["memory"], indirect=True)


async def compacted(converse, messages, **keep):
    """Run the case's last message on its history; return the conversation."""
    talk = converse(
        model=ScriptedModel(script=["Bergen."]),
        summary_model=ScriptedModel(script=[SUMMARY]),
        compaction={"trigger_messages": 6, "flush_before": False, **keep},
    )
    await talk.seed(messages[:-1])
    await talk.send({"messages": [messages[-1]]})
    return talk


def check_kept(talk, messages):
    """The request is the system message, at most a summary, and a whole end of the history."""
    system, *sent = talk.last_request
    assert system.type == "system"
    summarised = is_summary(sent[0])
    kept = sent[summarised:]
    assert kept[-1].id == "h2"
    assert kept[-1].content == messages[-1].content
    assert isinstance(kept[-1], HumanMessage)
    together = {"a1", "t1", "t2", "t3"}
    assert together & {message.id for message in kept} in (set(), together)
    by_id = {message.id: message.content for message in messages}
    assert all(by_id[message.id] == message.content for message in kept)
    return sent


@in_memory
@pytest.mark.parametrize("keep", range(1, 7))
@pytest.mark.parametrize("name", VARIATIONS)
async def test_a_count_never_parts_the_calls_from_their_results(converse, name, keep):
    messages = VARIATIONS[name]
    talk = await compacted(converse, messages, keep_messages=keep)
    sent = check_kept(talk, messages)
    stored = await talk.messages()
    assert [message.id for message in stored[:-1]] == [message.id for message in sent]
    assert stored[-1].text == "Bergen."
    receipt = (await talk.values())["compaction"]
    if receipt["outcome"] == "done":
        assert receipt["safe_cut"] <= A1 or receipt["safe_cut"] > T3
        assert sum(map(is_summary, sent)) == 1


@in_memory
@pytest.mark.parametrize("budget", WITHIN_T1)
@pytest.mark.parametrize("name", ["as given", "results in reverse", "text and calls"])
async def test_a_token_budget_that_ends_inside_a_result_parts_nothing(converse, name, budget):
    messages = VARIATIONS[name]
    talk = await compacted(converse, messages, keep_messages=6, keep_tokens=budget)
    check_kept(talk, messages)


@pytest.mark.parametrize(
    ("keep", "kept"), [(2, ["a2", "h2"]), (3, ["a1", "t1", "t2", "t3", "a2", "h2"])]
)
async def test_the_group_is_summarised_as_a_whole_or_kept_as_a_whole(converse, keep, kept):
    talk = await compacted(converse, MESSAGES, keep_messages=keep)
    system, summary, *tail = talk.last_request
    assert system.type == "system"
    assert (summary.type, summary.name) == ("human", "__compaction_summary__")
    assert SUMMARY in summary.text
    assert [message.id for message in tail] == kept
    assert [message.id for message in await talk.messages()][1:-1] == kept
