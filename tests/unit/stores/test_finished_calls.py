from langchain_core.messages import ToolMessage
from langgraph.store.base import BaseStore

from everlong.stores import finished_calls

ODD_ID = "call_1__thought__" + "Qx/" * 500


def result(call: str, content: str = "done") -> ToolMessage:
    return ToolMessage(
        content, tool_call_id=call, id=f"result:{call}", name="pay", artifact={"n": 1}
    )


async def test_kept_results_are_found_by_their_calls(store: BaseStore) -> None:
    results = [result("c1"), result(ODD_ID), result("../../etc/passwd")]
    await finished_calls.keep(store, "u", "t", "a1", results)
    found = await finished_calls.find(store, "u", "t", "a1")
    assert found == {one.tool_call_id: one for one in results}


async def test_keeping_twice_keeps_one_and_another_batch_adds(store: BaseStore) -> None:
    await finished_calls.keep(store, "u", "t", "a1", [result("c1")])
    await finished_calls.keep(store, "u", "t", "a1", [result("c1"), result("c2")])
    assert set(await finished_calls.find(store, "u", "t", "a1")) == {"c1", "c2"}


async def test_a_result_over_a_megabyte_is_kept_whole(store: BaseStore) -> None:
    long = result("c1", "部" * 1_000_000)
    await finished_calls.keep(store, "u", "t", "a1", [long])
    assert await finished_calls.find(store, "u", "t", "a1") == {"c1": long}


async def test_dropping_forgets_one_message_only(store: BaseStore) -> None:
    await finished_calls.keep(store, "u", "t", "a1", [result("c1")])
    await finished_calls.keep(store, "u", "t", "a2", [result("c1")])
    await finished_calls.drop(store, "u", "t", "a1")
    await finished_calls.drop(store, "u", "t", "nothing kept")
    assert await finished_calls.find(store, "u", "t", "a1") == {}
    assert set(await finished_calls.find(store, "u", "t", "a2")) == {"c1"}


async def test_nothing_is_found_elsewhere(store: BaseStore) -> None:
    await finished_calls.keep(store, "ada", "t", "a1", [result("c1")])
    for user, thread, message in (("ad", "t", "a1"), ("ada", "t2", "a1"), ("ada", "t", "a")):
        assert await finished_calls.find(store, user, thread, message) == {}
