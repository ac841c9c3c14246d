"""Whatever is cut, no call is parted from its results and nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from everlong.nodes.blocks import ties
from everlong.nodes.repair import repair
from everlong.nodes.tokens import estimate_message
from everlong.nodes.transcript import (
    SUMMARY_NAME,
    batches,
    conversation,
    is_pinned,
    is_summary,
    open_question,
    plain_cut_by_messages,
    plain_cut_by_tokens,
    safe_cut,
    split,
)
from invariants import check_state
from strategies import BLOCK_ROUNDS, QUICK, ROUNDS
from strategies import transcripts as transcripts_of

keeps = st.integers(1, 12)


def transcripts() -> st.SearchStrategy[list[BaseMessage]]:
    return transcripts_of((*ROUNDS, *BLOCK_ROUNDS))


@QUICK
@given(transcripts())
def test_the_well_formed_transcripts_are_well_formed(messages: list[BaseMessage]) -> None:
    check_state(messages)


@QUICK
@given(transcripts(), keeps)
def test_no_cut_parts_a_call_from_its_results(messages: list[BaseMessage], keep: int) -> None:
    talk = conversation(messages)
    cut = safe_cut(messages, plain_cut_by_messages(messages, keep))
    assert 0 <= cut.safe <= cut.plain
    for group in batches(talk):
        sides = {index >= cut.safe for index in group}
        assert len(sides) == 1, f"batch {group} is cut at {cut}"
    for begun, answered in ties(talk):
        assert (begun >= cut.safe) == (answered >= cut.safe), f"a server-side call is cut at {cut}"


@QUICK
@given(transcripts(), st.integers(0, 20_000))
def test_a_tail_by_tokens_is_the_longest_that_fits(
    messages: list[BaseMessage], budget: int
) -> None:
    sizes = [estimate_message(message) for message in messages]
    counted = [
        size
        for message, size in zip(messages, sizes, strict=True)
        if not isinstance(message, SystemMessage)
    ]
    cut = plain_cut_by_tokens(messages, budget, sizes)
    assert sum(counted[cut:]) <= budget or cut == len(counted) - 1
    assert cut == 0 or sum(counted[cut - 1 :]) > budget


@QUICK
@given(transcripts(), keeps)
def test_a_split_loses_and_doubles_nothing(messages: list[BaseMessage], keep: int) -> None:
    parts = split(messages, plain_cut_by_messages(messages, keep))
    together = [*parts.system, *parts.replaced, *parts.kept]
    assert sorted(map(id, together)) == sorted(map(id, messages))
    for part in (parts.system, parts.replaced, parts.pinned, parts.tail):
        places = [next(i for i, m in enumerate(messages) if m is each) for each in part]
        assert places == sorted(places)


@QUICK
@given(transcripts(), keeps)
def test_what_must_survive_is_not_replaced(messages: list[BaseMessage], keep: int) -> None:
    parts = split(messages, plain_cut_by_messages(messages, keep))
    assert not any(is_pinned(each) and not is_summary(each) for each in parts.replaced)
    assert not any(map(is_summary, parts.kept))
    asked = open_question(messages)
    if asked is not None:
        assert any(each is messages[asked] for each in parts.kept)


@QUICK
@given(transcripts(), keeps)
def test_what_a_compaction_leaves_needs_no_repair(messages: list[BaseMessage], keep: int) -> None:
    repaired = repair(messages, close_open=False)
    parts = split(repaired.messages if repaired else messages, keep)
    summary = HumanMessage("S", name=SUMMARY_NAME, id="summary")
    after = [*parts.system, summary, *parts.kept]
    check_state(after)
    assert repair(after, close_open=False) is None


@QUICK
@given(transcripts(), keeps)
def test_a_second_cut_at_the_same_place_is_no_cut(messages: list[BaseMessage], keep: int) -> None:
    parts = split(messages, plain_cut_by_messages(messages, keep))
    summary = HumanMessage("S", name=SUMMARY_NAME, id="summary")
    after = [*parts.system, summary, *parts.kept]
    assert not split(after, 0).is_cut
    assert not split(after, 1).is_cut
