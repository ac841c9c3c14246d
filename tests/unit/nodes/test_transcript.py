from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)

from everlong.nodes.transcript import (
    SUMMARY_NAME,
    Cut,
    batches,
    conversation,
    is_pinned,
    is_summary,
    open_question,
    plain_cut,
    plain_cut_by_messages,
    plain_cut_by_tokens,
    safe_cut,
    split,
)
from invariants import check_request
from strategies import broken_call, calls, human, result, says


def summary() -> HumanMessage:
    return HumanMessage("Here is a summary", id="sum", name=SUMMARY_NAME)


def ids(messages: Any) -> list[str]:
    return [message.id for message in messages]


E1 = [
    human("h1"),
    calls("a1", "c1", "c2"),
    result("t1", "c1"),
    result("t2", "c2"),
    says("a2"),
    human("h2"),
    calls("a3", "c3"),
    result("t3", "c3"),
    says("a4"),
]

A01 = [
    human("h1", "Compare the weather in Oslo, Bergen and Narvik."),
    calls("a1", "c1", "c2", "c3"),
    result("t1", "c1", "Oslo: 4 C " + "detail " * 900),
    result("t2", "c2", "Bergen: 6 C, rain"),
    result("t3", "c3", "Narvik: -2 C"),
    says("a2", "Narvik is the coldest."),
    human("h2", "Which one has the most rain?"),
]

A09 = [
    human("h1", "Rename the column cust_nm to customer_name."),
    calls("a1", "e1"),
    result("t1", "e1"),
    says("a2"),
    human("h2", "Good. First write the migration, then update the README."),
    calls("a3", "e2"),
    result("t2", "e2"),
    says("a4", "Migration written. README next?"),
    human("h3", "Yes, go on."),
]


def test_nine_messages_with_two_kept_are_cut_at_six_and_keep_three() -> None:
    parts = split(E1, plain_cut_by_messages(E1, 2))
    assert (parts.cut.plain, parts.cut.safe) == (7, 6)
    assert parts.cut.reason == "a tool result's call is at 6; the pair stays in the tail"
    assert ids(parts.tail) == ["a3", "t3", "a4"]
    assert len(parts.replaced) == 6
    assert parts.kept == parts.tail
    assert parts.is_cut


def test_five_plain_messages_with_two_kept_are_cut_at_three() -> None:
    rounds = [human("h1"), says("a1"), human("h2"), says("a2"), human("h3")]
    parts = split(rounds, plain_cut_by_messages(rounds, 2))
    assert parts.cut == Cut(3, 3, "the cut parts no tool call from its result")
    assert ids(parts.tail) == ["a2", "h3"]
    assert parts.question == ()


@pytest.mark.parametrize("keep", range(1, 7))
@pytest.mark.parametrize("order", [(2, 3, 4), (4, 3, 2), (3, 4, 2)])
def test_parallel_calls_stay_together_whatever_is_kept(
    keep: int, order: tuple[int, int, int]
) -> None:
    messages = [*A01[:2], *(A01[place] for place in order), *A01[5:]]
    parts = split(messages, plain_cut_by_messages(messages, keep))
    assert parts.cut.safe == 1 or parts.cut.safe >= 5
    assert parts.kept[-1].id == "h2"
    check_request([SystemMessage("You help."), summary(), *parts.kept], newest=A01[-1])


@pytest.mark.parametrize("budget", [1, 60, 500, 1_500, 2_500, 10_000])
def test_parallel_calls_stay_together_whatever_budget_is_kept(budget: int) -> None:
    sizes = [10, 60, 1_900, 8, 8, 10, 10]
    parts = split(A01, plain_cut_by_tokens(A01, budget, sizes))
    assert parts.cut.safe in (0, 1, 5, 6)
    check_request([summary(), *parts.kept], newest=A01[-1])


def test_the_reason_names_the_call_and_how_many_results_follow_it() -> None:
    assert safe_cut(A01, 3).reason == (
        "a tool result's call is at 1; it and its 3 results stay in the tail"
    )


def test_two_batches_in_a_row_are_told_apart() -> None:
    messages = [
        human("h1"),
        calls("a1", "c1", "c2"),
        result("t2", "c2"),
        result("t1", "c1"),
        calls("a2", "c1", text="And now the other."),  # some models number calls anew
        result("t3", "c1"),
        says("a3"),
    ]
    assert batches(messages) == [(1, 2, 3), (4, 5)]
    assert [safe_cut(messages, plain).safe for plain in range(7)] == [0, 1, 1, 1, 4, 4, 6]


def test_batches_that_overlap_in_a_broken_history_are_cut_before_both() -> None:
    messages = [calls("a1", "c1"), calls("a2", "c2"), result("t1", "c1"), result("t2", "c2")]
    assert safe_cut(messages, 3).safe == 0


def test_the_newest_batch_stays_whole_while_a_call_is_open() -> None:
    messages = [human("h1"), says("a1"), human("h2"), calls("a2", "c1", "c2"), result("t1", "c1")]
    assert safe_cut(messages, 5).safe == 3
    assert safe_cut(messages, 4).safe == 3
    assert safe_cut([*messages, human("h3")], 5).safe == 3
    assert safe_cut(messages, 99).safe == 3


def test_a_call_that_cannot_be_read_belongs_to_its_batch() -> None:
    asking = AIMessage("", id="a1", invalid_tool_calls=[broken_call("bad")])
    messages = [human("h1"), asking, result("t1", "bad"), says("a2")]
    assert batches(messages) == [(1, 2)]
    assert safe_cut(messages, 2).safe == 1


