import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from everlong.nodes.tokens import (
    FILE_TOKENS,
    IMAGE_TOKENS,
    estimate_message,
    estimate_messages,
    estimate_text,
    estimate_tools,
    tail_size,
)

PICTURE = "A" * 400_000
DATA_URL = f"data:image/png;base64,{PICTURE}"

SAMPLES = {
    "chat in Chinese": (
        "好的，我已经帮您查到了：订单 SO-202610-4471 昨天下午从宁波仓库发出，预计下周二到港。"
        "如果客户着急，我们可以改走空运，不过运费会高一些，您看要不要先问一下他们的意见？"
    ),
    "traditional Chinese": (
        "這張訂單的貨櫃號碼是多少？請幫我確認船期與到港時間，另外發票抬頭要改成公司全名，統一編號不變。"
    ),
    "chat in English": (
        "Thanks, that helps! Could you also check whether the second container left Ningbo on "
        "Friday? If it didn't, I'd rather tell the customer today than have them find out next "
        "week."
    ),
    "code": (
        "async def fetch(session: Session, url: str, *, retries: int = 3) -> bytes:\n"
        "    for attempt in range(retries):\n"
        "        try:\n"
        "            async with session.get(url, timeout=10) as response:\n"
        "                response.raise_for_status()\n"
        "                return await response.read()\n"
        "        except TimeoutError:\n"
        '            log.warning("attempt %d of %d timed out: %s", attempt + 1, retries, url)\n'
        "    raise FetchError(url)\n"
    ),
    "JSON in Chinese": (
        '{"order_id": "SO-202610-4471", "customer": "上海远航贸易有限公司", "items": [{'
        '"sku": "B-204", "name": "保温杯 500ml", "qty": 120, "unit_price": 36.5}], '
        '"status": "已发货", "paid": true}'
    ),
    "minified JSON": (
        '[{"id":10482,"name":"desk lamp","price":24.9,"tags":["home","office"],"stock":312},'
        '{"id":10483,"name":"USB-C hub","price":39.0,"tags":["it"],"stock":57}]'
    ),
    "table of numbers": (
        "2026-10-01,1204.55,-38.20,7731\n2026-10-02,1187.10,12.95,7820\n"
        "2026-10-03,1210.00,0.00,7655\n2026-10-04,998.75,-140.60,8012\n"
    ),
    "markdown table": (
        "| no | customer | qty | amount | date |\n|---|---|---|---|---|\n"
        "| 1 | Ana Costa | 12 | 1,480.00 | 2026-10-14 |\n"
        "| 2 | Bob Miller | 7 | 612.50 | 2026-10-15 |\n"
    ),
    "log lines": (
        "2026-10-12 14:03:27,118 ERROR [worker-3] c.e.shop.PaymentGateway - Connection refused: "
        "10.0.4.17:5432\n2026-10-12 14:03:29,402 INFO [worker-3] c.e.shop.OrderService - Order "
        "8841 saved in 37 ms\n"
    ),
    "paths": (
        "src/main/java/com/example/agent/AgentScopeJavaApplication.java\n"
        "tests/unit/nodes/test_transcript.py\n/var/log/nginx/access.log.2.gz\n"
    ),
}
O200K_TOKENS = {
    "chat in Chinese": 62,
    "traditional Chinese": 45,
    "chat in English": 37,
    "code": 95,
    "JSON in Chinese": 73,
    "minified JSON": 55,
    "table of numbers": 75,
    "markdown table": 70,
    "log lines": 77,
    "paths": 34,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_estimate_is_within_a_quarter_and_rather_above(name: str) -> None:
    true = O200K_TOKENS[name]
    assert 0.98 * true <= estimate_text(SAMPLES[name]) <= 1.25 * true


def test_a_thousand_usual_han_characters_count_between_600_and_1500() -> None:
    assert 600 <= estimate_text(("好的请您稍等我来查询一下" * 84)[:1_000]) <= 1_500


def test_a_thousand_english_letters_are_not_over_corrected() -> None:
    prose = "the order leaves the port on friday and the customer wants to know when it arrives "
    letters = "".join((prose * 15).split())[:1_000]
    spaced = (prose * 15)[:1_000]
    assert 200 <= estimate_text(letters) <= 400
    assert 200 <= estimate_text(spaced) <= 400
    assert 200 <= estimate_text("a" * 1_000) <= 400


def test_a_rare_han_character_costs_more_than_a_usual_one() -> None:
    assert estimate_text("鑫" * 100) > estimate_text("好" * 100)


def test_an_empty_text_is_free() -> None:
    assert estimate_text("") == 0


@pytest.mark.parametrize(
    "sign", ["A", " ", "\n", "汉", "7", ".", "─", "aB3", "- \n", "\x00", " \t"]
)
def test_the_time_grows_with_the_length_only(sign: str) -> None:
    began = time.perf_counter()
    estimate_text(sign * (400_000 // len(sign)))
    assert time.perf_counter() - began < 5


def image_messages() -> dict[str, BaseMessage]:
    text = {"type": "text", "text": "look"}
    return {
        "chat completions": HumanMessage(
            [text, {"type": "image_url", "image_url": {"url": DATA_URL}}]
        ),
        "responses": HumanMessage([text, {"type": "input_image", "image_url": DATA_URL}]),
        "standard": HumanMessage(
            [text, {"type": "image", "base64": PICTURE, "mime_type": "image/png"}]
        ),
        "anthropic": HumanMessage(
            [
                text,
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PICTURE},
                },
            ]
        ),
        "gemini": HumanMessage(
            [text, {"type": "media", "mime_type": "image/png", "data": PICTURE}]
        ),
        "bedrock": HumanMessage([text, {"image": {"format": "png", "source": {"bytes": PICTURE}}}]),
    }


@pytest.mark.parametrize("form", image_messages())
def test_an_image_costs_the_same_in_every_form(form: str) -> None:
    without = estimate_message(HumanMessage([{"type": "text", "text": "look"}]))
    assert estimate_message(image_messages()[form]) == without + IMAGE_TOKENS


def test_an_image_in_a_tool_result_costs_the_same() -> None:
    picture = {"type": "image", "base64": PICTURE, "mime_type": "image/png"}
    bare = ToolMessage([{"type": "text", "text": "shot"}], tool_call_id="x")
    shown = ToolMessage([{"type": "text", "text": "shot"}, picture], tool_call_id="x")
    nested = ToolMessage(
        [{"type": "tool_result", "content": [picture], "tool_use_id": "x"}], tool_call_id="x"
    )
    assert estimate_message(shown) == estimate_message(bare) + IMAGE_TOKENS
    assert IMAGE_TOKENS < estimate_message(nested) < IMAGE_TOKENS + 50


def test_five_images_stay_under_a_trigger_that_forty_reach() -> None:
    one = image_messages()["standard"]
    assert estimate_messages([one] * 5) < 50_000 < estimate_messages([one] * 40)


PDF_URL = f"data:application/pdf;base64,{PICTURE}"
FILES: dict[str, dict[str, Any]] = {
    "PDF, standard": {"type": "file", "base64": PICTURE, "mime_type": "application/pdf"},
    "PDF, standard of old": {"type": "file", "source_type": "base64", "data": PICTURE},
    "PDF, chat completions": {"type": "file", "file": {"file_data": PDF_URL, "filename": "a.pdf"}},
    "PDF, responses": {"type": "input_file", "file_data": PDF_URL, "filename": "a.pdf"},
    "PDF, anthropic": {"type": "document", "source": {"type": "base64", "data": PICTURE}},
    "PDF, gemini": {"type": "media", "mime_type": "application/pdf", "data": PICTURE},
    "PDF, bedrock": {"document": {"format": "pdf", "source": {"bytes": PICTURE}}},
    "PDF, by id": {"type": "file", "file_id": "file-1"},
    "audio, standard": {"type": "audio", "base64": PICTURE, "mime_type": "audio/wav"},
    "audio, chat completions": {
        "type": "input_audio",
        "input_audio": {"data": PICTURE, "format": "wav"},
    },
    "audio, gemini": {"type": "media", "mime_type": "audio/wav", "data": PICTURE},
    "video, standard": {"type": "video", "base64": PICTURE, "mime_type": "video/mp4"},
    "text as base64": {"type": "text-plain", "base64": PICTURE, "mime_type": "text/plain"},
}


@pytest.mark.parametrize("form", FILES)
def test_a_file_has_the_same_fixed_price_in_every_form(form: str) -> None:
    bare = estimate_message(HumanMessage([{"type": "text", "text": "look"}]))
    shown = HumanMessage([{"type": "text", "text": "look"}, FILES[form]])
    assert estimate_message(shown) == bare + FILE_TOKENS


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text-plain", "text": "The contract runs until 2026. " * 50},
        {"type": "file", "source_type": "text", "text": "The contract runs until 2026. " * 50},
    ],
)
def test_a_file_whose_text_is_there_is_counted_by_it(block: dict[str, Any]) -> None:
    assert estimate_message(HumanMessage([block])) == estimate_message(HumanMessage(block["text"]))


