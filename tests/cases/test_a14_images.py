"""A14: an image costs what providers charge, and its data is in no text that a model reads."""

import json
import re

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from everlong.nodes.tokens import estimate_message
from everlong.nodes.transcript import is_summary
from given import case, messages_of
from scripted_model import ScriptedModel, asks_for_summary, kind_of

GIVEN = case("A14")
MESSAGES = messages_of(GIVEN["messages"])
NEWEST = MESSAGES[-1]
SETTINGS = GIVEN["settings"] | {"trigger_messages": 0}
DATA = re.compile(r"[A-Za-z0-9+/=]{1001}")
METADATA = ("response_metadata", "usage_metadata", "input_tokens", "secret-fingerprint")


def told(messages):
    """Answer with usage and metadata that are nobody's business."""
    if asks_for_summary(messages):
        return "They looked at pictures."
    text = "NO_REPLY" if kind_of(messages) == "flush" else "I see five pictures."
    return AIMessage(
        text,
        usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        response_metadata={"system_fingerprint": "secret-fingerprint"},
    )


def without_images(message):
    """Return the message's content as JSON, each image block left out."""
    blocks = message.content if isinstance(message.content, list) else [message.content]
    kept = [b for b in blocks if isinstance(b, str) or "image" not in str(b.get("type"))]
    return json.dumps(kept, ensure_ascii=False)


def images(messages):
    return [
        block
        for message in messages
        if isinstance(message.content, list)
        for block in message.content
        if isinstance(block, dict) and "image" in str(block.get("type"))
    ]


@pytest.fixture
def begin(converse):
    def begun(*, own=False, **changes):
        model = ScriptedModel(script=told)
        more = (
            {"summary_model": ScriptedModel(script=told, profile={"name": "other"})} if own else {}
        )
        return converse(
            model=model, compaction=SETTINGS | changes, memory={"enabled": True}, **more
        )

    return begun


def test_an_image_costs_the_same_in_every_form():
    bare = estimate_message(HumanMessage(""))
    text = estimate_message(HumanMessage("look")) - bare
    h1, h2, h3, h4, _, t5, _ = MESSAGES
    counts = [estimate_message(message) - bare for message in (h2, h3, h4)]
    counts.append(estimate_message(h1) - bare - text)
    assert len(set(counts)) == 1
    assert 85 <= counts[0] <= 6_000
    only_text = t5.model_copy(update={"content": [t5.content[0]]})
    assert estimate_message(t5) - estimate_message(only_text) == counts[0]


async def test_five_images_trigger_nothing_and_forty_do(begin):
    talk = begin()
    await talk.seed(MESSAGES[:-1])
    await talk.send({"messages": [NEWEST]})
    assert "compaction.started" not in talk.event_types()
    assert images(talk.context.model.requests[0]) == images(MESSAGES)
    many = begin()
    many.thread_id = "many"
    shown = [MESSAGES[2].model_copy(update={"id": f"p{number}"}) for number in range(40)]
    await many.seed(shown)
    await many.send({"messages": [NEWEST]})
    assert "compaction.started" in many.event_types()
    assert any(map(is_summary, many.last_request))


async def test_a_summary_in_text_says_that_an_image_was_there_and_holds_no_data(begin):
    talk = begin(own=True, trigger_messages=6, keep_messages=1)
    await talk.seed(MESSAGES[:-1])
    await talk.send({"messages": [NEWEST]})
    (request,) = talk.context.summary_model.requests
    rendered = request[-1].text
    assert rendered.count("(image attached)") == 5
    assert "[user]\nlook\n(image attached)" in rendered
    assert "[tool]\nscreenshot\n(image attached)" in rendered.replace("[tool ]", "[tool]")
    assert not DATA.search(rendered)
    assert not any(word in rendered for word in METADATA)


async def test_a_summary_that_extends_the_request_sends_the_images_as_they_were_sent(begin):
    """They are cached, and the summary can say what they showed; as text no data is there."""
    talk = begin(trigger_messages=6)
    await talk.seed(MESSAGES[:-1])
    await talk.send({"messages": [NEWEST]})
    (request,) = [r for r in talk.context.model.requests if asks_for_summary(r)]
    assert images(request) == images(MESSAGES)[: len(images(request))]
    assert images(request)
    assert not any(DATA.search(without_images(message)) for message in request)
    assert "Of an image or a file say what it showed" in request[-1].text


async def test_a_flush_reads_no_data_either(begin):
    talk = begin()
    await talk.seed(MESSAGES[:-1])
    await talk.send({"messages": [NEWEST]})
    (flush,) = [r for r in talk.context.model.requests if kind_of(r) == "flush"]
    assert flush[-1].text.count("(image attached)") == 5
    assert not DATA.search(flush[-1].text)
    assert not any(word in flush[-1].text for word in METADATA)


async def test_an_image_with_an_address_is_named_by_it(begin):
    talk = begin(own=True, trigger_messages=4)
    address = "https://pictures.example/port.png"
    picture = HumanMessage([{"type": "image", "url": address}], id="p1")
    await talk.seed([picture, AIMessage("A port.", id="a1"), HumanMessage("when?", id="p2")])
    await talk.seed([AIMessage("At noon.", id="a2")])
    await talk.send({"messages": [NEWEST]})
    (request,) = talk.context.summary_model.requests
    assert f"(image attached: {address})" in request[-1].text
