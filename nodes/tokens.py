"""Estimates of what a request costs, without a tokenizer and without a network.

Measured against o200k_base: `docs/token-estimate.md`.
"""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

IMAGE_TOKENS = 1_600
"""One image in any form; providers charge between 85 and 6,000, by the size that we don't see."""
FILE_TOKENS = 3_000
"""One file, recording or video whose text is not in the message: about two pages of a PDF."""
MESSAGE_TOKENS = 4
"""Role and separators of one message."""
CALL_TOKENS = 8
"""Frame of one tool call or tool schema."""

_PIECE = re.compile(
    r"[ !-/:-@\[-`{-~]?(?:[A-Z]*[a-z]+|[A-Z]+)"  # a word with the space or sign before it
    r"|[0-9]{1,3}"
    r"|[\u2500-\u25ff]+"  # drawn lines
    r"| ?[\u2c00-\U0010ffff]"  # Han, kana, hangul, emoji, one by one
    r"| ?[!-/:-@\[-`{-~]+[\r\n/]*"
    r"|\s*[\r\n]+|\s+(?!\S)"
    r"| ?[^ -~]| "
)
"""About how o200k_base splits text before it merges. Source: tiktoken's pattern for it."""

# Prices are hundredths of a token, so that sums are exact.
_TOKEN = 100
_MARGIN = 105
"""Per cent: rather above than below."""
_COMMON_HAN, _RARE_HAN, _TRADITIONAL_HAN = 72, 200, 115
_HAN_END = 0xA000
_SCRIPTS = (  # the first code point after it, and the price of one of its signs
    (0x0370, 50),  # Latin with accents
    (0x0590, 30),  # Greek, Cyrillic, Armenian
    (0x0700, 38),  # Hebrew, Arabic
    (0x2000, 48),  # Indic scripts, Thai
    (0x3040, 100),  # punctuation, arrows, lines
    (0x3100, 75),  # kana
    (0x4E00, _RARE_HAN),
    (_HAN_END, _TRADITIONAL_HAN),  # see `_han`
    (0xAC00, 100),
    (0xD7B0, 65),  # hangul
    (0x10000, 100),  # wide forms
    (0x20000, 200),  # emoji
    (0x110000, 300),  # the rarest Han
)
_SCRIPT_ENDS = tuple(end for end, _ in _SCRIPTS)

_IMAGES = frozenset({"image", "image_url", "input_image"})
_FILES = frozenset({"file", "input_file", "document", "audio", "input_audio", "video", "media"})
_CALLS = frozenset({"tool_use", "tool_call", "function_call", "invalid_tool_call"})
_SPOKEN = {
    "text": "text",
    "text-plain": "text",
    "thinking": "thinking",
    "reasoning": "reasoning",
    "refusal": "refusal",
}
REMEMBERED_CHARS = 8_000
_UNSPOKEN = frozenset({"signature", "thought_signature", "encrypted_content"})
_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]{256,}")
_HAN = re.compile(r"[\u4e00-\u9fff]+")


def estimate_text(text: str) -> int:
    """Return the tokens of `text`; what was estimated lately is not estimated again."""
    return _remembered(text) if len(text) <= REMEMBERED_CHARS else _estimate(text)


