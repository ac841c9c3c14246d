import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.pruning import (
    EVICTED,
    Shortened,
    prune_results,
    shorten,
    shorten_message,
    truncate_arguments,
)
from everlong.nodes.tokens import estimate_message
from strategies import calls, human, result, says

LONG = "".join(f"line {n} of the report\n" for n in range(1_000))


def path_of(text: str) -> str:
    return f"large_tool_results/{len(text)}.txt"


def loop(count: int, text: str = LONG) -> list[BaseMessage]:
    messages: list[BaseMessage] = [human("h1")]
    for n in range(count):
        messages += [calls(f"a{n}", f"c{n}"), result(f"t{n}", f"c{n}", text)]
    return messages


def pruned(messages: Sequence[BaseMessage], **changes: Any) -> list[Shortened]:
    settings: dict[str, Any] = {
        "protect_tokens": 0,
        "minimum_tokens": 0,
        "preview_chars": 2_000,
        "exempt": (),
        "path_of": path_of,
    }
    return prune_results(messages, **(settings | changes))


def names(found: Sequence[Shortened]) -> list[str | None]:
    return [one.message.id for one in found]


def test_an_old_result_becomes_its_first_and_last_half() -> None:
    (found,) = pruned(loop(1))
    text = str(found.message.content)
    assert text.startswith(LONG[:1_000])
    assert text.endswith(LONG[-1_000:])
    assert f"[{len(LONG) - 2_000} characters cut; large_tool_results/{len(LONG)}.txt" in text
    assert len(text) < 2_200
    assert found.path_text == LONG


def test_what_was_cut_says_where_the_transcript_finds_the_whole() -> None:
    (found,) = pruned(loop(1))
    assert found.message.additional_kwargs[EVICTED] == {"path": path_of(LONG), "chars": len(LONG)}


def test_the_newest_results_are_protected_up_to_so_many_tokens() -> None:
    messages = loop(4)
    one = estimate_message(messages[-1])
    assert names(pruned(messages, protect_tokens=2 * one)) == ["t0", "t1"]
    assert names(pruned(messages, protect_tokens=2 * one + 1)) == ["t0"]
    assert names(pruned(messages, protect_tokens=9 * one)) == []


def test_nothing_is_cut_where_too_little_would_be_freed() -> None:
    messages = loop(2)
    freed = sum(
        estimate_message(before) - estimate_message(after.message)
        for before, after in zip(messages[2::2], pruned(messages), strict=True)
    )
    assert names(pruned(messages, minimum_tokens=freed)) == ["t0", "t1"]
    assert pruned(messages, minimum_tokens=freed + 1) == []


def test_pruning_again_changes_nothing() -> None:
    messages = loop(1)
    (found,) = pruned(messages)
    messages[-1] = found.message
    assert pruned(messages) == []


def test_pruning_harder_keeps_the_path_and_the_count_of_what_is_missing() -> None:
    messages = loop(1)
    messages[-1] = pruned(messages)[0].message
    (harder,) = pruned(messages, preview_chars=200)
    assert harder.message.content == shorten(LONG, 200, path_of(LONG))
    assert harder.path_text == ""


def test_what_lost_its_whole_gets_no_path_to_a_part() -> None:
    messages = loop(1)
    messages[-1] = pruned(messages, path_of=None)[0].message
    (harder,) = pruned(messages, preview_chars=200)
    assert "holds the whole" not in str(harder.message.content)
    assert harder.path_text == ""


def test_a_path_is_asked_for_only_where_something_is_cut() -> None:
    asked: list[str] = []
    assert pruned(loop(1, "short"), path_of=lambda text: asked.append(text) or "x") == []
    assert asked == []


def test_an_evicted_preview_keeps_its_own_path() -> None:
    messages = loop(1)
    note = {"path": "large_tool_results/whole.txt", "chars": 900_000}
    messages[-1] = messages[-1].model_copy(update={"additional_kwargs": {EVICTED: note}})
    (found,) = pruned(messages)
    assert "large_tool_results/whole.txt" in str(found.message.content)
    assert found.path_text == ""
    assert found.message.additional_kwargs[EVICTED] == note


@pytest.mark.parametrize("note", ["x", 3, {"preview_chars": "x"}, {"path": 7}])
def test_notes_that_a_sender_made_up_do_no_harm(note: Any) -> None:
    kwargs = {"everlong_shortened": note, EVICTED: note}
    messages = loop(1)
    messages[-1] = messages[-1].model_copy(update={"additional_kwargs": kwargs})
    assert len(pruned(messages)) == 1


def test_without_a_path_the_full_text_still_comes_with_the_change() -> None:
    (found,) = pruned(loop(1), path_of=None)
    assert found.path_text == LONG
    assert "characters cut]" in str(found.message.content)


def test_results_of_exempt_tools_and_pinned_ones_stay() -> None:
    messages = loop(3)
    messages[2] = messages[2].model_copy(update={"name": "read_file"})
    messages[4] = messages[4].model_copy(update={"additional_kwargs": {"pin": True}})
    assert names(pruned(messages, exempt=("read_file",))) == ["t2"]
    assert names(pruned(messages, exempt=("look",))) == ["t0"]  # named by its call


def test_the_partner_of_a_pinned_call_stays() -> None:
    messages = loop(2)
    messages[1] = messages[1].model_copy(update={"additional_kwargs": {"pin": True}})
    assert names(pruned(messages)) == ["t1"]


