"""Random sessions through the whole graph, on Postgres, with everything going wrong that may.

After each step the eight invariants hold (`Conversation` asks for them in each call), every word is
in the state or in the transcript, which is complete, no tool has run twice, and requests fit.
"""

import logging
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage
from langgraph.types import Command

from everlong.nodes.context import Context
from session import Session, World
from session_cast import NAMING, SUMMARIES, TOO_LONG
from strategies import broken_call

WINDOW = 8_000
NAMED_WINDOW = 6_000
COMPACTIONS: tuple[dict[str, Any], ...] = (
    {"trigger_messages": 8, "keep_messages": 2},
    {"trigger_messages": 12, "keep_messages": 5},
    {"trigger_messages": 0, "keep_tokens": 1_200},
    {"trigger_messages": 0},
    {"trigger_messages": 10, "keep_messages": 3, "strategy": "window"},
)
TEXTS = {
    "short": "Go on.",
    "Chinese": "订单 SO-202610-4471 到哪了？请看一下。",
    "with numbers": "Order PX-4471 costs $1,250.00 on 2026-03-09. " * 8,
    "long Chinese": "鹭" * 700,
}
LONG_TEXTS = {
    "words": "A heron stood in the pond. " * 2_000,
    "Chinese": "鹭" * 16_000,
    "one word": "x" * 60_000,
}
SIZES = (20, 900, 4_000, 5_900, 40_000)
"""Characters of results: more than 6,000 are moved away from a window of 8,000 tokens."""

texts = st.sampled_from(sorted(TEXTS))
hows = st.one_of(st.just("good"), st.sampled_from(sorted(SUMMARIES)))
sizes = st.lists(st.sampled_from(SIZES), min_size=1, max_size=4)


class Sessions(Session, RuleBasedStateMachine):
    """What may happen in a session, in any order."""

    def __init__(self, world: World, compaction: dict[str, Any]) -> None:
        RuleBasedStateMachine.__init__(self)
        Session.__init__(self, world)
        self.compaction = compaction

    @initialize()
    def set(self) -> None:
        context = Context.model_validate(
            {
                "user_id": self.user,
                "model": self.cast.model,
                "memory": {"consolidate": "on_request"},
                "compaction": {"window_tokens": WINDOW, "reserve_tokens": 1_000}
                | {"summary_seconds": 0.3}
                | self.compaction,
            }
        )
        self.begin(context)

    @rule(text=texts)
    def say(self, text: str) -> None:
        """Also: typing instead of answering what waits for a person."""
        self.asks(TEXTS[text])

    @rule(rounds=st.lists(sizes, min_size=1, max_size=4), summaries=hows)
    def use_tools(self, rounds: list[list[int]], summaries: str) -> None:
        self.cast.summary = summaries
        self.cast.answers.extend(self.cast.batch(each) for each in rounds)
        self.asks("Please fetch.")

    @rule(alone=st.booleans())
    def call_badly(self, alone: bool) -> None:
        self.said += 1
        bad = broken_call(f"bad-{self.said}")
        good = [] if alone else self.cast.batch([20]).tool_calls
        self.cast.answers.append(AIMessage("", tool_calls=good, invalid_tool_calls=[bad]))
        self.asks("Save it.")

    @rule(text=st.sampled_from(sorted(LONG_TEXTS)))
    def say_more_than_the_window_holds(self, text: str) -> None:
        self.asks(LONG_TEXTS[text])

    @precondition(lambda self: len(self.record.pinned) < 2)
    @rule()
    def pin(self) -> None:
        self.asks("The safe word is heron; keep it.", pin=True)

    @rule(how=hows)
    def summaries_go(self, how: str) -> None:
        self.cast.summary = how

    @rule(fails=st.booleans())
    def flushes_go(self, fails: bool) -> None:
        self.cast.flush_fails = fails

    @rule(said=st.lists(texts, min_size=1, max_size=5))
    def talk_while_the_disk_is_full(self, said: list[str]) -> None:
        for text in said:
            self.asks(TEXTS[text], disk_full=True)

    @rule(named=st.booleans(), again=st.booleans(), text=texts)
    def overflow(self, named: bool, again: bool, text: str) -> None:
        """The provider refuses, whatever the size, once or twice; it may take less from now on."""
        self.names = named
        if named:
            self.cast.window = NAMED_WINDOW
        error = ContextOverflowError(NAMING.format(NAMED_WINDOW) if named else TOO_LONG)
        self.cast.answers.extend([error, error] if again else [error])
        self.asks(TEXTS[text], raises=ContextOverflowError if again else None)

    @precondition(lambda self: not self.paused and self.record.order)
    @rule(instructions=st.sampled_from(["", "keep the numbers"]))
    def compact(self, instructions: str) -> None:
        self.run({"request": {"compact": True, "instructions": instructions}})

    @rule(beside=st.booleans(), then=st.sampled_from(["yes", "no", "type", "leave"]))
    def ask_a_person(self, beside: bool, then: str) -> None:
        """A tool waits for a person, who answers, perhaps another process, or types instead."""
        self.cast.answers.append(self.cast.batch([900] if beside else [], asks=True))
        self.asks("Send it.", pauses=True)
        if then == "no":
            self.restart()
        if then == "type":
            self.asks("Never mind.")
        elif then != "leave":
            self.run(Command(resume=then))

    @rule()
    def restart(self) -> None:
        self.world.restart()
        self.opened()

    @rule(where=st.sampled_from(["answer", "summary", "flush", "tool"]), text=texts)
    def cancel(self, where: str, text: str) -> None:
        if where == "tool":
            self.cast.answers.append(self.cast.batch([20, 4_000]))
        self.cast.hangs_at = where
        self.asks(TEXTS[text], cancelled=True)

    @precondition(lambda self: self.saved)
    @rule(back=st.integers(1, 30), text=texts)
    def fork(self, back: int, text: str) -> None:
        checkpoint, record = self.saved[-1 - back % len(self.saved)]
        if not self.is_there(checkpoint):
            self.is_refused_at(checkpoint)
            return
        self.record, self.forked, self.paused = record.copy(), True, False
        self.asks(TEXTS[text], at=checkpoint)


# What comes about often enough to be sure of, however long a machine takes for a step.
EXPECTED = (
    "compaction: done",
    "compaction: refused",
    "trigger: messages",
    "trigger: tokens",
    "trigger: overflow",
    "trigger: manual",
    "by model",
    "by digest",
    "by window",
    "eviction",
    "preview of a user message",
    "ended by ContextOverflowError",
    "forked",
    "fork of what is gone",
    "paused",
)


def test_whatever_happens_in_a_session_nothing_is_lost_twice_or_too_long(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, logger="everlong")  # thousands of failures, all on purpose
    thorough = settings.get_current_profile_name() == "thorough"
    world = World(dsn)
    try:
        for compaction in COMPACTIONS:
            run_state_machine_as_test(
                lambda: Sessions(world, compaction),  # noqa: B023 - run at once
                settings=settings(
                    max_examples=100 if thorough else 8,
                    stateful_step_count=40 if thorough else 20,
                    derandomize=not thorough,
                    database=None,
                    report_multiple_bugs=False,
                ),
            )
    finally:
        world.close()
    assert [one for one in EXPECTED if not world.seen[one]] == [], sorted(world.seen.items())
