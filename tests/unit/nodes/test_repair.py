import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from everlong.nodes.repair import (
    NO_RESULT,
    NO_SUCH_TOOL,
    NOT_ANSWERED,
    NOT_JSON,
    error_result,
    for_request,
    repair,
    system_text,
)
from everlong.nodes.tidying import NO_OUTPUT, name_calls
from invariants import check_request, check_state
from strategies import BROKEN_ARGUMENTS, broken_call, call, calls, human, result, says


def repaired(messages: Sequence[BaseMessage], *, close_open: bool = True, **known: Any) -> Any:
    done = repair(messages, close_open=close_open, **known)
    assert done is not None
    assert done.notes
    assert repair(done.messages, close_open=close_open, **known) is None
    return done


def shape(messages: Sequence[BaseMessage]) -> list[str]:
    return [
        f"{m.tool_call_id}:{m.status}" if isinstance(m, ToolMessage) else str(m.id)
        for m in messages
    ]


A02 = [
    ToolMessage("Result whose call was removed long ago.", id="t0", tool_call_id="gone1"),
    AIMessage("", id="a0"),
    human("h1", "Please tidy the folder."),
    calls("a1", "k1", name="shell"),
    ToolMessage("", id="t1", tool_call_id="k1"),
    AIMessage([{"type": "text", "text": ""}], id="a2"),
    human("h2", "continue"),
]


def a03() -> AIMessage:
    use = {"type": "tool_use", "name": "notes", "input": {}}
    uses: list[Any] = [use | {"id": "ok1"}, use | {"id": "bad1"}]
    broken = [broken_call("bad1")]
    return AIMessage(uses, id="a1", tool_calls=[call("ok1")], invalid_tool_calls=broken)


def test_a_thread_that_others_broke_is_repaired_once() -> None:
    done = repaired(A02)
    assert [m.id for m in done.messages] == ["h1", "a1", "t1", "h2"]
    assert done.messages[2].content == NO_OUTPUT
    assert all(any(name in note for note in done.notes) for name in ("t0", "a0", "t1", "a2"))
    check_request(done.messages, newest=A02[-1])


def test_a_history_in_order_is_left_alone() -> None:
    messages = [human("h1"), calls("a1", "c1", "c2"), result("t1", "c1"), result("t2", "c2")]
    assert repair(messages, close_open=False) is None
    assert repair([*messages, says("a2"), human("h2")], close_open=True) is None


def test_repair_does_not_change_what_it_was_given() -> None:
    before = [m.model_copy(deep=True) for m in A02]
    assert repair(A02, close_open=True)
    assert before == A02


def test_a_second_result_of_a_call_is_removed() -> None:
    messages = [human("h1"), calls("a1", "c1"), result("t1", "c1"), result("t2", "c1", "again")]
    done = repaired(messages, close_open=False)
    assert [m.id for m in done.messages] == ["h1", "a1", "t1"]
    assert "duplicate" in done.notes[0]


def test_results_are_moved_to_their_call_in_the_order_of_the_calls() -> None:
    messages = [
        human("h1"),
        calls("a1", "c1", "c2"),
        result("t2", "c2"),
        human("h2"),
        result("t1", "c1"),
        says("a2"),
    ]
    done = repaired(messages)
    assert [m.id for m in done.messages] == ["h1", "a1", "t1", "t2", "h2", "a2"]


def test_a_result_before_its_call_is_not_taken_for_the_answer() -> None:
    messages = [human("h1"), result("t0", "call_0", "old"), calls("a1", "call_0")]
    done = repaired(messages, close_open=False)
    assert [m.id for m in done.messages] == ["h1", "a1"]


def test_ids_that_a_model_uses_again_are_matched_with_the_nearest_call() -> None:
    messages = [
        human("h1"),
        calls("a1", "call_0"),
        result("t1", "call_0"),
        calls("a2", "call_0"),
        result("t2", "call_0"),
        says("a3"),
    ]
    assert repair(messages, close_open=True) is None
    unanswered = [human("h1"), calls("a1", "call_0"), *messages[3:]]
    done = repaired(unanswered, finished={"call_0": result("x", "call_0")})
    assert [m.id for m in done.messages][3:] == ["a2", "t2", "a3"]
    assert done.messages[2].content == NO_RESULT


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "thinking", "thinking": "step 1", "signature": "sig-1"}],
        [{"type": "reasoning", "summary": []}],
        [{"type": "image", "url": "https://example.test/a.png"}],
    ],
)
def test_an_assistant_message_of_thoughts_or_images_stays(content: list[Any]) -> None:
    messages = [human("h1"), AIMessage(content, id="a1"), human("h2")]
    assert repair(messages, close_open=True) is None


