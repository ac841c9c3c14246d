"""Oversized tool results move to the store, and come back by read_file."""

import re

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


@pytest.mark.parametrize(("size", "moved"), [(80_000, False), (80_001, True)])
async def test_a_result_moves_when_it_is_longer_than_the_limit(converse, size, moved):
    talk = converse(model=once(calling(("export", {"size": size}))), tools=[export])
    await talk.say("export")
    result = await result_of(talk)
    assert ("large_tool_results/" in result.text) is moved
    assert (len(result.text) < 6_000) is moved
    assert ("eviction" in talk.event_types()) is moved


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


async def test_read_file_gives_every_page_and_is_never_moved_itself(converse):
    one_line = '{"items":[' + '{"n":"café 😀"},' * 20_000 + "{}]}"

    @tool
    def dump() -> str:
        """Dump everything on one line."""
        return one_line

    def script(messages):
        last = messages[-1]
        if last.type == "human":
            return calling(("dump", {}))
        path = re.search(r"large_tool_results/\w+\.txt", last.text)[0]
        more = re.search(r"go on with offset=(\d+)", last.text)
        if last.name == "dump" or more:
            args = {"path": path, "offset": int(more[1]) if more else 0}
            return calling(("read_file", args), prefix=f"c{len(messages)}")
        return "read it all"

    talk = converse(
        model=ScriptedModel(script=script),
        tools=[dump],
        compaction={"trigger_messages": 0, "window_tokens": 1_000_000},
    )
    assert await talk.say("dump and read") == "read it all"
    pages = [m.text for m in await talk.messages() if getattr(m, "name", "") == "read_file"]
    assert len(pages) > 3
    assert all(len(page) < 40_000 for page in pages)
    assert "".join(page.rsplit("\n\n[", 1)[0] for page in pages) == one_line


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"path": "large_tool_results/none.txt"}, "no stored text"),
        ({"path": "../kim/secret"}, "relative path"),
        ({"path": "/etc/passwd"}, "relative path"),
    ],
)
async def test_a_path_that_is_not_there_is_told_and_raises_nothing(converse, args, told):
    talk = converse(model=once(calling(("read_file", args))))
    assert await talk.say("read") == "read"
    assert told in (await result_of(talk)).text


async def test_reading_past_the_end_says_how_long_the_text_is(converse):
    talk = converse(model=once(calling(("read_file", {"path": "a.txt", "offset": 900}))))
    await files.write(talk.store, "kim", "a.txt", "short")
    await talk.say("read")
    assert "5 characters" in (await result_of(talk)).text


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


async def test_status_artifact_and_other_blocks_stay(converse):
    blocks = [
        {"type": "text", "text": "a" * 50_000},
        {"type": "text", "text": "b" * 50_000},
        {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
    ]
    talk = converse(model=ScriptedModel(script=["ok"]))
    original = ToolMessage(
        blocks,
        tool_call_id="call_0_scan",
        name="scan",
        id="t1",
        status="error",
        artifact={"rows": 3},
    )
    await talk.seed([HumanMessage("scan"), calling(("scan", {})), original, AIMessage("done")])
    await talk.say("and?")
    result = await result_of(talk)
    assert (result.status, result.name, result.artifact) == ("error", "scan", {"rows": 3})
    assert [block["type"] for block in result.content] == ["text", "image"]
    path = result.additional_kwargs["everlong_evicted"]["path"]
    assert await files.read_text(talk.store, "kim", path) == "a" * 50_000 + "b" * 50_000


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
