"""A15: what moves out of a result is its text, structured content too; all else stays."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from everlong.nodes.pruning import EVICTED
from everlong.stores import files
from given import case
from scripted_model import ScriptedModel, calling

GIVEN = case("A15")
RESULTS = {one["id"]: one for one in GIVEN["results"]}
LIMIT = GIVEN["settings"]["evict_chars"]
TEXTS = sorted(ident for ident, one in RESULTS.items() if isinstance(one["content"], str))
ODD = [ident for ident in RESULTS if "/" in ident]
R7 = RESULTS["r7"]["content"]["json"]
SEEN = {"type": "human", "id": "h9", "content": "and now?"}


def history(result: dict[str, Any], **more: Any) -> list[BaseMessage]:
    """Return a history in which a tool has given this result."""
    name = result.get("name", "scan")
    given = {key: value for key, value in result.items() if key not in ("id", "name")}
    calls = [{"name": name, "args": {}, "id": result["id"], "type": "tool_call"}]
    return [
        HumanMessage("scan", id="h1"),
        AIMessage("", tool_calls=calls, id="a1"),
        ToolMessage(**(given | more), tool_call_id=result["id"], name=name, id="t1"),
        AIMessage("done", id="a2"),
    ]


async def evicted(converse: Any, result: dict[str, Any], **more: Any) -> tuple[Any, ToolMessage]:
    """Run a call on a history with this result; return the conversation and the result now."""
    model = ScriptedModel(script=["ok"])
    talk = converse(model=model, eviction={"over_chars": LIMIT})
    await talk.seed(history(result, **more))
    (now,) = [one for one in await talk.send({"messages": [SEEN]}) if isinstance(one, ToolMessage)]
    (sent,) = [one for one in model.requests[-1] if isinstance(one, ToolMessage)]
    assert sent.content == now.content
    return talk, now


def moved(result: ToolMessage) -> str:
    record: dict[str, Any] = result.additional_kwargs.get(EVICTED, {})
    return str(record.get("path", ""))


async def test_1_a_short_text_beside_a_large_image_stays(converse):
    _, result = await evicted(converse, RESULTS["r1"])
    assert result.content == RESULTS["r1"]["content"]
    assert not moved(result)


@pytest.mark.parametrize(("ident", "moves"), [("r5", False), ("r6", True)])
async def test_1_the_limit_is_more_than(converse, ident, moves):
    _, result = await evicted(converse, RESULTS[ident])
    assert bool(moved(result)) is moves
    assert (result.text == RESULTS[ident]["content"]) is not moves


async def test_2_both_texts_move_in_order_and_all_else_stays(converse):
    given = RESULTS["r2"]
    talk, result = await evicted(converse, given)
    first, second, image = given["content"]
    assert await files.read_text(talk.store, "kim", moved(result)) == first["text"] + second["text"]
    assert [block["type"] for block in result.content] == ["text", "image"]
    assert result.content[1] == image
    assert (result.artifact, result.status) == (given["artifact"], given["status"])
    assert (result.name, result.tool_call_id, result.id) == (given["name"], "r2", "t1")


@pytest.mark.parametrize("ident", ODD, ids=["thought", "passwd"])
async def test_3_odd_call_ids_give_a_short_safe_key_of_the_users_own(converse, ident):
    talk, result = await evicted(converse, RESULTS[ident])
    path = moved(result)
    assert len(path) < 100
    assert set(path) <= set("abcdefghijklmnopqrstuvwxyz_0123456789/.")
    assert ".." not in path
    assert await files.read_text(talk.store, "kim", path) == RESULTS[ident]["content"]
    assert await files.list_paths(talk.store, "passwd") == []
    assert len(await files.list_paths(talk.store, "kim")) == 1
    assert result.tool_call_id == ident


def json_forms() -> dict[str, Any]:
    return {
        "a tool's dict": R7,
        "a tool's list": [R7, {"n": [1, 2.5, None, True], "名": "夜莺"}],
        "a json block": [{"type": "json", "json": R7}],
    }


@pytest.mark.parametrize("form", json_forms())
async def test_4_structured_content_is_read_back_as_the_same_json(converse, form):
    given = json_forms()[form]

    @tool
    def look() -> Any:
        """Look it up."""
        return given

    def script(messages: list[BaseMessage]) -> Any:
        last = messages[-1]
        if last.type == "human":
            return calling(("look", {}))
        pages.extend([last.text.rsplit("\n\n[", 1)[0]] if last.name == "read_file" else [])
        if last.name == "look" or "go on with offset" in last.text:
            offset = sum(map(len, pages))
            args = {"path": moved(last) or files.evicted_path(whole()), "offset": offset}
            return calling(("read_file", args), prefix=f"c{len(messages)}")
        return "read"

    def whole() -> str:
        return json.dumps(R7 if form == "a json block" else given, ensure_ascii=False)

    pages: list[str] = []
    talk = converse(model=ScriptedModel(script=script), tools=[look])
    assert await talk.say("look") == "read"
    assert json.loads("".join(pages)) == json.loads(whole())


async def test_4_structured_content_of_an_imported_history_is_moved_alike(converse):
    talk, result = await evicted(converse, RESULTS["r7"], content=[{"type": "json", "json": R7}])
    stored = await files.read_text(talk.store, "kim", moved(result))
    assert json.loads(stored) == R7
    assert len(result.text) < 3_000


async def test_4_texts_beside_structured_content_stand_on_lines_of_their_own(converse):
    blocks = [{"type": "text", "text": "before"}, {"json": R7}, {"type": "text", "text": "after"}]
    talk, result = await evicted(converse, RESULTS["r7"], content=blocks)
    stored = (await files.read_text(talk.store, "kim", moved(result))).split("\n")
    assert (stored[0], json.loads(stored[1]), stored[2]) == ("before", R7, "after")


@pytest.mark.parametrize("ident", [*TEXTS, "r2"])
async def test_5_the_preview_shows_both_ends_the_size_the_key_and_how_to_read_on(converse, ident):
    given = RESULTS[ident]
    _, result = await evicted(converse, given)
    if not moved(result):
        assert ident == "r5"
        return
    content = given["content"]
    text = content if isinstance(content, str) else "".join(one.get("text", "") for one in content)
    shown = result.text
    assert text[:900] in shown
    assert text[-900:] in shown
    assert f"{len(text):,} characters" in shown
    assert moved(result) in shown
    assert "read_file" in shown
    assert len(shown) < 3_000