def test_a_refusal_in_the_older_format_stays() -> None:
    refused = says("a1", "", refusal="I can't do that.")
    assert repair([human("h1"), refused], close_open=False) is None


def test_empty_text_goes_and_thoughts_beside_it_stay() -> None:
    thought = {"type": "thinking", "thinking": "step 1", "signature": "sig-1" + "x" * 4_000}
    use = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    asking = calls("a1", "c1").model_copy(
        update={"content": [thought, {"type": "text", "text": " \n"}, use]}
    )
    done = repaired([human("h1"), asking, result("t1", "c1")], close_open=False)
    assert done.messages[1].content == [thought, use]
    assert done.messages[1].tool_calls == asking.tool_calls
    asking = asking.model_copy(update={"content": [{"type": "text", "text": ""}]})
    done = repaired([human("h1"), asking, result("t1", "c1")], close_open=False)
    assert done.messages[1].content == ""


def test_thoughts_come_through_a_checkpoint_and_a_repair_byte_for_byte() -> None:
    steps: list[BaseMessage] = [human("h1", "Audit the three services.")]
    for n in range(6):
        thought = {"type": "thinking", "thinking": f"step {n}", "signature": f"s{n}" + "x" * 4_000}
        use = {"type": "tool_use", "id": f"c{n}", "name": "look", "input": {}}
        asking = calls(f"a{n}", f"c{n}").model_copy(update={"content": [thought, use]})
        steps += [asking, result(f"t{n}", f"c{n}")]
    saver = JsonPlusSerializer()
    loaded = saver.loads_typed(saver.dumps_typed(steps))
    assert loaded == steps
    assert repair(loaded, close_open=False) is None
    assert for_request(loaded) == steps


@pytest.mark.parametrize("content", ["", "  \n", [], [{"type": "text", "text": ""}]])
def test_an_empty_result_says_that_there_is_no_output(content: Any) -> None:
    empty = ToolMessage(content, id="t1", tool_call_id="c1", artifact={"rows": 3})
    done = repaired([human("h1"), calls("a1", "c1"), empty], close_open=False)
    after = done.messages[2]
    assert (after.content, after.artifact, after.id) == (NO_OUTPUT, {"rows": 3}, "t1")


def test_a_result_that_is_an_image_is_not_empty() -> None:
    picture: dict[str, Any] = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    shown = ToolMessage([{"type": "text", "text": ""}, picture], id="t1", tool_call_id="c1")
    done = repaired([human("h1"), calls("a1", "c1"), shown], close_open=False)
    assert done.messages[2].content == [picture]


def test_an_old_empty_user_message_goes_and_the_newest_stays() -> None:
    done = repaired([human("h1", " "), human("h2"), says("a1")])
    assert [m.id for m in done.messages] == ["h2", "a1"]
    assert repair([human("h1"), says("a1"), human("h2", " ")], close_open=True) is None


def test_calls_that_the_user_walked_away_from_are_closed_before_the_new_message() -> None:
    messages = [human("h1", "go"), calls("a1", "c1", "c2"), human("h2", "what is my balance?")]
    charged = ToolMessage("charged, receipt 881", tool_call_id="c1", name="charge_card", id="t1")
    done = repaired(messages, finished={"c1": charged})
    assert shape(done.messages) == ["h1", "a1", "c1:success", "c2:error", "h2"]
    assert done.messages[2] == charged
    assert done.messages[3].content == NOT_ANSWERED
    check_request(done.messages, newest=messages[-1])


def test_a_finished_result_in_the_history_is_not_put_there_twice() -> None:
    messages = [human("h1"), calls("a1", "c1", "c2"), result("t1", "c1"), human("h2")]
    done = repaired(messages, finished={"c1": result("other", "c1")})
    assert shape(done.messages) == ["h1", "a1", "c1:success", "c2:error", "h2"]
    assert done.messages[2].id == "t1"


def test_what_closes_a_call_has_the_same_id_each_time() -> None:
    messages = [human("h1"), calls("a1", "c1"), human("h2")]
    once, again = repaired(messages), repaired(messages)
    assert once.messages == again.messages
    assert once.messages[2].id == error_result(calls("a1", "c1"), "c1", "x").id
    assert error_result(calls("a2", "c1"), "c1", "x").id != once.messages[2].id
    assert once.messages[2].name == "look"


