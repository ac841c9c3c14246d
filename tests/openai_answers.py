"""Scripted answers, and how they look on the wire of OpenAI's Chat Completions."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from openai_rules import RefusedError

Body = dict[str, Any]
Answer = str | Mapping[str, Any] | Callable[[Body], Any]

STREAM_PIECE = 16
NO_RETRY = {"x-should-retry": "false"}


def resolved(scripted: Answer | None, body: Body) -> dict[str, Any]:
    """Return the answer as a mapping, its calls in the wire's form.

    Raises:
        RefusedError: there is no answer, or it is a refusal.
    """
    while callable(scripted):
        scripted = scripted(body)
    if scripted is None:
        msg = "script ended"
        raise RefusedError(msg, status=500, headers=NO_RETRY)
    if isinstance(scripted, str):
        return {"content": scripted}
    answer = dict(scripted)
    if answer.get("tool_calls"):
        answer["tool_calls"] = [_wire_call(call) for call in answer["tool_calls"]]
    if "status" in answer:
        raise _refusal_of(answer)
    return answer


def _wire_call(call: Mapping[str, Any]) -> dict[str, Any]:
    args = call.get("args", {})
    text = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False)
    name = call["name"]
    digest = hashlib.sha256(f"{name}{text}".encode()).hexdigest()[:12]
    function = {"name": name, "arguments": text}
    return {"id": call.get("id", f"call_{digest}"), "type": "function", "function": function}


def _refusal_of(answer: Mapping[str, Any]) -> RefusedError:
    refusal = RefusedError("scripted", status=answer["status"], headers=NO_RETRY)
    refusal.error = answer.get("error", refusal.error)
    return refusal


def _frame(body: Body, number: int, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": body.get("model")}


def _finish_of(answer: Mapping[str, Any]) -> str:
    return answer.get("finish_reason") or ("tool_calls" if answer.get("tool_calls") else "stop")


def completion(body: Body, answer: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return the answer as one document."""
    said = {"role": "assistant", "content": answer.get("content")}
    kept = {k: answer[k] for k in ("reasoning_content", "tool_calls") if answer.get(k) is not None}
    choice = {"index": 0, "message": said | kept, "finish_reason": _finish_of(answer)}
    usage = {"usage": answer["usage"]} if answer["usage"] else {}
    return _frame(body, number, "chat.completion") | {"choices": [choice]} | usage


def events(body: Body, answer: Mapping[str, Any], number: int) -> Iterator[Any]:
    """Yield the answer in pieces, as the events of a stream."""
    frame = _frame(body, number, "chat.completion.chunk")
    for delta in _deltas(answer):
        yield frame | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    if answer.get("cut"):
        return
    if "error_after" in answer:
        yield {"error": answer["error_after"]}
        return
    yield frame | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish_of(answer)}]}
    if (body.get("stream_options") or {}).get("include_usage") and answer["usage"]:
        yield frame | {"choices": [], "usage": answer["usage"]}
    yield "[DONE]"


def _deltas(answer: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for key in ("reasoning_content", "content"):
        yield from ({key: piece} for piece in _pieces(answer.get(key) or ""))
    for index, call in enumerate(answer.get("tool_calls") or ()):
        function = call["function"]
        opening = call | {"index": index, "function": function | {"arguments": ""}}
        yield {"tool_calls": [opening]}
        for piece in _pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str) -> Iterator[str]:
    yield from (text[i : i + STREAM_PIECE] for i in range(0, len(text), STREAM_PIECE))