def _estimate(text: str) -> int:
    pieces = Counter[str](_PIECE.findall(text))
    hundredths = sum(_price(piece) * times for piece, times in pieces.items())
    return -(-hundredths * _MARGIN // (_TOKEN * 100))


_remembered = lru_cache(maxsize=2_048)(_estimate)


def estimate_message(message: BaseMessage) -> int:
    """Return the tokens of `message` as it is sent: role, name, content, calls; no artifact."""
    return sum(part if isinstance(part, int) else estimate_text(part) for part in _parts(message))


def estimate_messages(messages: Iterable[BaseMessage]) -> int:
    """Return the tokens of `messages`: the sum of each."""
    return sum(map(estimate_message, messages))


def estimate_tools(tools: Sequence[BaseTool | dict[str, Any]]) -> int:
    """Return the tokens of the tools' schemas as they are sent."""
    return sum(CALL_TOKENS + estimate_text(_json(_schema(tool))) for tool in tools)


def tail_size(message: BaseMessage) -> int:
    """Return an upper estimate of `message`: a whole token for each Han character.

    For tail budgets, which must hold with any tokenizer: 1,000 Han characters need 600 to 1,500.
    """
    texts = [part for part in _parts(message) if isinstance(part, str)]
    han = sum(len(run) for text in texts for run in _HAN.findall(text))
    return estimate_message(message) + -(-han * (_TOKEN - _COMMON_HAN) // _TOKEN)


def _parts(message: BaseMessage) -> Iterator[str | int]:
    """Yield what a request holds of `message`: texts, and fixed prices in tokens."""
    yield MESSAGE_TOKENS
    yield message.name or ""
    seen: list[Any] = []
    if isinstance(message, ToolMessage):
        yield message.tool_call_id
    if isinstance(message, AIMessage):
        calls = [*message.tool_calls, *message.invalid_tool_calls]
        seen = [call["id"] for call in calls if call["id"]]
        for call in calls:
            yield CALL_TOKENS
            yield call["name"] or ""
            yield call["args"] if isinstance(call["args"], str) else _json(call["args"])
    content = message.content
    for block in [content] if isinstance(content, str) else content:
        yield from _block(block, seen)


def _block(block: Any, seen: Sequence[Any]) -> Iterator[str | int]:
    """Yield the parts of one content block; a call of `seen` is counted already."""
    if not isinstance(block, dict):
        yield block if isinstance(block, str) else _json(block)
        return
    fields = cast("dict[str, Any]", block)
    kind = str(fields.get("type") or next(iter(fields), ""))
    if kind in _IMAGES or str(fields.get("mime_type", "")).startswith("image/"):
        yield IMAGE_TOKENS
    elif kind in _FILES or (kind == "text-plain" and "text" not in fields):
        yield _file(fields)
    elif kind in _CALLS:
        yield "" if (fields.get("call_id") or fields.get("id")) in seen else _rest(fields)
    elif isinstance(spoken := fields.get(_SPOKEN.get(kind, "")), str):
        yield spoken
    else:
        yield _rest({name: value for name, value in fields.items() if name != "content"})
        inner = fields.get("content")
        for each in cast("list[Any]", inner) if isinstance(inner, list) else [inner or ""]:
            yield from _block(each, seen)


def _file(fields: Mapping[str, Any]) -> str | int:
    source = fields.get("source")
    if isinstance(source, dict):
        inline = cast("dict[str, Any]", source)
        if inline.get("type") == "text":
            return str(inline.get("data", ""))
    text = fields.get("text")
    return text if isinstance(text, str) else FILE_TOKENS


def _rest(fields: Mapping[str, Any]) -> str:
    """Return a block of unknown kind as JSON, without signatures and base64."""
    return _json(_without_blobs(fields))


def _without_blobs(value: Any) -> Any:
    if isinstance(value, str):
        return _BASE64.sub("", value)
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value).items()
        return {name: _without_blobs(each) for name, each in fields if name not in _UNSPOKEN}
    if isinstance(value, list | tuple):
        return [_without_blobs(each) for each in cast("Sequence[Any]", value)]
    return "" if isinstance(value, bytes) else value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)


def _schema(tool: BaseTool | dict[str, Any]) -> Any:
    try:
        return convert_to_openai_tool(tool)
    except ValueError:  # a provider's own tool, sent as it is
        return tool


def _price(piece: str) -> int:
    """Return the price of one piece, in hundredths of a token."""
    if piece[-1] > "\x7f":
        return _foreign(piece)
    if piece[-1].isalpha():
        return _word(piece)
    signs = piece.strip()
    over = max(0, len(signs) - 3)
    return _TOKEN + over * (3 if len(set(signs)) == 1 else 40)


def _foreign(piece: str) -> int:
    """Return the price of a sign beyond ASCII with the space before it, or of drawn lines."""
    end, price = _SCRIPTS[bisect_right(_SCRIPT_ENDS, ord(piece[-1]))]
    return (_han(piece[-1]) if end == _HAN_END else price) + 25 * (len(piece) - 1)


def _han(sign: str) -> int:
    try:
        # GB 2312 holds the 3,755 usual characters in the rows before 0xD8, the rarer ones after.
        return _COMMON_HAN if sign.encode("gb2312") < b"\xd8" else _RARE_HAN
    except UnicodeEncodeError:
        return _TRADITIONAL_HAN


def _word(piece: str) -> int:
    """Return the price of a word: long, capitalised, glued or random ones are dearer."""
    spaced, bare = piece[0] == " ", piece[0].isalpha()
    letters = len(piece) - (not bare)
    capitals = 0 if piece.islower() else sum(map(str.isupper, piece))
    over = max(0, letters - (6 if spaced else 4))
    price = _TOKEN + min(over, 12) * (3 if spaced else 8) + max(0, over - 12) * 34
    if not spaced and not bare and letters > 2:  # noqa: PLR2004
        price += 40  # the sign before it is often a token of its own
    if capitals > 1:
        price += 22 * (min(capitals, 16) - 1) + (0 if piece.isupper() else 90)
    return price
