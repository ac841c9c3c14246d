"""What of an input is new to a thread, and what of a result a call has brought."""

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.store.memory import InMemoryStore

from everlong.graph.exchange import (
    brought,
    has_history,
    new_from_client,
    new_from_parent,
    replaced,
)
from everlong.nodes.pruning import EVICTED, SHORTENED
from everlong.stores import compactions
from everlong.stores.files import evicted_path
from everlong.stores.text import clean_text

SUMMARY = HumanMessage("a summary", id="s", name="__compaction_summary__")


def human(name, text=""):
    return HumanMessage(text or name, id=name)


def ai(name, text="", **more):
    return AIMessage(text or name, id=name, **more)


def sent(given, kept, gone=()):
    """Return what of a client's input goes on to a thread that holds `kept`."""
    return new_from_client({"messages": given}, {"messages": kept}, gone)["messages"]


def passed(given, kept, last=""):
    """Return what of a parent's messages goes on to the agent, which was given `last` before."""
    state = {"messages": kept, "call": {"last": last}}
    return new_from_parent({"messages": given}, state)["messages"]


def ids(messages):
    return [one.id for one in messages]


ROUNDS = [human("q1"), ai("a1"), human("q2"), ai("a2")]


def test_what_was_compacted_away_is_not_new_again():
    given, kept = [*ROUNDS, human("q3")], [SUMMARY, *ROUNDS[2:]]
    assert ids(sent(given, kept, gone={"q1", "a1"})) == ["q3"]
    assert ids(passed(given, kept, last="q2")) == ["q3"]


def test_what_no_compaction_has_taken_is_new_wherever_it_stands():
    given = [human("new"), ROUNDS[0], human("also new"), ROUNDS[1]]
    assert ids(sent(given, ROUNDS, gone={"other"})) == ["new", "also new"]


def test_to_an_empty_thread_all_is_new_with_ids_and_without():
    given = [human("q1"), ai("a1"), HumanMessage("no id")]
    assert sent(given, []) == given
    assert passed(given, []) == given


def test_a_message_without_an_id_is_new_and_hides_no_other():
    given = [human("q3"), ai("a3"), HumanMessage("no id")]
    assert sent(given, ROUNDS, gone={"q0"}) == given
    assert passed(given, ROUNDS, last="q2") == given


REMOVALS: list[Any] = [
    [RemoveMessage(id=REMOVE_ALL_MESSAGES), ROUNDS[0], human("q9")],
    [RemoveMessage(id="q1"), human("q1", "again"), human("q3")],
    [human("q3"), human("q4"), RemoveMessage(id="a2")],
    [{"type": "remove", "id": "a2", "content": ""}, human("q3"), human("q4")],
]


@pytest.mark.parametrize("given", REMOVALS)
def test_an_edit_that_removes_is_left_to_langgraph(given):
    merged = add_messages(list(ROUNDS), given)
    assert add_messages(list(ROUNDS), sent(given, ROUNDS, gone={"q9"})) == merged
    assert add_messages(list(ROUNDS), passed(given, ROUNDS, last="q2")) == merged


CALL = {"name": "look", "args": {"at": "x"}, "id": "c1"}


@pytest.mark.parametrize(
    ("held", "given", "is_new"),
    [
        (human("m"), human("m", "edited"), True),
        (human("m"), human("m"), False),
        (human("m", clean_text("a \0b")), human("m", "a \0b"), False),
        (ai("m", tool_calls=[CALL]), ai("m"), False),
        (ai("m", tool_calls=[CALL]), ai("m", tool_calls=[CALL | {"args": {"at": "y"}}]), True),
        (ai("m", usage_metadata=None), ai("m", response_metadata={"model": "x"}), False),
    ],
)
def test_a_known_message_counts_where_it_says_something_else(held, given, is_new):
    for found in (sent([given], [held]), passed([given], [held], last="m")):
        assert bool(found) is is_new


def test_a_preview_stays_and_an_edit_of_what_it_stands_for_is_taken():
    path = evicted_path("the whole text")
    preview = HumanMessage(
        f"a part, {path}", id="q1", additional_kwargs={EVICTED: {"path": path, "chars": 14}}
    )
    short = ToolMessage("wh", tool_call_id="c", id="t1", additional_kwargs={SHORTENED: {}})
    whole = [human("q1", "the whole text"), ToolMessage("whole", tool_call_id="c", id="t1")]
    assert sent([*whole, human("q2")], [preview, short]) == [human("q2")]
    assert sent([preview.model_copy(), *whole[1:]], [preview, short]) == []
    edited = human("q1", "another text")
    assert sent([edited, *whole[1:]], [preview, short]) == [edited]


def test_a_parents_other_voices_are_new_though_an_answer_came_after_them():
    given = [human("q1"), ai("theirs"), ai("mine"), human("q2")]
    assert ids(passed(given, [given[0], given[2]], last="q1")) == ["theirs", "q2"]


def test_they_are_new_though_the_parent_has_dropped_what_came_before():
    given = [ai("theirs"), ai("mine"), human("q2")]
    assert ids(passed(given, [human("q1"), ai("mine")], last="q1")) == ["theirs", "q2"]


def test_of_a_thread_of_an_older_release_what_it_has_is_old_and_what_came_before():
    given = [*ROUNDS, human("q3")]
    assert ids(passed(given, [SUMMARY, *ROUNDS[2:]])) == ["q3"]


def test_a_new_system_message_of_a_parent_counts_wherever_it_stands():
    given = [SystemMessage("rules", id="r"), *ROUNDS, human("q3")]
    assert ids(passed(given, ROUNDS, last="q2")) == ["r", "q3"]
    assert ids(passed(given, [given[0], *ROUNDS], last="q2")) == ["q3"]


def test_only_an_input_with_two_named_messages_may_be_a_history():
    assert not has_history({"messages": [human("q1"), HumanMessage("no id")]})
    assert has_history({"messages": [{"role": "user", "content": "x", "id": "q1"}, ai("a1")]})
    assert not any(map(has_history, [None, {}, {"messages": "text"}, [human("q1"), ai("a1")]]))


def test_a_call_brings_what_came_after_what_was_sent():
    answer = [ai("call"), ToolMessage("found", tool_call_id="c", id="t"), ai("a2")]
    result = {"messages": [SUMMARY, ai("a1"), human("q2"), *answer]}
    given = {"messages": [human("q1"), ai("a1"), human("q2")]}
    assert brought(result, given)["messages"] == answer
    assert brought(result, {"messages": [("user", "q2")]})["messages"] == answer
    assert brought({"messages": []}, given) == {"messages": []}


def receipt(number, *gone, outcome="done"):
    at = f"2026-10-30T10:0{number}:00.000Z"
    return {"id": f"c{number}", "at": at, "outcome": outcome, "message_ids": list(gone)}


async def test_what_a_thread_has_lost_is_what_its_own_compactions_took():
    store = InMemoryStore()
    last = receipt(3, "q3", outcome="begun")
    others = receipt(4, "q4")
    for one in (receipt(1, "q1", "a1"), receipt(2, "q2", outcome="refused"), last, others):
        await compactions.record(store, "kim", "t1", one)

    async def gone(compaction):
        return await replaced(store, "kim", "t1", compaction)

    assert await gone({"id": "c1", "at": receipt(1)["at"], "outcome": "done"}) == {"q1", "a1"}
    assert await gone(last) == {"q1", "a1"}  # it never came about
    assert await gone(last | {"outcome": "done"}) == {"q1", "a1", "q3"}  # the state knows better
    assert await gone({}) == set()
    assert await replaced(None, "kim", "t1", last) == set()
