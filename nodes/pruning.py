"""Shortening of old tool results and arguments: what needs no model.

What is cut stays readable: each change comes with the full text, which the caller stores.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.blocks import is_thought, with_arguments, without_thoughts
from everlong.nodes.tokens import estimate_message
from everlong.nodes.transcript import batches, call_ids, conversation, pinned_indices

PathOf = Callable[[str], str]
"""Where a full text will be stored."""

ARGUMENT_PREVIEW_CHARS = 200
"""What stays of a long argument: its first and last half of this."""
EVICTED = "everlong_evicted"
"""Key in `additional_kwargs` of what is a preview: `path` of the whole text, and its `chars`."""
SHORTENED = "everlong_shortened"
"""Key in `additional_kwargs` of what was shortened here: `preview_chars`."""

_GAP = re.compile(r"\n\n\[(\d+) characters cut[^\]]*\]\n\n")


@dataclass(frozen=True)
class Shortened:
    """A message whose text was cut; id, name, status, artifact and other blocks are as before."""

    message: BaseMessage
    path_text: str
    """The full text, to be stored under its path; empty where it is stored already."""


def shorten(text: str, preview_chars: int, path: str = "", *, was_preview_chars: int = 0) -> str:
    """Return the first and last half of `preview_chars`, and between them what is missing.

    `path` is where the whole can be read. `was_preview_chars`: `text` is such a preview already.
    A text that would not become shorter is returned as it is.
    """
    half, was_half = preview_chars // 2, was_preview_chars // 2
    gone = max(0, len(text) - 2 * half)
    if was_preview_chars and (gap := _GAP.match(text, was_half)):
        gone = int(gap[1]) + 2 * (was_half - half)
    where = f"; {path} holds the whole" if path else ""
    short = f"{text[:half]}\n\n[{gone} characters cut{where}]\n\n{text[len(text) - half :]}"
    return short if len(short) < len(text) else text


def shorten_message(
    message: BaseMessage, preview_chars: int, path_of: PathOf | None = None
) -> Shortened | None:
    """Return `message` with each text over `preview_chars` shortened, or None where none is.

    What was shortened before is shortened again only to a smaller preview, and keeps its path.
    """
    is_str = isinstance(message.content, str)
    blocks: list[Any] = [message.content] if is_str else list(message.content)
    was = _number(message, SHORTENED, "preview_chars")
    longest = max((len(_text(block)) for block in blocks), default=0)
    if longest <= preview_chars:
        return None
    full = str(message.text)
    known = str(_record(message, EVICTED).get("path") or "")
    path = known or ("" if was or path_of is None else path_of(full))
    cut = [
        _with_text(b, shorten(_text(b), preview_chars, path, was_preview_chars=was)) for b in blocks
    ]
    if cut == blocks:
        return None
    notes: dict[str, Any] = {SHORTENED: {"preview_chars": preview_chars}}
    if path and not known:
        notes[EVICTED] = {"path": path, "chars": len(full)}
    changed = _changed(message, notes, content=cut[0] if is_str else cut)
    return Shortened(changed, "" if was or known else full)


def prune_results(
    messages: Sequence[BaseMessage],
    *,
    protect_tokens: int,
    minimum_tokens: int,
    preview_chars: int,
    exempt: Collection[str],
    path_of: PathOf | None = None,
) -> list[Shortened]:
    """Return the tool results that are cut to their first and last half of `preview_chars`.

    A result of which any part is among the newest `protect_tokens` tokens of results stays, so do
    pinned ones and those of `exempt` tools. Nothing is cut where less than `minimum_tokens` would
    be freed.
    """
    pinned = pinned_indices(messages)
    names = _tool_names(messages)
    newer = freed = 0
    pruned: list[Shortened] = []
    for index in sorted(names, reverse=True):
        message, is_old = messages[index], newer >= protect_tokens
        size = estimate_message(message)
        newer += size
        if is_old and index not in pinned and names[index] not in exempt:
            cut = shorten_message(message, preview_chars, path_of)
            if cut:
                freed += size - estimate_message(cut.message)
                pruned.insert(0, cut)
    return pruned if freed >= minimum_tokens else []


def truncate_arguments(
    messages: Sequence[BaseMessage],
    *,
    keep_messages: int,
    over_chars: int,
    path_of: PathOf | None = None,
) -> list[Shortened]:
    """Return the messages whose calls held strings over `over_chars`, nested ones too, cut.

    The newest `keep_messages` non-system messages stay, and pinned ones, calls without a result
    yet, and messages of the running turn that hold thoughts: these must go back as they came.
    A message of an earlier turn loses its thoughts with what is cut: they belong to the whole call.
    """
    talk = conversation(messages)
    pinned = pinned_indices(talk)
    turn = max((i for i, each in enumerate(talk) if isinstance(each, HumanMessage)), default=-1)
    cut: list[Shortened] = []
    for group in batches(talk):
        message = cast("AIMessage", talk[group[0]])
        is_open = len(group) - 1 < len(call_ids(message))
        must_stay = group[0] > turn and any(map(is_thought, message.content))
        if group[0] >= len(talk) - keep_messages or is_open or must_stay or group[0] in pinned:
            continue
        if found := _cut_arguments(message, over_chars, path_of):
            cut.append(found)
    return cut


def _tool_names(messages: Sequence[BaseMessage]) -> dict[int, str | None]:
    """Return by index of a tool result the tool that gave it; some results don't say."""
    names = {i: each.name for i, each in enumerate(messages) if isinstance(each, ToolMessage)}
    for caller, *results in batches(messages):
        called = {
            call["id"]: call["name"] for call in cast("AIMessage", messages[caller]).tool_calls
        }
        for index in results:
            result = cast("ToolMessage", messages[index])
            names[index] = result.name or called.get(result.tool_call_id)
    return names


