"""A compacted history beside the whole one, while a run goes on."""

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, messages_to_dict

from everlong.graph.foreign import KEPT
from everlong.graph.views import has_view, seen, view_of, written_out

SUMMARY = HumanMessage("a summary", id="s", name="__compaction_summary__")
WHOLE = [HumanMessage("q1", id="q1"), AIMessage("a1", id="a1"), HumanMessage("q2", id="q2")]
MORE = [AIMessage("a2", id="a2"), HumanMessage("q3", id="q3")]


def values(messages, view=None):
    return {"messages": messages, KEPT: view or {}}


def test_without_a_view_the_history_is_what_is_kept():
    assert not has_view(values(WHOLE))
    assert seen(values(WHOLE)) == WHOLE


def test_what_comes_after_the_view_is_seen_behind_it():
    view = view_of(WHOLE, [SUMMARY, WHOLE[2]])
    assert view["view"]["made"] == messages_to_dict([SUMMARY])
    assert seen(values([*WHOLE, *MORE], view)) == [SUMMARY, WHOLE[2], *MORE]


def test_an_edit_made_meanwhile_is_seen_and_what_was_removed_is_not():
    view = view_of(WHOLE, [SUMMARY, WHOLE[1], WHOLE[2]])
    edited = [WHOLE[0], HumanMessage("edited", id="q2"), *MORE]
    assert seen(values(edited, view)) == [SUMMARY, edited[1], *MORE]


def test_where_its_newest_message_is_gone_what_follows_the_newest_known_one_is_seen():
    view = view_of(WHOLE, [SUMMARY, WHOLE[1], WHOLE[2]])
    assert seen(values([*WHOLE[:2], *MORE], view)) == [SUMMARY, WHOLE[1], *MORE]


def test_written_out_it_is_the_whole_history_and_no_answer_to_stream():
    removal, summary, question = list[Any](written_out([SUMMARY, WHOLE[2]]))
    assert removal["id"] == "__remove_all__"
    assert (summary["id"], summary["name"]) == (SUMMARY.id, SUMMARY.name)
    assert question is WHOLE[2]
