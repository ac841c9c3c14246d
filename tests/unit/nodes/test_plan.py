"""What a compaction is about to do, and whether it came to anything (R13, R22)."""

import pytest
from langchain_core.messages import SystemMessage

from everlong.nodes.budget import limits_of
from everlong.nodes.context import Compaction
from everlong.nodes.plan import Sizes, plan
from everlong.nodes.tokens import estimate_messages
from strategies import calls, human, result, says

WORDS = "word " * 900
LOOP = [
    human("h0", WORDS),
    says("a0", WORDS),
    human("h1", WORDS),
    calls("a1", "c1"),
    result("t1", "c1", WORDS),
    calls("a2", "c2", "c3"),
    result("t2", "c2", WORDS),
    result("t3", "c3", WORDS),
]


def planned(messages, *, trigger="tokens", window=100_000, fixed=100, share=1.0, **settings):
    compaction = Compaction(reserve_tokens=0, **settings)
    total = estimate_messages(messages)
    sizes = Sizes(total=total, request=total + fixed, fixed=fixed, estimate_share=share)
    limits = limits_of(compaction, window)
    return plan(messages, settings=compaction, trigger=trigger, limits=limits, sizes=sizes)


def kept(found):
    return [message.id for message in found.split.kept]


def test_where_all_fits_the_wish_is_kept():
    found = planned(LOOP, keep_messages=6)
    assert kept(found) == ["h1", "a1", "t1", "a2", "t2", "t3"]
    assert (found.split.cut.plain, found.split.cut.safe) == (2, 2)


def test_the_tail_shrinks_to_the_open_question_and_the_newest_batch():
    found = planned(LOOP, keep_messages=8, window=4_500)
    assert kept(found) == ["h1", "a2", "t2", "t3"]
    assert (found.split.cut.plain, found.split.cut.safe) == (0, 5)
    assert "so that the request fits" in found.split.cut.reason


def test_it_shrinks_no_further_however_small_the_window():
    assert kept(planned(LOOP, keep_messages=8, window=500)) == ["h1", "a2", "t2", "t3"]


@pytest.mark.parametrize("fewer", [{"fixed": 3_000}, {"share": 0.5}])
def test_fixed_parts_and_a_short_estimate_leave_less_room(fewer):
    assert len(kept(planned(LOOP, keep_messages=8, window=9_000))) == 8
    assert len(kept(planned(LOOP, keep_messages=8, window=9_000, **fewer))) < 8


def test_system_messages_of_the_history_leave_less_room():
    found = planned([SystemMessage("rule " * 3_000), *LOOP], keep_messages=8, window=9_000)
    assert len(kept(found)) < 8


def test_what_stays_leaves_the_summary_its_room():
    found = planned(LOOP, keep_messages=2, window=9_000)
    assert found.kept_room == found.history_room - 1_500
    assert found.summary_room == found.history_room - estimate_messages(found.split.kept)
    assert planned(LOOP, keep_messages=2, window=1_000).kept_room > 500


@pytest.mark.parametrize(
    ("trigger", "messages_after", "share_after", "little"),
    [
        ("tokens", 8, 0.95, True),
        ("tokens", 2, 0.95, True),
        ("tokens", 8, 0.5, False),
        ("overflow", 2, 0.95, True),
        ("manual", 8, 0.5, False),
        ("messages", 3, 1.2, False),
        ("messages", 8, 0.5, False),
        ("messages", 8, 0.95, True),
    ],
)
def test_what_counts_as_freed_is_what_triggered(trigger, messages_after, share_after, little):
    found = planned(LOOP, trigger=trigger)
    after = int(found.total_tokens * share_after)
    assert found.came_to_little(messages_after=messages_after, tokens_after=after) is little


def test_a_request_that_is_still_over_its_trigger_counts_as_little():
    found = planned(LOOP, trigger_tokens=2_000)
    assert found.came_to_little(messages_after=2, tokens_after=2_000)
    assert not found.came_to_little(messages_after=2, tokens_after=1_500)


def test_the_window_strategy_says_why_it_cuts_later():
    found = planned([*LOOP, says("b"), human("h2"), says("c")], strategy="window", keep_messages=5)
    assert kept(found) == ["h2", "c"]
    assert "to begin at a user message" in found.split.cut.reason
