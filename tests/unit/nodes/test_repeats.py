from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.pruning import SHORTENED
from everlong.nodes.repeats import asked_before

PAGE = {"path": "a", "offset": 0}


def history(*asked: dict[str, Any] | str) -> list[BaseMessage]:
    """Return reads with their results; a text is what the user says."""
    messages: list[BaseMessage] = [HumanMessage("go")]
    for at, args in enumerate(asked):
        if isinstance(args, str):
            messages.append(HumanMessage(args))
            continue
        call = {"name": "read_file", "args": args, "id": f"c{at}", "type": "tool_call"}
        messages += [AIMessage("", tool_calls=[call]), ToolMessage("x", tool_call_id=f"c{at}")]
    return messages


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ([PAGE], 0),
        ([PAGE, PAGE, PAGE], 2),
        ([{"path": "a"}, {"path": "a", "line": 1}, PAGE], 2),
        ([PAGE, {"path": "b"}, PAGE], 0),
        ([PAGE, PAGE | {"offset": 5}, PAGE], 0),
        ([PAGE, PAGE, "once more", PAGE], 0),
    ],
)
def test_calls_for_the_same_in_a_row_are_counted(asked: list[Any], count: int) -> None:
    assert asked_before(history(*asked), f"c{len(asked) - 1}") == count


def test_a_result_that_was_shortened_may_be_read_again() -> None:
    messages = history(PAGE, PAGE, PAGE)
    messages[4].additional_kwargs[SHORTENED] = {"preview_chars": 9}
    assert asked_before(messages, "c2") == 0


def test_other_tools_in_between_do_not_hide_a_loop() -> None:
    messages = history(PAGE, PAGE, PAGE)
    other = {"name": "list_files", "args": {}, "id": "o", "type": "tool_call"}
    messages.insert(3, AIMessage("", tool_calls=[other]))
    assert asked_before(messages, "c2") == 2
    assert asked_before(messages, "unknown") == 0
    assert asked_before(messages, None) == 0