def test_a_document_given_as_text_is_counted_by_its_text() -> None:
    text = "The contract runs until 2026-12-31. " * 50
    block = {"type": "document", "source": {"type": "text", "data": text}}
    assert estimate_message(HumanMessage([block])) == estimate_message(HumanMessage(text))


def test_thoughts_count_by_their_text_and_not_by_their_signature() -> None:
    thought = "First I look at the invoices. " * 20
    block = {"type": "thinking", "thinking": thought, "signature": "s" * 4_000}
    assert estimate_message(AIMessage([block])) == estimate_message(AIMessage(thought))
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": "x y" * 4_000}
    assert estimate_message(AIMessage([sealed])) < 40


def test_an_unknown_block_counts_without_its_base64() -> None:
    block = {"type": "novelty", "note": "seen at the port", "payload": PICTURE}
    assert 10 < estimate_message(HumanMessage([block])) < 50


def test_blocks_that_are_no_json_can_be_counted() -> None:
    block = {"type": "novelty", "raw": PICTURE.encode(), "by": {("a", 1): 2}, "at": {3}}
    assert 10 < estimate_message(HumanMessage([block])) < 50


def test_a_call_counts_once_though_its_block_repeats_it() -> None:
    args = {"path": "a.txt", "text": "word " * 200}
    calls = [{"name": "write", "args": args, "id": "c1", "type": "tool_call"}]
    block = {"type": "tool_use", "id": "c1", "name": "write", "input": args}
    plain = AIMessage("", tool_calls=calls)
    assert estimate_message(AIMessage([block], tool_calls=calls)) == estimate_message(plain)
    assert estimate_message(plain) > 200
    assert estimate_message(AIMessage([block])) > 200


