"""With which settings a caller's run goes."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from everlong.graph.agent import build
from everlong.nodes.context import Context, context_within
from everlong.nodes.errors import InvalidInputError


@dataclass
class Shop:
    """A parent's context, with fields of its own."""

    user_id: str | None = "kim"
    customer: str = "the shop"
    model: str | None = None
    everlong: dict[str, Any] | None = field(default=None)


DEFAULTS = {"time_zone": "Asia/Shanghai", "compaction": {"keep_messages": 3}}


def test_a_richer_context_gives_what_is_ours_over_the_defaults():
    found = context_within(Shop(), DEFAULTS)
    assert (found.user_id, found.model) == ("kim", "offline")
    assert (found.time_zone, found.compaction.keep_messages) == ("Asia/Shanghai", 3)


def test_a_section_of_ours_keeps_the_names_apart():
    ours = {"compaction": {"trigger_messages": 9}, "model": "openai:gpt-4o"}
    found = context_within(Shop(model="a car, not ours", everlong=ours), DEFAULTS)
    assert (found.user_id, found.model) == ("kim", "openai:gpt-4o")
    assert (found.compaction.trigger_messages, found.compaction.keep_messages) == (9, 3)


def test_settings_of_ours_hide_no_default_that_they_do_not_name():
    found = context_within(Context(user_id="kim", compaction={"trigger_messages": 9}), DEFAULTS)
    assert found.time_zone == "Asia/Shanghai"
    assert (found.compaction.trigger_messages, found.compaction.keep_messages) == (9, 3)


def test_a_mistake_in_our_section_is_named():
    with pytest.raises(InvalidInputError, match="compactoin"):
        context_within({"user_id": "kim", "everlong": {"compactoin": {}}})


def test_a_wrong_default_is_refused_when_the_graph_is_built():
    with pytest.raises(InvalidInputError, match="trigger_messages"):
        build(defaults={"compaction": {"trigger_messages": 1}})


async def test_a_mistake_in_a_call_is_named_where_there_are_defaults_too():
    graph = build(defaults=DEFAULTS).compile()
    given = {"messages": [("user", "hello")]}
    with pytest.raises(InvalidInputError, match="memmory"):
        await graph.ainvoke(given, context={"user_id": "kim", "memmory": {}})