def test_blocks_status_name_and_artifact_stay() -> None:
    picture = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    shown = ToolMessage(
        [{"type": "text", "text": LONG}, picture, {"type": "text", "text": "end"}],
        id="t0",
        tool_call_id="c0",
        name="look",
        status="error",
        artifact={"rows": 3},
    )
    (found,) = pruned([human("h1"), calls("a0", "c0"), shown])
    after = found.message
    assert isinstance(after, ToolMessage)
    assert after.content[1:] == [picture, {"type": "text", "text": "end"}]
    assert (after.status, after.name, after.artifact, after.id) == (
        "error",
        "look",
        {"rows": 3},
        "t0",
    )
    assert shown.content[0] == {"type": "text", "text": LONG}


@pytest.mark.parametrize("extra", [-1, 0, 1, 30])
def test_a_text_that_would_not_become_shorter_stays(extra: int) -> None:
    assert pruned(loop(1, "x" * (2_000 + extra))) == []


def test_a_user_message_can_become_a_preview_too() -> None:
    found = shorten_message(HumanMessage(LONG, id="h1"), 400, path_of)
    assert found is not None
    assert found.message.id == "h1"
    assert len(str(found.message.content)) < 500
    assert found.path_text == LONG


def writes(message_id: str, call_id: str, args: dict[str, Any], content: Any = "") -> AIMessage:
    made = {"name": "write", "args": args, "id": call_id, "type": "tool_call"}
    return AIMessage(content, id=message_id, tool_calls=[made])


def truncated(
    messages: Sequence[BaseMessage], keep_messages: int = 0, over_chars: int = 2_000
) -> list[Shortened]:
    return truncate_arguments(
        messages, keep_messages=keep_messages, over_chars=over_chars, path_of=path_of
    )


ARGS = {"path": "a.txt", "parts": [{"text": LONG, "size": 3}, "short"], "mode": None}


def test_long_strings_of_old_calls_are_cut_and_the_rest_stays() -> None:
    asking = writes("a0", "c0", ARGS)
    (found,) = truncated([human("h1"), asking, result("t0", "c0"), says("a1"), human("h2")])
    after = found.message
    assert isinstance(after, AIMessage)
    args = after.tool_calls[0]["args"]
    assert args["parts"][0]["text"].startswith(LONG[:100])
    assert len(args["parts"][0]["text"]) < 300
    assert args["parts"][0]["size"] == 3
    assert args | {"parts": 0} == ARGS | {"parts": 0}
    assert json.loads(json.dumps(args)) == args
    assert json.loads(found.path_text) == [{"name": "write", "args": ARGS}]
    assert path_of(found.path_text) in args["parts"][0]["text"]
    assert after.id == "a0"
    assert asking.tool_calls[0]["args"] == ARGS


def test_a_block_that_repeats_the_call_is_cut_alike() -> None:
    blocks = [
        {"type": "text", "text": "I write it."},
        {"type": "tool_use", "id": "c0", "name": "write", "input": ARGS},
        {"type": "function_call", "call_id": "c0", "id": "fc", "arguments": json.dumps(ARGS)},
        {"type": "tool_use", "id": "other", "name": "write", "input": ARGS},
    ]
    messages = [human("h1"), writes("a0", "c0", ARGS, blocks), result("t0", "c0"), human("h2")]
    (found,) = truncated(messages)
    after = found.message
    assert isinstance(after, AIMessage)
    content: Any = after.content
    args = after.tool_calls[0]["args"]
    assert content[0] == blocks[0]
    assert content[1] == {"type": "tool_use", "id": "c0", "name": "write", "input": args}
    assert json.loads(content[2]["arguments"]) == args
    assert content[3] == blocks[3]


def test_cutting_arguments_again_changes_nothing() -> None:
    asking, answer = writes("a0", "c0", ARGS), result("t0", "c0")
    (found,) = truncated([human("h1"), asking, answer, human("h2")])
    assert truncated([human("h1"), found.message, answer, human("h2")]) == []
    (found,) = truncated([human("h1"), asking, answer, human("h2")], over_chars=20)
    assert truncated([human("h1"), found.message, answer, human("h2")], over_chars=20) == []


def test_the_newest_messages_keep_their_arguments() -> None:
    messages: list[BaseMessage] = [human("h1")]
    for n in range(3):
        messages += [writes(f"a{n}", f"c{n}", ARGS), result(f"t{n}", f"c{n}")]
    assert names(truncated(messages, keep_messages=4)) == ["a0"]
    assert names(truncated(messages, keep_messages=3)) == ["a0", "a1"]


def test_a_call_that_has_still_to_run_keeps_its_arguments() -> None:
    assert truncated([human("h1"), writes("a0", "c0", ARGS)]) == []


def test_a_pinned_call_keeps_its_arguments() -> None:
    messages = [human("h1"), writes("a0", "c0", ARGS), result("t0", "c0", pin=True), human("h2")]
    assert truncated(messages) == []


def test_thoughts_of_the_running_turn_go_back_as_they_came() -> None:
    thought = {"type": "thinking", "thinking": "step 1", "signature": "s"}
    asking = writes("a0", "c0", ARGS, [thought])
    messages: list[BaseMessage] = [human("h1"), asking, result("t0", "c0")]
    assert truncated(messages) == []
    assert names(truncated([*messages, says("a1"), human("h2")])) == ["a0"]
