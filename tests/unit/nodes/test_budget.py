"""R2-R5: windows, thresholds, tails and the warnings about them."""

import pytest

from everlong.nodes.budget import (
    above_fixed,
    at_most,
    believing,
    limits_of,
    trigger_after,
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
    settings = Compaction()
    limits = limits_of(settings, 128_000)
    assert believing(limits, 64_000, settings).usable == 44_000
    assert believing(limits, 200_000, settings) == limits
    assert believing(limits, None, settings) == limits


def test_a_named_window_holds_back_the_reserve_as_a_known_one_does():
    settings = Compaction()
    assert believing(limits_of(settings, None), 64_000, settings) == limits_of(settings, 64_000)
    assert believing(limits_of(settings, None), 9_000, settings).usable == 4_500


def test_limits_for_smaller_requests_trigger_sooner_and_keep_no_more_than_fits():
    limits = at_most(limits_of(Compaction(), 128_000), 5_000)
    assert (limits.usable, limits.trigger_tokens, limits.keep_tokens) == (5_000, 5_000, 5_000)
    assert at_most(limits, 9_000) == limits
    assert at_most(limits, 0).usable == 1


@pytest.mark.parametrize(("trigger", "usable"), [(25_000, 25_000), (5_000, 12_000)])
def test_what_the_trigger_lets_through_counts_as_fitting(trigger, usable):
    limits = limits_of(Compaction(trigger_tokens=trigger), 32_000)
    assert (limits.trigger_tokens, limits.usable) == (trigger, usable)


def test_a_trigger_that_the_window_cannot_reach_gives_way_with_one_warning(caplog):
    first, limits = (limits_of(Compaction(trigger_tokens=200_000), 128_000) for _ in range(2))
    assert first == limits
    assert (limits.trigger_tokens, limits.usable) == (108_000, 108_000)
    assert "200000" in caplog.text
    assert len(caplog.records) == 1


@pytest.mark.parametrize(("fixed", "trigger"), [(4_999, 5_000), (5_000, 108_000), (108_000, 0)])
def test_fixed_parts_over_the_trigger_leave_it_to_the_window_or_switch_it_off(fixed, trigger):
    limits = limits_of(Compaction(trigger_tokens=5_000), 128_000)
    assert above_fixed(limits, fixed).trigger_tokens == trigger


def test_fixed_parts_over_the_trigger_are_named_once(caplog):
    limits = limits_of(Compaction(trigger_tokens=5_000), 128_000)
    for fixed in (6_010, 6_020, 6_030):
        above_fixed(limits, fixed)
    assert len(caplog.records) == 1
    assert "6000" in caplog.text
    assert "5000" in caplog.text


REACHED = {"messages": 90, "tokens": 200_000}


@pytest.mark.parametrize(
    ("new", "trigger"),
    [
        ({"new_messages": 4, "new_tokens": 10_799}, None),
        ({"new_messages": 5, "new_tokens": 0}, "messages"),
        ({"new_messages": 0, "new_tokens": 10_800}, "tokens"),
        ({"new_messages": -40, "new_tokens": -90_000}, None),
    ],
)
def test_after_an_attempt_for_nothing_a_threshold_waits_for_growth_by_a_tenth_of_it(new, trigger):
    limits = limits_of(Compaction(), 128_000)
    assert trigger_after(limits, **REACHED, **new) == trigger


@pytest.mark.parametrize(
    ("reached", "new"),
    [
        ({"messages": 52, "tokens": 60_000}, {"new_messages": 2, "new_tokens": 20_000}),
        ({"messages": 40, "tokens": 110_000}, {"new_messages": 8, "new_tokens": 2_000}),
    ],
)
def test_growth_of_the_other_measure_brings_no_second_attempt(reached, new):
    limits = limits_of(Compaction(), 128_000)
    assert trigger_after(limits, **reached, **new) is None


def test_a_threshold_that_is_off_never_triggers_whatever_the_growth():
    limits = limits_of(Compaction(trigger_messages=0), 128_000)
    found = trigger_after(limits, messages=90, tokens=10, new_messages=90, new_tokens=10)
    assert found is None


@pytest.mark.parametrize(
    ("trigger", "keep", "told"),
    [(5, 2, "every plain round"), (6, 5, "every request"), (6, 2, ""), (50, 20, "")],
)
def test_settings_that_compact_too_often_are_named(caplog, trigger, keep, told):
    warn_of_frequent_compaction(Compaction(trigger_messages=trigger, keep_messages=keep))
    assert bool(caplog.records) is bool(told)
    assert told in caplog.text
