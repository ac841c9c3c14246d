"""A user message that is too long: what stays of it, and where the whole is."""

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from everlong.nodes.previews import result_preview, user_preview
from everlong.nodes.pruning import EVICTED

LONG = "begin " + "middle " * 2_000 + "end"
IMAGE = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}


def path_of(text):
    return f"large_tool_results/{len(text)}.txt"


def preview(message, over=400, chars=400, reader="read_file"):
    return user_preview(
        message, over_chars=over, preview_chars=chars, path_of=path_of, reader=reader
    )


def test_a_preview_has_head_tail_size_path_and_how_to_read_on():
    found = preview(HumanMessage(LONG, id="h"))
    text = found.message.text
    assert text.startswith("[The user's message is too long to keep here: 14,009 characters.")
    assert path_of(LONG) in text
    assert "read_file" in text
    assert "## Beginning\nbegin middle" in text
    assert text.endswith("middle end")
    assert len(text) < 700


def test_the_full_text_comes_along_and_is_marked_as_an_evicted_result_is():
    found = preview(HumanMessage(LONG, id="h", additional_kwargs={"mine": 1}))
    assert found.path_text == LONG
    record = {"path": path_of(LONG), "chars": len(LONG)}
    assert found.message.additional_kwargs == {"mine": 1, EVICTED: record}


def test_id_name_and_other_blocks_stay():
    message = HumanMessage([{"type": "text", "text": LONG}, IMAGE], id="h", name="kim")
    found = preview(message).message
    assert (found.id, found.name, found.content[1]) == ("h", "kim", IMAGE)
    assert [block["type"] for block in found.content] == ["text", "image"]


@pytest.mark.parametrize(
    "content",
    ["short", "x" * 400, [{"type": "text", "text": "short"}, IMAGE], [IMAGE], []],
    ids=str,
)
def test_what_is_no_longer_than_asked_for_stays(content):
    assert preview(HumanMessage(content, id="h")) is None


def test_a_text_between_the_preview_and_the_limit_stays():
    assert preview(HumanMessage("x" * 900), over=1_000, chars=400) is None
    assert preview(HumanMessage("x" * 900), over=10, chars=1_000) is None


@pytest.mark.parametrize(
    "attached",
    [
        {"type": "text-plain", "text": LONG, "title": "a.txt"},
        {"type": "text", "text": LONG, "name": "a.txt"},
        {"type": "document", "title": "a.txt", "source": {"type": "text", "data": LONG}},
    ],
    ids=lambda block: block["type"],
)
def test_an_attachment_is_cut_under_its_own_name_and_the_chat_text_stays(attached):
    asked = {"type": "text", "text": "Sum this up. "}
    found = preview(HumanMessage([asked, attached], id="h"))
    first, second = found.message.content
    assert first == asked
    assert second["text"].startswith("[The attachment 'a.txt' is too long")
    assert f"from offset={len(asked['text'])} on" in second["text"]
    assert found.path_text == asked["text"] + LONG


def test_an_attachment_without_a_name_is_called_one():
    found = preview(HumanMessage(["Look.", {"type": "text-plain", "text": LONG}]))
    assert "[An attachment is too long" in found.message.content[1]["text"]


def test_a_preview_becomes_a_smaller_one_and_keeps_its_path():
    first = preview(HumanMessage(LONG, id="h"), chars=2_000)
    second = preview(first.message, over=300, chars=300)
    assert second.path_text == ""
    assert path_of(LONG) in second.message.text
    assert second.message.additional_kwargs[EVICTED] == first.message.additional_kwargs[EVICTED]
    assert len(second.message.text) < len(first.message.text)


def test_a_record_that_somebody_made_up_is_not_believed():
    made_up = {EVICTED: {"path": "large_tool_results/none.txt", "chars": 5}}
    found = preview(HumanMessage(LONG, id="h", additional_kwargs=made_up))
    assert found.path_text == LONG
    assert found.message.additional_kwargs[EVICTED]["path"] == path_of(LONG)


def test_the_message_that_was_given_stays_as_it_was():
    message = HumanMessage([{"type": "text", "text": LONG}, IMAGE], id="h")
    before = message.model_dump()
    preview(message)
    assert message.model_dump() == before


def test_only_a_tool_that_is_there_is_named():
    found = preview(HumanMessage(LONG), reader="")
    assert f"stored whole as {path_of(LONG)}.]" in found.message.text
    assert "read_stored" in preview(HumanMessage(LONG), reader="read_stored").message.text


def test_no_character_is_parted():
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    text = preview(HumanMessage("a" + family * 900), chars=401).message.text
    assert set(text.partition("## Beginning\n")[2].partition("\n")[0].split(family)) == {"a", ""}
    assert set(text.rpartition("## End\n")[2].split(family)) == {""}


@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "text", "text": LONG}],
        [{"type": "text", "text": "Found:"}, {"type": "json", "json": {"rows": LONG}}],
        [{"type": "text-plain", "text": LONG}],
    ],
    ids=lambda blocks: blocks[-1]["type"],
)
def test_a_result_of_any_kind_of_text_is_cut_and_comes_with_it(blocks):
    result = ToolMessage([*blocks, IMAGE], tool_call_id="c", id="t")
    found = result_preview(result, preview_chars=400, path_of=path_of)
    assert LONG in found.path_text
    assert found.message.content[-1] == IMAGE
    assert len(found.message.text) < 700
    assert path_of(found.path_text) in found.message.text
    assert result_preview(found.message, preview_chars=400, path_of=path_of) is None
    smaller = result_preview(found.message, preview_chars=200, path_of=path_of)
    assert smaller.path_text == ""
    assert smaller.message.additional_kwargs[EVICTED] == found.message.additional_kwargs[EVICTED]
