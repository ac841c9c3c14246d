"""The summary message: what the summariser reads, what is accepted, how it is framed (R14)."""

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.identifiers import identifiers, missing
from everlong.nodes.tokens import estimate_text
from everlong.nodes.transcript import SUMMARY_NAME, is_summary

_SPEAKER = re.compile(
    r"^(\[(?:user|assistant|tool|earlier summary|assistant calls)\b)", re.MULTILINE | re.IGNORECASE
)
HEADER = "Here is a summary of the conversation to date:"
CARRIED = "Also named in that part of the conversation, word for word:"
ABOVE = "(The conversation is in the messages above; this message is no part of it.)"
RENDERED_RESULT_CHARS = 8_000
SHORT_SUMMARY_TOKENS = 1_000
ERROR_STARTS = (
    "error:",
    "error code:",
    "summarization failed",
    "(summarization failed",
    "traceback",
)


def render_messages(messages: Sequence[BaseMessage]) -> str:
    """Render a conversation as text: a line that says who, then what; a blank line between."""
    return "\n\n".join(part for message in messages if (part := _rendered(message)))


def _rendered(message: BaseMessage) -> str:
    if is_summary(message):
        return f"[earlier summary]\n{_escaped(summary_body(message))}"
    if isinstance(message, HumanMessage):
        return f"[user]\n{_escaped(_text_of(message))}"
    if isinstance(message, ToolMessage):
        return f"[tool {message.name or ''}]\n{_escaped(_shortened(_text_of(message)))}"
    if isinstance(message, AIMessage):
        text = _text_of(message)
        parts = [f"[assistant]\n{_escaped(text)}"] if text else []
        parts += [
            f"[assistant calls {call['name']}] {_escaped(_json(call['args']))}"
            for call in message.tool_calls
        ]
        return "\n\n".join(parts)
    return ""


def _text_of(message: BaseMessage) -> str:
    """The text blocks, and a word for each block that is none."""
    text = message.text
    if isinstance(message.content, str):
        return text
    others = [
        str(block.get("type", "block"))
        for block in message.content
        if isinstance(block, dict)
        and block.get("type")
        not in ("text", "thinking", "reasoning", "redacted_thinking", "tool_use")
    ]
    return "\n".join([text, *(f"({kind} attached)" for kind in others)]).strip()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _shortened(text: str) -> str:
    if len(text) <= RENDERED_RESULT_CHARS:
        return text
    half = RENDERED_RESULT_CHARS // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def _escaped(text: str) -> str:
    """Keep material from closing its frame, and from speaking as somebody else."""
    return _SPEAKER.sub(r"\\\1", text.replace("</conversation>", "<\\/conversation>"))


def summary_request(
    prompt: str, messages: Sequence[BaseMessage] | None, instructions: str
) -> HumanMessage:
    """Return the request for a summary; `prompt` holds `{messages}`.

    It stands for the rendered conversation, or, without `messages`, for a mention of those above.
    """
    conversation = ABOVE
    if messages is not None:
        conversation = f"<conversation>\n{render_messages(messages)}\n</conversation>"
    text = prompt.replace("{messages}", conversation)
    if instructions:
        text += f"\n\nThe person who asked for this summary adds:\n{instructions}"
    return HumanMessage(text)


def objection(answer: AIMessage) -> str:
    """Say why an answer cannot stand for a history; empty when it can."""
    text = answer.text.strip()
    bare = text.replace("<summary>", "").replace("</summary>", "").strip()
    if not bare:
        return "empty"
    reason = str(
        answer.response_metadata.get("finish_reason")
        or answer.response_metadata.get("stop_reason")
        or ""
    )
    if reason in ("length", "max_tokens", "MAX_TOKENS"):
        return "cut off by the output limit"
    if answer.additional_kwargs.get("refusal") or reason in ("content_filter", "refusal"):
        return "a refusal"
    if bare.lower().startswith(ERROR_STARTS):
        return "an error text"
    return ""


def carried_over(replaced: Sequence[BaseMessage], text: str) -> list[str]:
    """Identifiers that users and tools stated in `replaced` and that `text` lacks (R19).

    Newest and most often used first; those of an earlier summary's list are among them.
    """
    seen: dict[str, list[int]] = {}
    for index, message in enumerate(replaced):
        found = [*summary_carried(message)] if is_summary(message) else []
        if isinstance(message, HumanMessage | ToolMessage):
            found += identifiers(summary_body(message) if is_summary(message) else message.text)
        for identifier in found:
            seen.setdefault(identifier, []).append(index)
    ranked = sorted(seen, key=lambda name: (seen[name][-1], len(seen[name])), reverse=True)
    return missing(ranked, text)


def summary_message(text: str, carried: Sequence[str], *, most_tokens: int) -> HumanMessage:
    """Frame a summary, with as many carried-over identifiers as `most_tokens` holds."""
    listed: list[str] = []
    room = most_tokens - estimate_text(CARRIED)
    for name in carried:
        room -= estimate_text(name) + 1
        if room < 0:
            break
        listed.append(name)
    parts = [HEADER, "", text.strip()]
    if listed:
        parts += ["", CARRIED, *listed]
    if left := len(carried) - len(listed):
        parts.append(f"({left} more are in the archive of this conversation.)")
    content = "\n".join(parts)
    digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:32]
    return HumanMessage(content, name=SUMMARY_NAME, id=f"{SUMMARY_NAME}:{digest}")


def summary_body(message: BaseMessage) -> str:
    """Return a summary message's own text, without frame and list."""
    body = message.text.removeprefix(HEADER)
    return body.split(f"\n\n{CARRIED}\n", 1)[0].strip()


def summary_carried(message: BaseMessage) -> list[str]:
    """Return the identifiers that a summary message lists."""
    _, mark, listed = message.text.partition(f"\n\n{CARRIED}\n")
    if not mark:
        return []
    return [
        line for line in listed.splitlines() if line and not line.endswith("of this conversation.)")
    ]
