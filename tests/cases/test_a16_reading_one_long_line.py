"""A16: a result that is one long line is read back in bounded pages, and never moves again."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from everlong.nodes.tokens import tail_size
from everlong.stores import files
from given import case
from scripted_model import ScriptedModel, asks_for_summary, calling

GIVEN = case("A16")
WHOLE: str = GIVEN["result"]["content"]
LIMIT, WINDOW = (GIVEN["settings"][name] for name in ("evict_chars", "window_tokens"))
PATH = files.evicted_path(WHOLE)
SETTINGS = {"trigger_messages": 0, "window_tokens": WINDOW}


@tool
def export() -> str:
    """Export everything."""
    return WHOLE


def reading(read: list[ToolMessage]) -> Any:
    """Export, then read every page to the end; old ones may be compacted away meanwhile."""

    def script(messages: Sequence[BaseMessage]) -> Any:
        last = messages[-1]
        if asks_for_summary(messages):
            return "An export is being read page by page."
        if isinstance(last, HumanMessage):
            return calling(("export", {}))
        read.extend([last] if last.name == "read_file" else [])
        more = re.search(r"go on with (offset|line)=(\d+)", last.text)
        if last.name == "export" or more:
            path = re.search(r"large_tool_results/\w+\.txt", last.text)[0]
            args = {"path": path} | ({more[1]: int(more[2])} if more else {})
            return calling(("read_file", args), prefix=f"c{len(read)}")
        return "read it all"

    return script


def begin(converse: Any, script: Any, **context: Any) -> Any:
    given = {"eviction": {"over_chars": LIMIT}, "compaction": SETTINGS, "max_tool_rounds": 1_000}
    return converse(model=ScriptedModel(script=script), tools=[export], **(given | context))


def pages(messages: Sequence[BaseMessage], name: str = "read_file") -> list[ToolMessage]:
    return [one for one in messages if isinstance(one, ToolMessage) and one.name == name]


def parts(read: Sequence[ToolMessage]) -> list[str]:
    return [page.text.rsplit("\n\n[", 1)[0] for page in read]


@pytest.mark.parametrize("window", [WINDOW, 12_000, 200_000, 0])
async def test_1_2_3_pages_are_bounded_join_to_the_original_and_never_move(converse, window):
    read: list[ToolMessage] = []
    settings = {"trigger_messages": 0, "window_tokens": window}
    talk = begin(converse, reading(read), compaction=settings)
    assert await talk.say("export and read") == "read it all"
    assert all(len(page.text) <= LIMIT // 2 for page in read)
    assert all("go on with offset=" in page.text for page in read[:-1])
    assert read[-1].text.endswith("this is the end.]")
    if window:
        assert all(tail_size(page) <= window // 2 for page in read)
    assert "".join(parts(read)) == WHOLE
    for part in parts(read):
        part.encode()  # no half of a surrogate pair
    assert [event["type"] for event in talk.events].count("eviction") == 1
    assert len(await files.list_paths(talk.store, "kim")) == 1


@pytest.mark.parametrize("backend", ["memory"], indirect=True)
@pytest.mark.parametrize(
    "sign", ["👨‍👩‍👧‍👦", "e\u0301", "🇳🇴", "👍🏽", "\u1100\u1161\u11a8", "\r\n"], ids=ascii
)
async def test_2_no_sign_that_people_see_as_one_is_cut_in_two(converse, sign):
    text = "x" + sign * (80_000 // len(sign))

    @tool
    def export() -> str:
        """Export everything."""
        return text

    pages_read: list[ToolMessage] = []
    talk = begin(converse, reading(pages_read))
    talk.tools = [export]
    talk.use_store(talk.store)
    await talk.say("export and read")
    read = parts(pages_read)
    assert len(read) > 3
    assert "".join(read) == text
    assert all(part.removeprefix("x").count(sign) * len(sign) >= len(part) - 1 for part in read)
    preview = next(
        one.text
        for request in talk.context.model.requests
        for one in request
        if one.name == "export" and "## Beginning" in one.text
    )
    head = preview.split("## Beginning\n")[1].split("\n\n## End\n")
    assert head[0] == "x" + sign * ((len(head[0]) - 1) // len(sign))
    assert head[1] == sign * (len(head[1]) // len(sign))


async def test_3_the_same_range_a_third_time_in_a_row_gives_a_hint(converse):
    def script(messages):
        asked = sum(one.type == "ai" for one in messages)
        if asked == 0:
            return calling(("export", {}))
        if asked < 6:
            same = {"path": PATH} | ({"line": 1} if asked == 2 else {"offset": 0})
            args = same if asked < 5 else {"path": PATH, "offset": 7}
            return calling(("read_file", args), prefix=f"c{asked}")
        return "enough"

    talk = begin(converse, script, compaction={"window_tokens": 200_000})
    assert await talk.say("read it") == "enough"
    first, second, third, fourth, other = pages(await talk.messages())
    assert first.text == second.text
    for hint in (third, fourth):
        assert len(hint.text) < 400
        assert "Not read again" in hint.text
        assert "go on with offset=" in hint.text
        assert hint.status == "error"
    assert other.text.startswith(WHOLE[7:100])


async def test_3_a_new_question_may_read_the_same_range_again(converse):
    def script(messages):
        last = messages[-1]
        said = sum(one.type == "human" for one in messages)
        if last.type == "human":
            return calling(("read_file", {"path": PATH}), prefix=f"c{said}")
        return "read"

    talk = begin(converse, script)
    await files.keep(talk.store, "kim", WHOLE)
    await talk.say("one", "two", "three", "four")
    assert len({page.text for page in pages(await talk.messages())}) == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"path": "large_tool_results/none.txt"}, "no stored text"),
        ({"path": "large_tool_results/" + "f" * 900}, "no stored text"),
        ({"path": "../eve/large_tool_results/x.txt"}, "relative path"),
        ({"path": "/etc/passwd"}, "relative path"),
        ({"path": "HERS"}, "no stored text"),
        ({"path": PATH, "offset": 10**9}, "ends before that"),
        ({"path": PATH, "line": 10**9}, "ends before that"),
        ({"path": PATH, "offset": -1}, "offset"),
        ({"path": "sessions/thread-1#999"}, "no stored text"),
        ({"path": "sessions/thread-1"}, "which message"),
    ],
    ids=str,
)
async def test_4_what_is_not_there_is_a_short_error_result(converse, args, told):
    hers = "hers " * 20
    args = args | ({"path": files.evicted_path(hers)} if args["path"] == "HERS" else {})

    def script(messages):
        return "ok" if messages[-1].type == "tool" else calling(("read_file", args))

    talk = begin(converse, script)
    await files.keep(talk.store, "eve", hers)
    await files.keep(talk.store, "kim", WHOLE)
    assert await talk.say("read") == "ok"
    (result,) = pages(await talk.messages())
    assert told in result.text
    assert len(result.text) < 700
    assert result.status == "error"
    assert "hers hers" not in result.text


async def test_5_after_a_restart_the_state_holds_the_preview(converse):
    talk = begin(converse, [calling(("export", {})), "exported"])
    await talk.say("export")
    talk.use_store(talk.store)  # a new graph on what was stored
    (preview,) = pages(await talk.messages(), "export")
    assert len(preview.text) < 3_000
    assert PATH in preview.text
    async for snapshot in talk.graph.aget_state_history(talk.config):
        for message in snapshot.values.get("messages", []):
            assert len(message.text) < LIMIT


@tool
def read_file(path: str) -> str:
    """Read a file of the project."""
    return f"no such file: {path}"


def reading_by(names: set[str]) -> Any:
    """Read the first page by whatever tool the notice names."""

    def script(messages):
        last = messages[-1]
        if last.type == "human":
            return calling(("export", {}))
        if last.name == "export":
            named = re.search(r"read the rest with (\w+)", last.text)
            names.add(named[1] if named else "")
            return calling((named[1], {"path": PATH})) if named else "nothing to read with"
        return last.text

    return script


async def test_5_the_notice_names_a_tool_that_is_bound_and_reads_it(converse):
    names: set[str] = set()
    talk = begin(converse, reading_by(names))
    talk.tools = [export, read_file]
    talk.use_store(talk.store)
    answer = await talk.say("export and read")
    assert names == {"read_stored"}
    assert answer.startswith(WHOLE[:100])
    assert names <= set(talk.context.model.tools[0])
    assert "read_stored" in talk.last_request[0].text


async def test_5_where_nothing_reads_it_back_the_notice_names_no_tool(converse):
    @tool("read_stored")
    def own() -> str:
        """Do something else."""
        return ""

    names: set[str] = set()
    talk = begin(converse, reading_by(names))
    talk.tools = [export, read_file, own]
    talk.use_store(talk.store)
    assert await talk.say("export and read") == "nothing to read with"
    assert names == {""}
    assert PATH in pages(await talk.messages(), "export")[0].text
