"""Which answers may stand for a history, and which of their words (R18). Pure."""

import re
from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import AIMessage

CUT_SHORT = "cut off by the output limit"
ERROR_TEXT = "an error text"
SHORT_CHARS = 500
"""A longer text is no refusal or error text, however it begins."""

CUT_OFF = frozenset(
    {
        "length",  # OpenAI and its kin, Ollama, watsonx
        "max_tokens",  # Anthropic, Bedrock, Gemini, Cohere
        "max_output_tokens",  # OpenAI's responses
        "model_length",  # Mistral
        "model_context_window_exceeded",  # Anthropic
        "pause_turn",  # Anthropic
        "error_limit",  # Cohere
        "incomplete",
        "insufficient_system_resource",  # DeepSeek
    }
)
"""Why an answer ended, where it had not come to its end."""

WITHHELD = frozenset(
    {
        "refusal",  # Anthropic
        "content_filter",  # OpenAI and its kin
        "content_filtered",  # Bedrock
        "guardrail_intervened",  # Bedrock
        "safety",  # Gemini; the next six, too
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "language",
        "malformed_function_call",
        "error_toxic",  # Cohere
    }
)
"""Why an answer ended, where the provider held it back."""

_ENDED = ("finish_reason", "stop_reason", "stopReason", "done_reason", "status")

_OPENING = (
    r"(?:i(?:['’]m| am) (?:\w+ )?(?:sorry|afraid)|(?:my )?(?:\w+ )?apologies|sorry|i apologi[sz]e"
    r"|unfortunately|as an ai\b[^,.]{0,40})[\s,.;:!—-]{0,4}"
)
_UNABLE = (
    r"i(?:['’]m| am)? (?:can(?:not|['’]t| not)|not able|unable|not comfortable|will not|won['’]t"
    r"|(?:must|have to) decline|(?:do not|don['’]t) feel comfortable)\b"
)
_TO_HELP = (
    r"(?:help|assist|comply|fulfil|provide|process|summari[sz]e|do that|do this|continue|share"
    r"|create|generate|support|complete|discuss|answer|with)"
)
REFUSAL = re.compile(
    rf"(?:{_OPENING}(?:(?:but )?unable to\b|.{{0,60}}?\b{_UNABLE})"
    rf"|{_UNABLE}.{{0,20}}?\b{_TO_HELP}\b"
    r"|(?:很|非常|十分)?(?:抱歉|对不起|不好意思|遗憾)[，,。.！!：: ]{0,3}"
    r".{0,20}?(?:无法|不能|不可以|没有办法|拒绝)"
    r"|我(?:无法|不能)(?:帮助|协助|提供|总结|处理|满足|完成|继续|回答)"
    r"|作为(?:一个|一名)?(?:人工智能|AI|语言模型).{0,20}?(?:无法|不能))",
    re.IGNORECASE | re.DOTALL,
)
"""How a refusal begins. A summary tells of the user and the assistant, never of an `I`."""

FAILURE = re.compile(
    r"[\[({*\"'` ]*(?:"
    r"(?:(?:api |server |internal |network |connection |model |openai )?error"
    r"|(?:\w{1,40}\.){0,4}(?-i:[A-Z]\w{1,40}(?:Error|Exception)))"
    r"(?: code)?[\])*\"'`]*\s?(?:[:：]|\d{3}\b)"
    r"|traceback \(most recent call last\)"
    r"|summari[sz]ation (?:has )?(?:failed|timed out)|(?:the )?request (?:failed|timed out)[:.]"
    r"|failed to (?:generate|create|produce|summari[sz]e)|unable to summari[sz]e"
    r"|an? (?:\w+ )?error (?:has )?occurred"
    r"|(?:http[ /\d.]{0,6})?[45]\d\d[ :,-]{1,3}(?:too many requests|internal server error"
    r"|bad gateway|service unavailable|gateway time-?out|bad request|unauthorized|forbidden"
    r"|not found|rate.?limit)"
    r"|(?:too many requests|internal server error|bad gateway|service (?:is )?unavailable"
    r"|gateway time-?out|upstream connect error|rate.?limit(?:ed)? (?:exceeded|reached))"
    r"|(?:服务器|系统|请求|接口|摘要|总结)?(?:发生|出现)?(?:错误|异常|失败|超时)[:：])",
    re.IGNORECASE,
)
"""How an error text begins, in place of a summary."""

MARKUP = re.compile(r"\s*(?:<!doctype html|<html\b|\{\s*\"error\"\s*:)", re.IGNORECASE)
"""A page or record of a gateway in place of an answer; of any length."""

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_WRAPPED = re.compile(r"<summary>(.*?)(?:</summary>|\Z)", re.DOTALL)


def summary_text(answer: AIMessage) -> str:
    """Return what an answer says as a summary: its text without thoughts and without wrapping.

    Thinking blocks are no text; some servers write a model's thoughts into the text, in a tag.
    """
    text = _THOUGHT.sub("", answer.text)
    if wrapped := _WRAPPED.search(text):
        text = wrapped[1]
    return text.replace("</summary>", "").strip()


def objection(answer: AIMessage) -> str:
    """Say why an answer cannot stand for a history; empty when it can."""
    text, ended = summary_text(answer), _ended_by(answer)
    if ended & WITHHELD or _refuses(answer):
        return "a refusal"
    if ended & CUT_OFF:
        return CUT_SHORT
    if not text:
        return "empty"
    if len(text) <= SHORT_CHARS and REFUSAL.match(text):
        return "a refusal"
    if MARKUP.match(text) or (len(text) <= SHORT_CHARS and FAILURE.match(text)):
        return ERROR_TEXT
    return ""


def _ended_by(answer: AIMessage) -> set[str]:
    """Return why the answer ended, in lower case, as each provider's package keeps it."""
    metadata = answer.response_metadata
    given = [metadata.get(name) for name in _ENDED]
    details = metadata.get("incomplete_details")
    if isinstance(details, Mapping):
        given.append(cast("Mapping[str, Any]", details).get("reason"))
    return {str(one).rpartition(".")[2].lower() for one in given if one}


def _refuses(answer: AIMessage) -> bool:
    if answer.additional_kwargs.get("refusal"):
        return True
    blocks = answer.content if isinstance(answer.content, list) else []
    return any(isinstance(block, dict) and block.get("type") == "refusal" for block in blocks)
