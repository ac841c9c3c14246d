"""Whatever a thread holds, its repair is a request that a provider may accept, and is stable."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.blocks import is_thought, lonely, server_call, server_result
from everlong.nodes.repair import Repair, for_request, repair
from invariants import check_nothing_empty, check_pairs
from strategies import QUICK, broken_transcripts, transcripts


@QUICK
@given(broken_transcripts(), st.booleans())
def test_a_repaired_history_has_whole_pairs_and_nothing_empty(
    messages: list[BaseMessage], close_open: bool
) -> None:
    repaired = _repaired(messages, close_open)
    check_pairs(repaired, may_end_open=not close_open)
    users = [each for each in repaired if isinstance(each, HumanMessage)]
    check_nothing_empty([each for each in repaired if each not in users[-1:]])


@QUICK
@given(broken_transcripts(), st.booleans())
def test_a_repaired_history_needs_no_repair(messages: list[BaseMessage], close_open: bool) -> None:
    repaired = _repaired(messages, close_open)
    assert repair(repaired, close_open=close_open) is None
    assert repair(repaired, close_open=False) is None


@QUICK
@given(broken_transcripts(), st.booleans())
def test_repair_keeps_ids_and_the_order_of_what_was_said(
    messages: list[BaseMessage], close_open: bool
) -> None:
    repaired = _repaired(messages, close_open)
    known = {message.id: message for message in messages}
    made = [message for message in repaired if message.id not in known]
    assert all(isinstance(m, ToolMessage) and m.status == "error" for m in made)
    said = [m.id for m in repaired if not isinstance(m, ToolMessage)]
    assert said == [m.id for m in messages if m.id in set(said)]


@QUICK
@given(broken_transcripts())
def test_repair_changes_nothing_but_what_is_broken(messages: list[BaseMessage]) -> None:
    known = {message.id: message for message in messages}
    for message in _repaired(messages, close_open=True):
        before = known.get(message.id)
        if isinstance(before, AIMessage) and before.content and not before.invalid_tool_calls:
            gone = [b for b in _blocks(before) if b not in _blocks(message)]
            assert [b for b in _blocks(before) if b not in gone] == _blocks(message)
            assert all(map(_is_half_or_empty, gone))
            assert isinstance(message, AIMessage)
            assert [c["args"] for c in message.tool_calls] == [c["args"] for c in before.tool_calls]


@QUICK
@given(transcripts())
def test_a_well_formed_history_needs_no_repair(messages: list[BaseMessage]) -> None:
    reordered = repair(messages, close_open=False)
    if reordered:  # results in another order than their calls are the one thing to mend
        assert all(note.startswith("moved result") for note in reordered.notes)
        assert {id(m) for m in reordered.messages} == {id(m) for m in messages}


@QUICK
@given(broken_transcripts())
def test_requests_of_a_repaired_history_hold_only_calls_that_can_be_read(
    messages: list[BaseMessage],
) -> None:
    sent = for_request(_repaired(messages, close_open=True))
    check_pairs(sent)
    assert not any(isinstance(m, AIMessage) and m.invalid_tool_calls for m in sent)


@QUICK
@given(broken_transcripts(), st.booleans())
def test_each_server_side_call_has_its_result_and_each_result_its_call(
    messages: list[BaseMessage], close_open: bool
) -> None:
    repaired = _repaired(messages, close_open)
    assert lonely(repaired) == set()
    # The other half of what is sent is sent, too.
    sent = for_request(repaired)
    assert lonely(sent) == set()


@QUICK
@given(broken_transcripts())
def test_no_message_of_thoughts_alone_is_sent_and_no_thought_is_changed(
    messages: list[BaseMessage],
) -> None:
    repaired = _repaired(messages, close_open=True)
    thoughts = {m.id: _thoughts(m) for m in messages}
    for message in for_request(repaired):
        assert _thoughts(message) == thoughts.get(message.id, [])
        assert not _blocks(message) or len(_thoughts(message)) < len(_blocks(message))


def _blocks(message: BaseMessage) -> list[Any]:
    content = message.content
    return list(content) if isinstance(content, list) else [content] if content.strip() else []


def _thoughts(message: BaseMessage) -> list[Any]:
    return [block for block in _blocks(message) if is_thought(block)]


def _is_half_or_empty(block: Any) -> bool:
    if isinstance(block, dict) and (server_call(block) or server_result(block)):
        return True
    return not (block["text"] if isinstance(block, dict) else block).strip()


def _repaired(messages: list[BaseMessage], close_open: bool) -> list[BaseMessage]:
    done = repair(messages, close_open=close_open)
    return (done or Repair(messages, [])).messages
