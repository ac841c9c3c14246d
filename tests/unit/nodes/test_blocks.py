"""Server-side calls, thoughts and calls as content blocks: what belongs together, what may go."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everlong.nodes.blocks import lonely, ties, without_thoughts
from everlong.nodes.repair import for_request, repair
from everlong.nodes.tidying import name_calls, readable
from everlong.nodes.transcript import call_ids, safe_cut, split
from strategies import (
    BROKEN_ARGUMENTS,
    broken_call,
    call,
    calls,
    found,
    human,
    result,
    says,
    searches,
    thought,
)

TEXT = {"type": "text", "text": "The fee is 7."}
STANDARD: list[Any] = [
    {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {}},
    {"type": "server_tool_result", "tool_call_id": "s1", "status": "success", "output": []},
]
OPENAI: list[Any] = [
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "web_search_call", "id": "ws_1", "action": {"query": "fees"}},
    {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": []},
]
MCP: list[Any] = [
    {"type": "mcp_tool_use", "id": "s1", "name": "look", "server_name": "x", "input": {}},
    {"type": "mcp_tool_result", "tool_use_id": "s1", "content": [TEXT]},
]
SERVER_SIDE = [[searches("s1"), found("s1")], STANDARD, OPENAI, MCP]


def answer(message_id: str, *blocks: Any, **fields: Any) -> AIMessage:
    return AIMessage(list(blocks), id=message_id, **fields)


@pytest.mark.parametrize("blocks", SERVER_SIDE)
def test_a_server_side_call_is_no_call_of_ours_and_stays_as_it_is(blocks: list[Any]) -> None:
    messages = [human("h1"), answer("a1", thought(), *blocks, TEXT), human("h2")]
    assert call_ids(messages[1]) == []
    assert repair(messages, close_open=True) is None
    assert for_request(messages) == messages
    assert lonely(messages) == set()


# Anthropic's code that calls a client's tool ends in the message after the tool's result.
LATER: list[BaseMessage] = [
    human("h1"),
    answer(
        "a1",
        searches("s1"),
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"key": "v"}},
        tool_calls=[call("c1")],
    ),
    result("t1", "c1"),
    answer("a2", found("s1"), TEXT),
    human("h2"),
    says("a3"),
]


@pytest.mark.parametrize("plain", [2, 3])
def test_a_server_side_call_that_ends_in_a_later_message_is_not_cut(plain: int) -> None:
    assert repair(LATER, close_open=True) is None
    assert ties(LATER) == [(1, 3)]
    cut = safe_cut(LATER, plain)
    assert cut.safe == 1
    assert safe_cut(LATER, 4).safe == 4
    assert safe_cut([LATER[0], *LATER[3:]], 2).safe == 2


def test_the_reason_says_what_would_be_parted() -> None:
    assert "server-side call at 1" in safe_cut(LATER, 3).reason
    running = [human("h1"), calls("a1", "c1")]
    assert safe_cut(running, 2).reason == "a tool call at 1 still runs; it stays in the tail"


def test_pinning_one_half_of_a_server_side_call_keeps_the_other() -> None:
    pinned = LATER[3].model_copy(update={"additional_kwargs": {"pin": True}})
    parts = split([*LATER[:3], pinned, *LATER[4:]], 5)
    assert [message.id for message in parts.pinned] == ["a1", "t1", "a2"]


def test_a_persons_word_on_an_mcp_call_stays_with_what_asked_for_it() -> None:
    asked = answer("a1", {"type": "mcp_approval_request", "id": "ar_1", "name": "pay"})
    said = {"type": "mcp_approval_response", "approval_request_id": "ar_1", "approve": True}
    messages = [human("h1"), asked, HumanMessage([said], id="h2"), calls("a2", "c1")]
    messages += [result("t1", "c1"), calls("a3", "c2"), result("t2", "c2")]
    assert safe_cut(messages, 2).safe == 1
    parts = split(messages, 5)
    assert [message.id for message in parts.question] == ["a1", "h2"]
    assert [message.id for message in parts.replaced] == ["h1", "a2", "t1"]


@pytest.mark.parametrize("half", [searches("s1"), found("s1"), *STANDARD, *MCP])
def test_half_of_a_server_side_call_goes_when_the_user_speaks_again(half: Any) -> None:
    messages = [human("h1"), answer("a1", thought(), half, TEXT), human("h2")]
    done = repair(messages, close_open=True)
    assert done is not None
    assert done.messages[1].content == [thought(), TEXT]
    assert done.notes == ["removed half of a server-side call in message a1"]
    assert repair(done.messages, close_open=True) is None


def test_a_turn_that_the_provider_paused_keeps_its_call() -> None:
    paused = [human("h1"), answer("a1", searches("s1")), *LATER[1:3]]
    assert lonely([*paused[:2]]) == set()
    assert repair(LATER[:3], close_open=False) is None


def test_a_message_that_held_nothing_but_half_a_call_is_removed() -> None:
    messages = [human("h1"), answer("a1", searches("s1")), human("h2")]
    done = repair(messages, close_open=True)
    assert done is not None
    assert [message.id for message in done.messages] == ["h1", "h2"]


@pytest.mark.parametrize(
    "thoughts",
    [
        [thought()],
        [{"type": "redacted_thinking", "data": "x"}],
        [{"type": "reasoning", "id": "rs_1", "summary": []}],
        [thought(), {"type": "text", "text": " "}],
    ],
)
def test_an_answer_of_thoughts_alone_stays_in_the_thread_and_is_not_sent(
    thoughts: list[Any],
) -> None:
    messages = [human("h1"), answer("a1", *thoughts), human("h2")]
    done = repair(messages, close_open=True)
    kept = done.messages if done else messages
    assert [message.id for message in kept] == ["h1", "a1", "h2"]
    assert [message.id for message in for_request(kept)] == ["h1", "h2"]


def test_a_thought_before_a_call_is_sent() -> None:
    asking = answer("a1", thought(), tool_calls=[call("c1")])
    messages = [human("h1"), asking, result("t1", "c1")]
    assert for_request(messages) == messages


def test_reasoning_goes_with_the_ids_that_pair_it() -> None:
    message = answer(
        "a1",
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "text", "text": "Looking.", "id": "msg_1"},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "tool_call", "id": "c2", "name": "look", "args": {}, "extras": {"item_id": "fc"}},
        {"type": "tool_use", "id": "c3", "name": "look", "input": {}},
        tool_calls=[call("c1"), call("c2"), call("c3")],
    )
    bare = without_thoughts(message)
    assert bare is not None
    assert bare.content == [
        {"type": "text", "text": "Looking."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "tool_call", "id": "c2", "name": "look", "args": {}, "extras": {}},
        {"type": "tool_use", "id": "c3", "name": "look", "input": {}},
    ]
    assert bare.tool_calls == message.tool_calls


def test_reasoning_stays_before_a_call_that_the_provider_ran() -> None:
    assert without_thoughts(answer("a1", *OPENAI, TEXT)) is None
    untouched = answer("a1", {"type": "text", "text": "Hi.", "id": "msg_1"})
    assert without_thoughts(untouched) is untouched


def test_a_call_without_id_gets_the_same_one_in_its_block() -> None:
    blocks: list[Any] = [
        {"type": "tool_use", "id": None, "name": "look", "input": {"key": "v"}},
        {"type": "tool_use", "id": "c", "name": "look", "input": {"key": "v"}},
        {"type": "tool_use", "id": "c", "name": "look", "input": {"key": "v"}},
        {"type": "tool_use", "id": None, "name": "save", "input": {}},
        TEXT,
    ]
    valid = [call(None), call("c"), call("c")]
    named = name_calls(
        answer("a1", *blocks, tool_calls=valid, invalid_tool_calls=[broken_call(None)])
    )
    assert len(set(call_ids(named))) == 4
    in_blocks = [block["id"] for block in named.content if block["type"] == "tool_use"]
    assert in_blocks == call_ids(named)
    assert in_blocks[1] == "c"
    assert named.content[-1] == TEXT
    assert blocks[0]["id"] is None


@pytest.mark.parametrize(
    ("block", "sent"),
    [
        (
            {"type": "tool_use", "id": "b", "name": "save", "input": {}},
            {"type": "tool_use", "id": "b", "name": "save", "input": {"unreadable": "{oops"}},
        ),
        (
            {"type": "function_call", "call_id": "b", "name": "save", "arguments": "{oops"},
            {
                "type": "function_call",
                "call_id": "b",
                "name": "save",
                "arguments": '{"unreadable": "{oops"}',
            },
        ),
        (
            {"type": "invalid_tool_call", "id": "b", "name": "save", "args": "{oops", "error": "x"},
            {"type": "tool_call", "id": "b", "name": "save", "args": {"unreadable": "{oops"}},
        ),
    ],
)
def test_the_block_of_a_broken_call_is_sent_as_the_call_is(block: Any, sent: Any) -> None:
    broken = {**broken_call("b"), "args": "{oops"}
    message = readable(answer("a1", block, TEXT, invalid_tool_calls=[broken]))
    assert isinstance(message, AIMessage)
    assert message.content == [sent, TEXT]
    assert message.tool_calls[0]["args"] == {"unreadable": "{oops"}
    assert BROKEN_ARGUMENTS not in str(message.content)
