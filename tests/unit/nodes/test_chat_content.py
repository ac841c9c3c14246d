"""A history of another provider's blocks, as Chat Completions takes it."""

from typing import Any

import pytest

from everlong.nodes.chat_content import SHOWN_NOTE, chat_messages
from strategies import found, searches, thought

TEXT = {"type": "text", "text": "Done."}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def said(role: str, *parts: Any, **fields: Any) -> dict[str, Any]:
    return {"role": role, "content": list(parts), **fields}


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (searches("s1"), '(the provider ran web_search: {"input": {"query": "fees"}})'),
        (found("s1"), '(web_search returned: {"content": [{"title": "Fees"}]})'),
        (IMAGE, "(image attached)"),
    ],
)
def test_what_an_assistant_said_in_other_blocks_is_put_in_words(block: Any, words: str) -> None:
    (sent,) = chat_messages([said("assistant", block, TEXT)])
    assert sent["content"] == [{"type": "text", "text": words}, TEXT]


def test_thoughts_of_another_provider_are_left_out() -> None:
    asking = said("assistant", thought(), tool_calls=[{"id": "c"}])
    (sent,) = chat_messages([asking])
    assert sent["content"] is None
    assert chat_messages([said("assistant", thought())])[0]["content"] == ""


def test_images_of_tools_are_shown_by_a_user_message_after_all_the_results() -> None:
    sent = chat_messages(
        [
            said("assistant", TEXT, tool_calls=[{"id": "c1"}, {"id": "c2"}]),
            said("tool", TEXT, IMAGE, tool_call_id="c1"),
            said("tool", IMAGE, tool_call_id="c2"),
            said("assistant", TEXT),
        ]
    )
    assert [message["role"] for message in sent] == [
        *("assistant", "tool", "tool"),
        *("user", "assistant"),
    ]
    assert sent[1]["content"] == [TEXT, {"type": "text", "text": "(image attached)"}]
    assert sent[3]["content"] == [{"type": "text", "text": SHOWN_NOTE}, IMAGE, IMAGE]
    newest = chat_messages([said("tool", IMAGE, tool_call_id="c1")])
    assert [message["role"] for message in newest] == ["tool", "user"]


PDF = {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}


@pytest.mark.parametrize(
    ("block", "sent"),
    [
        ({"type": "input_text", "text": "Done."}, TEXT),
        ({"type": "input_image", "image_url": IMAGE["image_url"]["url"]}, IMAGE),
        (
            {"type": "document", "title": "Q3.pdf", "source": PDF},
            {
                "type": "file",
                "file": {"filename": "Q3.pdf", "file_data": "data:application/pdf;base64,AAAA"},
            },
        ),
        (
            {"type": "document", "source": {"type": "text", "data": "Pay by May."}},
            {"type": "text", "text": "(file attached)\nPay by May."},
        ),
        ({"type": "video_url", "video_url": {"url": "x"}}, None),
        (IMAGE, None),
    ],
)
def test_a_users_blocks_are_spelled_as_the_server_spells_them(block: Any, sent: Any) -> None:
    (message,) = chat_messages([said("user", block)])
    assert message["content"] == [sent or block]