def test_a_batch_that_still_runs_is_left_to_the_tools() -> None:
    running = [human("h1"), calls("a1", "c1", "c2"), result("t1", "c1")]
    assert repair(running, close_open=False) is None
    assert shape(repaired(running).messages) == ["h1", "a1", "c1:success", "c2:error"]
    assert repair([human("h1"), a03()], close_open=False) is None


def test_an_older_call_without_result_is_closed_in_a_running_loop_too() -> None:
    messages = [human("h1"), calls("a1", "c1"), human("h2"), calls("a2", "c2")]
    done = repaired(messages, close_open=False, finished={"c1": result("t1", "c1")})
    assert shape(done.messages) == ["h1", "a1", "c1:error", "h2", "a2"]
    assert done.messages[2].content == NO_RESULT


def test_a_user_message_after_an_open_call_closes_it_whatever_the_caller_says() -> None:
    messages = [human("h1"), calls("a1", "c1"), human("h2")]
    assert shape(repaired(messages, close_open=False).messages) == ["h1", "a1", "c1:error", "h2"]


def test_a_call_to_no_tool_says_so() -> None:
    messages = [human("h1"), calls("a1", "c1", name="fly"), human("h2")]
    assert repaired(messages, known_names={"look"}).messages[2].content == NO_SUCH_TOOL
    assert repaired(messages, known_names={"fly"}).messages[2].content == NOT_ANSWERED


def test_a_call_that_is_no_json_gets_an_error_beside_its_good_sibling() -> None:
    messages = [human("h1"), a03(), human("h2")]
    done = repaired(messages)
    assert shape(done.messages) == ["h1", "a1", "ok1:error", "bad1:error", "h2"]
    assert done.messages[3].content == NOT_JSON
    assert done.messages[1] == messages[1]
    check_state(done.messages)


def test_a_broken_call_alone_keeps_its_message_and_gets_an_error() -> None:
    asking = AIMessage("", id="a1", invalid_tool_calls=[broken_call("bad1")])
    done = repaired([human("h1"), asking, human("h2")])
    assert shape(done.messages) == ["h1", "a1", "bad1:error", "h2"]


def test_calls_without_id_get_one_of_their_own() -> None:
    asking = AIMessage("", id="a1", invalid_tool_calls=[broken_call(None), broken_call(None)])
    done = repaired([human("h1"), asking, human("h2")])
    check_state(done.messages)
    one, two = done.messages[2:4]
    assert one.tool_call_id != two.tool_call_id
    named = name_calls(asking)
    assert [c["id"] for c in named.invalid_tool_calls] == [one.tool_call_id, two.tool_call_id]
    assert name_calls(named) is named


def test_two_calls_of_one_id_are_told_apart() -> None:
    done = repaired([human("h1"), calls("a1", "c", "c"), result("t1", "c"), result("t2", "c")])
    check_state(done.messages)
    assert shape(done.messages)[:3] == ["h1", "a1", "c:success"]


def test_a_broken_call_is_sent_as_one_that_any_server_can_read() -> None:
    done = repaired([human("h1"), a03(), human("h2")])
    sent = for_request(done.messages)
    asking = sent[1]
    assert isinstance(asking, AIMessage)
    assert [call["id"] for call in asking.tool_calls] == ["ok1", "bad1"]
    assert json.loads(json.dumps(asking.tool_calls[1]["args"])) == {"unreadable": BROKEN_ARGUMENTS}
    check_request(sent)


def test_what_a_loop_left_empty_is_not_sent() -> None:
    loop = [human("h1"), calls("a1", "c1"), ToolMessage("", id="t1", tool_call_id="c1")]
    sent = for_request([*loop, AIMessage("", id="a2")])
    assert [m.id for m in sent] == ["h1", "a1", "t1"]
    assert sent[2].content == NO_OUTPUT


def test_system_messages_join_the_leading_one_in_order() -> None:
    messages = [
        SystemMessage("Never state prices without VAT.", id="s1"),
        human("h1"),
        SystemMessage([{"type": "text", "text": "From now on be brief."}], id="s2"),
        SystemMessage(" ", id="s3"),
    ]
    assert system_text(messages) == ["Never state prices without VAT.", "From now on be brief."]
    assert [m.id for m in for_request(messages)] == ["h1"]
