"""R2-R5: windows, thresholds, tails and the warnings about them."""

import pytest

from everlong.nodes.budget import (
    believing,
    grown_enough,
    limits_of,
    trigger_of,
    warn_of_frequent_compaction,
)
from everlong.nodes.context import Compaction


def test_the_trigger_is_window_less_reserve_and_the_tail_a_quarter_between_bounds():
    limits = limits_of(Compaction(), 128_000)
    assert (limits.trigger_tokens, limits.keep_tokens) == (108_000, 8_000)
    assert limits_of(Compaction(), 32_000).keep_tokens == 3_000
    assert limits_of(Compaction(), 24_000).keep_tokens == 2_000


def test_an_unknown_window_falls_back_to_160_000_tokens_and_a_tail_by_messages():
    limits = limits_of(Compaction(), None)
    assert (limits.trigger_tokens, limits.keep_tokens, limits.keep_messages) == (160_000, 0, 20)


def test_the_settings_window_goes_before_the_models():
    assert limits_of(Compaction(window_tokens=40_000), 128_000).trigger_tokens == 20_000


def test_a_reserve_that_leaves_nothing_becomes_half_the_window_with_one_warning(caplog):
    for _ in range(3):
        assert limits_of(Compaction(), 16_000).trigger_tokens == 8_000
    assert [r.levelname for r in caplog.records] == ["WARNING"]
    assert "reserve_tokens" in caplog.text


def test_a_fixed_trigger_and_a_fixed_tail_stay_as_they_are():
    limits = limits_of(Compaction(trigger_tokens=5_000, keep_tokens=900), 128_000)
    assert (limits.trigger_tokens, limits.keep_tokens, limits.usable) == (5_000, 900, 108_000)


@pytest.mark.parametrize(
    ("messages", "tokens", "trigger"),
    [(49, 10, None), (50, 10, "messages"), (3, 108_000, "tokens"), (3, 107_999, None)],
)
def test_whichever_threshold_is_reached_first_triggers(messages, tokens, trigger):
    limits = limits_of(Compaction(), 128_000)
    assert trigger_of(limits, messages=messages, tokens=tokens) == trigger


def test_zero_switches_the_message_count_off():
    limits = limits_of(Compaction(trigger_messages=0), 128_000)
    assert trigger_of(limits, messages=10_000, tokens=1) is None


def test_a_limit_that_a_provider_names_is_believed_when_it_is_smaller():
    limits = limits_of(Compaction(), 128_000)
    assert believing(limits, 64_000).usable == 44_000
    assert believing(limits, 200_000) == limits
    assert believing(limits, None) == limits
    assert believing(limits_of(Compaction(), None), 9_000).usable == 9_000


def test_growth_is_a_tenth_of_either_threshold():
    limits = limits_of(Compaction(), 128_000)
    assert not grown_enough(limits, messages=4, tokens=10_799)
    assert grown_enough(limits, messages=5, tokens=0)
    assert grown_enough(limits, messages=0, tokens=10_800)


@pytest.mark.parametrize(
    ("trigger", "keep", "told"),
    [(5, 2, "every plain round"), (6, 5, "every request"), (6, 2, ""), (50, 20, "")],
)
def test_settings_that_compact_too_often_are_named(caplog, trigger, keep, told):
    warn_of_frequent_compaction(Compaction(trigger_messages=trigger, keep_messages=keep))
    assert bool(caplog.records) is bool(told)
    assert told in caplog.text
