import json
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from everlong.nodes.result_text import size_of, text_of, with_text

IMAGE = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
JSON = {"type": "json", "json": {"名": ["夜莺", 1.5, None, True]}}
FOUND = {"type": "search_result", "source": "x", "content": [{"type": "text", "text": "y"}]}


def result(content: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id="c")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (["a", {"type": "text", "text": "b"}, IMAGE], "ab"),
        ([{"type": "text-plain", "text": "a"}], "a"),
        ([JSON], '{"名": ["夜莺", 1.5, null, true]}'),
        ([{"json": [1]}, {"text": "b"}], "[1]\nb"),
        (["a\n", {"json": [1]}], "a\n[1]"),
        ([IMAGE], ""),
        ("", ""),
    ],
)
def test_the_text_of_a_result_is_its_texts_and_its_json(content: Any, text: str) -> None:
    assert text_of(result(content)) == text
    assert size_of(result(content)) == len(text.replace("]\nb", "]b"))


def test_what_is_no_text_stays_and_a_text_alone_is_a_text() -> None:
    assert with_text(result("a"), "new") == "new"
    assert with_text(result([JSON, "a"]), "new") == "new"
    assert with_text(result(["a", IMAGE, JSON]), "new") == [{"type": "text", "text": "new"}, IMAGE]


def test_a_search_result_moves_as_json() -> None:
    assert json.loads(text_of(result([FOUND]))) == FOUND
