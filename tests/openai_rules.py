"""What the OpenAI-compatible test server refuses, and how it counts and caches prompts."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

BYTES_PER_TOKEN = 4
ROLES = ("system", "developer", "user", "assistant", "tool", "function")


class RefusedError(Exception):
    """The request gets an error answer."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.error: dict[str, Any] = {
            "message": message,
            "type": "invalid_request_error" if status < 500 else "server_error",
            "param": param,
            "code": code,
        }


def as_bytes(*parts: Any) -> bytes:
    """Return the parts as the server counts them."""
    text = "".join(json.dumps(part, ensure_ascii=False) for part in parts)
    return text.encode("utf-8", "surrogatepass")


def tokens(prompt: bytes) -> int:
    """Count four bytes as a token."""
    return -(-len(prompt) // BYTES_PER_TOKEN)


class PrefixCache:
    """Prompts as chains of blocks: what an earlier prompt began with is cached."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._seen: set[bytes] = set()

    def count(self, body: Mapping[str, Any]) -> tuple[int, int, list[bytes]]:
        """Return the prompt's tokens, how many of them are cached, and its chain of blocks."""
        parts = [body.get("model"), body.get("tools"), *body["messages"]]
        prompt = as_bytes(*parts)
        size, digest, chain = self._block_tokens * BYTES_PER_TOKEN, b"", list[bytes]()
        for start in range(0, len(prompt) - size + 1, size):
            digest = hashlib.sha256(digest + prompt[start : start + size]).digest()
            chain.append(digest)
        hits = next((i for i, block in enumerate(chain) if block not in self._seen), len(chain))
        return tokens(prompt), hits * self._block_tokens, chain

    def forget(self) -> None:
        """Drop all prompts."""
        self._seen.clear()

    def keep(self, chain: Sequence[bytes]) -> None:
        """Remember a prompt that was answered."""
        self._seen.update(chain)


def check_messages(messages: Any) -> None:
    """Refuse what the provider refuses: no messages, odd ones, broken tool pairs."""
    if not messages:
        msg = "[] is too short - 'messages'"
        raise RefusedError(msg, param="messages")
    open_calls: list[str] = []
    for i, message in enumerate(messages):
        _check_fields(message, i)
        if message["role"] == "tool":
            _close(open_calls, message.get("tool_call_id"), i)
            continue
        _all_closed(open_calls, i)
        open_calls = [call["id"] for call in message.get("tool_calls") or ()]
    _all_closed(open_calls, len(messages))


def check_reasoning(messages: Sequence[Mapping[str, Any]]) -> None:
    """Refuse, as DeepSeek does, an assistant message with calls but without its reasoning."""
    if any(m.get("tool_calls") and "reasoning_content" not in m for m in messages):
        text = "The `reasoning_content` in the thinking mode must be passed back to the API."
        raise RefusedError(text, code="invalid_request_error")


def check_window(prompt: int, room: int, window: int) -> None:
    """Refuse a prompt that does not fit, with the room that is asked for the answer."""
    if prompt + room <= window:
        return
    wanted = (
        f"you requested {prompt + room} tokens ({prompt} in the messages, {room} in the completion)"
        if room
        else f"your messages resulted in {prompt} tokens"
    )
    text = (
        f"This model's maximum context length is {window} tokens. However, {wanted}. "
        "Please reduce the length of the messages."
    )
    raise RefusedError(text, code="context_length_exceeded", param="messages")


def _check_fields(message: Mapping[str, Any], i: int) -> None:
    if message.get("role") not in ROLES:
        text = f"Invalid value: {message.get('role')!r}. Supported values are: {', '.join(ROLES)}."
        raise RefusedError(text, code="invalid_value", param=f"messages[{i}].role")
    if message.get("content") is None and not message.get("tool_calls"):
        text = "Invalid value for 'content': expected a string, got null."
        raise RefusedError(text, param=f"messages.[{i}].content")
    if not re.fullmatch(r"[^\s<|\\/>]+", message.get("name") or "x"):
        text = f"Invalid 'messages[{i}].name': string does not match pattern."
        raise RefusedError(text, code="invalid_value", param=f"messages[{i}].name")


def _close(open_calls: list[str], call_id: Any, i: int) -> None:
    if call_id not in open_calls:
        text = (
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
            "message with 'tool_calls'."
        )
        raise RefusedError(text, param=f"messages.[{i}].role")
    open_calls.remove(call_id)


def _all_closed(open_calls: Sequence[str], i: int) -> None:
    if open_calls:
        text = (
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(open_calls)}"
        )
        raise RefusedError(text, param=f"messages.[{i}].role")