def test_cuts_count_non_system_messages_and_system_messages_stay() -> None:
    rules = SystemMessage("Never state prices without VAT.", id="s1")
    brief = SystemMessage("From now on be brief.", id="s2")
    messages = [rules, *E1[:5], brief, *E1[5:]]
    parts = split(messages, plain_cut_by_messages(messages, 2))
    assert (parts.cut.plain, parts.cut.safe) == (7, 6)
    assert ids(parts.system) == ["s1", "s2"]
    assert ids(parts.replaced) == ids(E1[:6])
    assert len(conversation(messages)) == 9


def test_a_budget_keeps_the_longest_tail_that_fits() -> None:
    rounds = [human("h1"), says("a1"), human("h2"), says("a2")]
    assert plain_cut_by_tokens(rounds, 30, [10, 10, 10, 10]) == 1
    assert plain_cut_by_tokens(rounds, 29, [10, 10, 10, 10]) == 2
    assert plain_cut_by_tokens(rounds, 1_000, [10, 10, 10, 10]) == 0


def test_the_last_message_stays_though_it_is_over_the_budget() -> None:
    rounds = [human("h1"), says("a1"), human("h2")]
    assert plain_cut_by_tokens(rounds, 5, [1, 1, 100]) == 2
    assert plain_cut_by_tokens([], 5, []) == 0


def test_system_messages_take_no_room_in_the_tail() -> None:
    messages = [human("h1"), SystemMessage("s" * 900), says("a1")]
    assert plain_cut_by_tokens(messages, 20, [10, 900, 10]) == 0


@pytest.mark.parametrize(
    ("budget", "counted", "cut"),
    [(0, False, 3), (1_000, False, 0), (1_000, True, 3), (10, True, 4)],
)
def test_no_more_than_keep_messages_stay_when_the_count_triggered(
    budget: int, counted: bool, cut: int
) -> None:
    rounds = [human("h1"), says("a1"), human("h2"), says("a2"), human("h3")]
    sizes = [10] * 5
    assert plain_cut(rounds, keep_messages=2, budget=budget, sizes=sizes, counted=counted) == cut


@pytest.mark.parametrize("keep", range(1, 9))
def test_the_newest_user_message_is_last_whatever_is_kept(keep: int) -> None:
    parts = split(A09, plain_cut_by_messages(A09, keep))
    assert parts.kept[-1] is A09[-1]


def test_a_question_pushed_out_by_a_tool_loop_stays_between_summary_and_tail() -> None:
    loop = [m for n in range(6) for m in (calls(f"a{n}", f"c{n}"), result(f"t{n}", f"c{n}"))]
    messages = [summary(), human("h0"), says("a"), human("q", "Audit the services."), *loop]
    parts = split(messages, plain_cut_by_messages(messages, 4))
    assert ids(parts.question) == ["q"]
    assert parts.question[0] is messages[3]
    assert ids(parts.kept) == ["q", "a4", "t4", "a5", "t5"]
    assert ids(parts.replaced)[:3] == ["sum", "h0", "a"]


def test_a_question_is_answered_by_text_and_not_by_calls() -> None:
    assert open_question([human("h1"), says("a1"), human("h2")]) == 2
    assert open_question([human("h1"), calls("a1", "c1"), result("t1", "c1")]) == 0
    assert open_question([human("h1"), calls("a1", "c1"), result("t1", "c1"), says("a2")]) is None
    assert open_question([human("h1"), human("h2")]) == 1
    assert open_question([summary()]) is None
    assert open_question([]) is None


def test_pinned_messages_stay_between_summary_and_tail() -> None:
    messages = [human("h1", pin=True), says("a1"), human("h2"), says("a2"), human("h3")]
    parts = split(messages, 4)
    assert ids(parts.pinned) == ["h1"]
    assert ids(parts.replaced) == ["a1", "h2", "a2"]
    assert ids(parts.kept) == ["h1", "h3"]
    assert is_pinned(messages[0])
    assert not is_pinned(messages[1])


@pytest.mark.parametrize("pinned", ["a1", "t1", "t2"])
def test_a_pinned_message_keeps_its_tool_partners(pinned: str) -> None:
    messages = [m.model_copy(deep=True) for m in E1]
    next(m for m in messages if m.id == pinned).additional_kwargs["pin"] = True
    parts = split(messages, 7)
    assert ids(parts.pinned) == ["a1", "t1", "t2"]
    assert ids(parts.replaced) == ["h1", "a2", "h2"]
    check_request([summary(), *parts.kept])


def test_a_pinned_open_question_stays_once() -> None:
    messages = [human("h1", pin=True), calls("a1", "c1"), result("t1", "c1")]
    parts = split(messages, 2)
    assert ids(parts.kept) == ["h1", "a1", "t1"]
    assert ids(parts.question) == ["h1"]
    assert not parts.is_cut


def test_a_cut_that_replaces_only_the_old_summary_is_no_cut() -> None:
    messages = [summary(), human("h1", "Part 1"), says("a1"), human("h2", "Part 2"), says("a2")]
    assert not split(messages, 0).is_cut
    assert not split(messages, 1).is_cut
    assert split(messages, 2).is_cut


def test_an_old_summary_is_replaced_wherever_it_stands() -> None:
    messages: list[BaseMessage] = [human("h1"), says("a1"), human("h2"), summary(), says("a2")]
    parts = split(messages, 2)
    assert ids(parts.replaced) == ["h1", "a1", "sum"]
    assert ids(parts.tail) == ["h2", "a2"]


def test_only_a_user_message_of_the_name_is_a_summary() -> None:
    assert is_summary(summary())
    assert not is_summary(HumanMessage("Here is a summary"))
    assert not is_summary(HumanMessage("Here is a summary", name="Ana"))
    assert not is_summary(AIMessage("Here is a summary", name=SUMMARY_NAME))
