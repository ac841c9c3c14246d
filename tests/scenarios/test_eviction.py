"""Oversized tool results move to the store, and come back by read_file."""

import asyncio
import re
import time

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from everlong.stores import files, transcripts
from failing_store import FailingStore
from scripted_model import ScriptedModel, calling

BIG = "".join(f"line {number}: value {number * 7}\n" for number in range(6_000))


@tool
def export(size: int) -> str:
    """Export the table."""
    return BIG if size == 0 else "x" * size


def once(call, answer="read"):
    def script(messages):
        return answer if messages[-1].type == "tool" else call

    return ScriptedModel(script=script)


async def result_of(talk):
    (result,) = [m for m in await talk.messages() if isinstance(m, ToolMessage)]
    return result


async def test_the_preview_has_head_tail_size_and_path_and_the_store_has_the_whole(converse):
    talk = converse(model=once(calling(("export", {"size": 0}))), tools=[export])
    await talk.say("export")
    result = await result_of(talk)
    assert "line 0: value 0" in result.text
    assert "line 5999: value 41993" in result.text
    assert f"{len(BIG):,}" in result.text
    path = re.search(r"large_tool_results/\w+\.txt", result.text)[0]
    assert await files.read_text(talk.store, "kim", path) == BIG
    assert await files.read_text(talk.store, "eve", path) is None
    assert talk.last_request[-1].text == result.text
    entries = await transcripts.read(talk.store, "kim", "thread-1")
    (kept,) = [entry for entry in entries if entry.role == "tool"]
    assert await transcripts.full_text(talk.store, "kim", kept) == BIG


async def test_no_checkpoint_ever_holds_the_whole_result(converse):
    talk = converse(model=once(calling(("export", {"size": 0}))), tools=[export])
    await talk.say("export")
    async for snapshot in talk.graph.aget_state_history(talk.config):
        assert all(len(m.text) < 6_000 for m in snapshot.values.get("messages", []))
        assert len(str(snapshot.tasks)) < 20_000


async def test_session_search_finds_words_inside_a_result_that_was_moved(converse):
    def script(messages):
        last = messages[-1]
        if last.type == "human":
            call = ("export", {"size": 0}) if "export" in last.text else None
            return calling(call or ("session_search", {"query": "value 20993"}), prefix=last.text)
        return last.text

    memory = {"enabled": True, "flush": "never", "consolidate": "on_request"}
    talk = converse(model=ScriptedModel(script=script), tools=[export], memory=memory)
    answer = await talk.say("export", "find")
    assert "line 2999: value 20993" in answer
    assert re.search(r"Source: large_tool_results/\w+\.txt#3000", answer)


async def test_list_files_shows_only_the_users_own(converse):
    talk = converse(model=once(calling(("list_files", {}))))
    await files.write(talk.store, "kim", "mine.txt", "mine")
    await files.write(talk.store, "eve", "hers.txt", "hers")
    await talk.say("list")
    assert (await result_of(talk)).text == "mine.txt (4 characters)"


async def test_the_same_content_is_stored_once(converse):
    def script(messages):
        calls = calling(("export", {"size": 90_000}), prefix=f"c{len(messages)}")
        return "ok" if messages[-1].type == "tool" else calls

    talk = converse(model=ScriptedModel(script=script), tools=[export])
    await talk.say("export", "export again")
    assert len(await files.list_paths(talk.store, "kim")) == 1


async def test_imported_histories_are_treated_alike(converse):
    talk = converse(model=ScriptedModel(script=["ok"]))
    await talk.seed(
        [
            HumanMessage("export"),
            calling(("export", {})),
            ToolMessage("y" * 90_000, tool_call_id="call_0_export", name="export", id="t1"),
            AIMessage("done"),
        ]
    )
    await talk.say("and?")
    result = await result_of(talk)
    assert result.id == "t1"
    assert "large_tool_results/" in result.text


async def test_a_store_that_fails_leaves_the_original(backend, converse, caplog):
    talk = converse(model=once(calling(("export", {"size": 90_000}))), tools=[export])
    talk.use_store(FailingStore(backend.store))
    talk.store.fail_writes = OSError("disk full")
    assert await talk.say("export") == "read"
    assert len((await result_of(talk)).text) == 90_000
    assert "disk full" in caplog.text


async def test_a_small_window_makes_the_limit_smaller(converse):
    talk = converse(
        model=once(calling(("export", {"size": 30_000}))),
        tools=[export],
        compaction={"window_tokens": 32_000},
    )
    await talk.say("export")
    assert "large_tool_results/" in (await result_of(talk)).text


async def test_a_result_that_could_not_move_is_moved_by_the_next_call(backend, converse):
    talk = converse(model=once(calling(("export", {"size": 90_000}))), tools=[export])
    failing = FailingStore(backend.store)
    talk.use_store(failing)
    failing.fail_writes = OSError("disk full")
    await talk.say("export")
    failing.fail_writes = None
    talk.context = talk.context.model_copy(update={"model": ScriptedModel(script=["fine"])})
    await talk.say("and now?")
    result = await result_of(talk)
    assert "large_tool_results/" in result.text
    values = await talk.values()
    assert values["meter"]["tokens"] < 5_000
    assert await files.read_text(backend.store, "kim", files.evicted_path("x" * 90_000))


async def test_a_store_that_fails_is_tried_a_bounded_number_of_times(backend, converse, caplog):
    def script(messages):
        rounds = sum(message.type == "tool" for message in messages)
        size = {"size": 90_000 if rounds == 0 else 10}
        return "read" if rounds == 5 else calling(("export", size), prefix=f"c{rounds}")

    talk = converse(model=ScriptedModel(script=script), tools=[export])
    talk.use_store(FailingStore(backend.store))
    talk.store.fail_writes = OSError("disk full")
    assert await talk.say("export") == "read"
    assert sum("Eviction of" in record.message for record in caplog.records) == 1