def test_arguments_in_chinese_are_not_counted_as_escapes() -> None:
    calls = [{"name": "look", "args": {"key": "好" * 100}, "id": "c1", "type": "tool_call"}]
    assert estimate_message(AIMessage("", tool_calls=calls)) < 120


def test_a_call_that_cannot_be_read_counts_too() -> None:
    broken = {"name": "save", "args": "word " * 100, "id": "b", "error": None}
    message = AIMessage("", invalid_tool_calls=[{**broken, "type": "invalid_tool_call"}])
    assert estimate_message(message) > 100


def test_name_and_call_id_count_and_the_artifact_does_not() -> None:
    bare = HumanMessage("hi")
    assert estimate_message(HumanMessage("hi", name="Ana Costa")) > estimate_message(bare)
    short = ToolMessage("ok", tool_call_id="c")
    long = ToolMessage("ok", tool_call_id="call_4f9a7c21e0b84d", artifact=PICTURE)
    assert estimate_message(short) < estimate_message(long) < estimate_message(short) + 30


def test_tools_count_by_the_schema_that_is_sent() -> None:
    @tool
    def weather(city: str, days: int = 3) -> str:
        """Return the weather of a city for some days."""
        return f"{city} {days}"

    as_dict = {"type": "function", "function": {"name": "weather", "parameters": {}}}
    assert 40 < estimate_tools([weather]) < 150
    assert estimate_tools([weather, weather]) == 2 * estimate_tools([weather])
    assert 0 < estimate_tools([as_dict]) < estimate_tools([weather])
    assert estimate_tools([{"kind": "a provider's own"}]) > 0


def test_a_tail_is_sized_at_a_token_for_each_han_character() -> None:
    message = HumanMessage("货" * 800)
    assert estimate_message(message) < 700
    assert 800 <= tail_size(message) <= 850
    english = HumanMessage("The order leaves on Friday.")
    assert tail_size(english) == estimate_message(english)
