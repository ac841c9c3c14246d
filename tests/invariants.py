"""What must hold of every request that a model received and of every state, after any step."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

SUMMARY = "__compaction_summary__"


def check_request(messages: Sequence[BaseMessage], newest: BaseMessage | None = None) -> None:
    """Raise AssertionError unless a provider may accept `messages`.

    Pairs are whole, nothing is empty, at most one system message leads, at most one summary
    follows it, and the newest user message is `newest`, unchanged.
    """
    check_pairs(messages)
    check_nothing_empty(messages)
    check_leading(messages)
    users = [message for message in messages if isinstance(message, HumanMessage)]
    if newest is not None:
        assert any(
            message.id == newest.id and message.content == newest.content for message in users
        ), f"the newest user message {newest.id} unchanged; got {[each.id for each in users]}"


def check_leading(messages: Sequence[BaseMessage]) -> None:
    """Raise AssertionError unless one system message at most leads, then one summary at most."""
    systems = [i for i, message in enumerate(messages) if isinstance(message, SystemMessage)]
    assert systems in ([], [0]), f"one leading system message; got them at {systems}"
    check_summary(messages)
    users = [message for message in messages if isinstance(message, HumanMessage)]
    assert users, "a user message; got none"


def check_state(messages: Sequence[BaseMessage]) -> None:
    """Raise AssertionError unless a thread may keep `messages`.

    As a request, but system messages may stand anywhere and the newest batch may be open; ids
    come once, and every text can be stored.
    """
    check_pairs(messages, may_end_open=True)
    check_nothing_empty(messages)
    check_summary([message for message in messages if not isinstance(message, SystemMessage)])
    ids = [message.id for message in messages]
    assert None not in ids, f"an id for every message; got {ids}"
    assert len(set(ids)) == len(ids), f"each id once; got {ids}"
    for message in messages:
        check_storable(message, f"message {message.id}")


def check_storable(value: Any, where: str) -> None:
    """Raise AssertionError at a text in `value`, keys included, that a store refuses or changes."""
    if isinstance(value, BaseMessage):
        check_storable(value.model_dump(exclude={"artifact"}), where)
    elif isinstance(value, str):
        assert "\x00" not in value, f"no NUL in {where}; got {value[:80]!r}"
        is_valid = value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
        assert is_valid, f"no lone surrogate in {where}; got {value[:80]!r}"
    elif isinstance(value, Mapping):
        for key, each in value.items():
            check_storable(key, where)
            check_storable(each, where)
    elif isinstance(value, list | tuple):
        for each in value:
            check_storable(each, where)


def check_pairs(messages: Sequence[BaseMessage], *, may_end_open: bool = False) -> None:
    """Raise AssertionError unless each call has one answer, directly after its message.

    System messages are looked through: a request has one, which leads.
    """
    waiting: list[str] = []
    talk = [message for message in messages if not isinstance(message, SystemMessage)]
    for index, message in enumerate(talk):
        if isinstance(message, ToolMessage):
            where = f"result {message.id} at {index} for call {message.tool_call_id!r}"
            assert message.tool_call_id in waiting, f"a call that waits; got {where}"
            waiting.remove(message.tool_call_id)
            continue
        assert not waiting, f"results of {waiting} before {message.type} {message.id} at {index}"
        waiting = _call_ids(message)
        assert len(set(waiting)) == len(waiting), f"each call id once; got {waiting}"
    assert may_end_open or not waiting, f"results of {waiting} before the end"


def check_summary(messages: Sequence[BaseMessage]) -> None:
    """Raise AssertionError unless at most one summary leads, as a user message."""
    named = [(i, message) for i, message in enumerate(messages) if message.name == SUMMARY]
    assert len(named) <= 1, f"at most one summary; got them at {[i for i, _ in named]}"
    for index, message in named:
        assert isinstance(message, HumanMessage), f"a user message; got {message.type}"
        before = [each for each in messages[:index] if not _is_reference(each)]
        shown = [(each.type, each.id) for each in before]
        assert not before, f"the summary right after the system message; before it are {shown}"


def check_nothing_empty(messages: Sequence[BaseMessage]) -> None:
    """Raise AssertionError at an empty text block, result, or message that calls nothing."""
    for message in messages:
        assert not any(map(_is_empty_text, message.content)), f"empty text in {message.id}"
        says = message.content if isinstance(message.content, list) else message.content.strip()
        may_be = _call_ids(message) or isinstance(message, HumanMessage | SystemMessage)
        assert says or may_be, f"{message.type} {message.id} is empty"


def _is_reference(message: BaseMessage) -> bool:
    """System text and injected material, which has a name of its own, may lead the summary."""
    name = message.name or ""
    return isinstance(message, SystemMessage) or (name.startswith("__") and name != SUMMARY)


def _is_empty_text(block: object) -> bool:
    if isinstance(block, dict) and block.get("type") == "text":
        return not str(block.get("text") or "").strip()
    return False


def _call_ids(message: BaseMessage) -> list[str]:
    if not isinstance(message, AIMessage):
        return []
    return [call["id"] or "" for call in [*message.tool_calls, *message.invalid_tool_calls]]