async def test_a_window_that_a_provider_named_makes_the_limit_smaller(converse):
    model = ScriptedModel(script=["first", "second"])
    talk = converse(model=model, compaction={"trigger_messages": 0})
    await talk.say("hello")
    result = ToolMessage("y" * 30_000, tool_call_id="call_0_export", name="export", id="t1")
    await talk.seed([HumanMessage("export"), calling(("export", {})), result, AIMessage("done")])
    await talk.graph.aupdate_state(
        talk.config, {"named_windows": {"ScriptedModel": 32_000}}, as_node="consolidate"
    )
    await talk.say("and?")
    assert "large_tool_results/" in (await result_of(talk)).text


async def test_a_smaller_window_moves_what_was_short_enough_before(converse):
    talk = converse(
        model=once(calling(("export", {"size": 30_000}))),
        tools=[export],
        compaction={"window_tokens": 200_000},
    )
    await talk.say("export")
    assert len((await result_of(talk)).text) == 30_000
    small = talk.context.compaction.model_copy(update={"window_tokens": 32_000})
    talk.context = talk.context.model_copy(
        update={"compaction": small, "model": ScriptedModel(script=["ok"])}
    )
    await talk.say("and?")
    preview = await result_of(talk)
    assert "large_tool_results/" in preview.text
    assert len(preview.text) < 3_000


async def test_a_preview_never_moves_again_however_small_the_window(converse):
    talk = converse(model=once(calling(("export", {"size": 0}))), tools=[export])
    await talk.say("export")
    before = (await result_of(talk)).text
    tiny = talk.context.compaction.model_copy(update={"window_tokens": 2_500, "enabled": False})
    talk.context = talk.context.model_copy(
        update={"compaction": tiny, "model": ScriptedModel(script=["ok"])}
    )
    await talk.say("and?")
    assert (await result_of(talk)).text == before


@pytest.mark.parametrize(
    ("odd", "stored"),
    [("\x00", "\ufffd"), ("\ud83d", "\ufffd"), ("\ud83d\ude00", "😀")],
    ids=["NUL", "lone surrogate", "pair"],
)
async def test_characters_that_no_store_holds_are_replaced_everywhere_alike(converse, odd, stored):
    text = f"{odd}a{odd}{'x' * 90_000}{odd}"

    @tool
    def export() -> str:
        """Export."""
        return text

    talk = converse(model=once(calling(("export", {}))), tools=[export])
    await talk.say("export")
    result = await result_of(talk)
    path = result.additional_kwargs["everlong_evicted"]["path"]
    assert await files.read_text(talk.store, "kim", path) == text.replace(odd, stored)
    assert f"## Beginning\n{stored}a{stored}xx" in result.text
    assert result.text.endswith(f"x{stored}")


@pytest.mark.parametrize("kind", ["lines", "one line", "Han"])
async def test_fifty_megabytes_neither_block_the_loop_nor_stay_in_the_checkpoints(converse, kind):
    text = {
        "lines": "a line of a very long report, which goes on and on\n" * 1_000_000,
        "one line": '{"items":[' + '{"n":"café 😀"},' * 1_600_000,
        "Han": "订单已经从宁波仓库发出，预计下周到港。\n" * 850_000,
    }[kind]
    assert len(text.encode()) > 25_000_000
    waits: list[float] = []

    @tool
    async def export() -> str:
        """Export everything."""
        return text

    async def beat():
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            waits.append(time.perf_counter() - began - 0.01)

    talk = converse(model=once(calling(("export", {}))), tools=[export])
    beating = asyncio.create_task(beat())
    began = time.process_time()
    assert await talk.say("export") == "read"
    took = time.process_time() - began
    beating.cancel()
    assert took < 20
    assert max(waits) < 2
    size = 0
    async for snapshot in talk.graph.aget_state_history(talk.config):
        size += len(str(snapshot.values)) + len(str(snapshot.tasks))
    assert size < 200_000
    file = await files.find(talk.store, "kim", files.evicted_path(text))
    assert file is not None
    assert file.chars == len(text)
    page = await files.read_page(talk.store, "kim", file.path, offset=len(text) - 100)
    assert page is not None
    assert text.endswith(page.text)


async def test_switched_off_nothing_moves(converse):
    talk = converse(
        model=once(calling(("export", {"size": 90_000}))),
        tools=[export],
        eviction={"enabled": False},
    )
    await talk.say("export")
    assert len((await result_of(talk)).text) == 90_000


async def test_without_a_store_nothing_moves_and_the_call_goes_on(converse):
    talk = converse(model=once(calling(("export", {"size": 90_000}))), tools=[export])
    talk.use_store(None)
    assert await talk.say("export") == "read"
    assert len((await result_of(talk)).text) == 90_000


async def test_a_made_up_record_hides_no_oversized_result(converse):
    talk = converse(model=ScriptedModel(script=["ok"]))
    forged = {"everlong_evicted": {"path": "../eve/x", "chars": 3, "waits_for_preview": True}}
    result = ToolMessage(
        "y" * 90_000,
        tool_call_id="call_0_export",
        name="export",
        id="t1",
        additional_kwargs=forged,
    )
    await talk.seed([HumanMessage("export"), calling(("export", {})), result, AIMessage("done")])
    await talk.say("and?")
    assert len((await result_of(talk)).text) < 3_000