def _record(message: BaseMessage, key: str) -> Mapping[str, Any]:
    """Return a note of ours; whoever sent the message may have made it up."""
    found = message.additional_kwargs.get(key)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _number(message: BaseMessage, key: str, name: str) -> int:
    found = _record(message, key).get(name)
    return found if isinstance(found, int) else 0


def _changed(message: BaseMessage, notes: Mapping[str, Any], **fields: Any) -> BaseMessage:
    kwargs = {**message.additional_kwargs, **notes}
    return message.model_copy(update={**fields, "additional_kwargs": kwargs})


def _text(block: Any) -> str:
    """Return the text of a content block, empty where it has none."""
    if isinstance(block, dict):
        fields = cast("dict[str, Any]", block)
        block = fields.get("text") if fields.get("type") == "text" else None
    return block if isinstance(block, str) else ""


def _with_text(block: Any, text: str) -> Any:
    if _text(block) == text:
        return block
    return {**cast("dict[str, Any]", block), "text": text} if isinstance(block, dict) else text


def _cut_arguments(message: AIMessage, over_chars: int, path_of: PathOf | None) -> Shortened | None:
    calls = [{"name": call["name"], "args": call["args"]} for call in message.tool_calls]
    bare = without_thoughts(message)
    if bare is None or _record(message, SHORTENED) or _cut_strings(calls, over_chars, "") == calls:
        return None
    full = json.dumps(calls, ensure_ascii=False, default=str)
    path = path_of(full) if path_of else ""
    new = {call["id"]: _cut_strings(call["args"], over_chars, path) for call in message.tool_calls}
    content = bare.content
    if not isinstance(content, str):
        content = [with_arguments(block, new) for block in content]
    cut = [{**call, "args": new[call["id"]]} for call in message.tool_calls]
    notes = {SHORTENED: {"preview_chars": ARGUMENT_PREVIEW_CHARS, "path": path}}
    return Shortened(_changed(message, notes, content=content, tool_calls=cut), full)


def _cut_strings(value: Any, over_chars: int, path: str) -> Any:
    """Return `value` with each string over `over_chars` shortened; keys stay."""
    if isinstance(value, str):
        preview = min(over_chars, ARGUMENT_PREVIEW_CHARS)
        return shorten(value, preview, path) if len(value) > over_chars else value
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value).items()
        return {name: _cut_strings(each, over_chars, path) for name, each in fields}
    if isinstance(value, list):
        return [_cut_strings(each, over_chars, path) for each in cast("list[Any]", value)]
    return value
