"""The tool calls that the offline model makes: those it is told to make, and a search of memory."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from everlong.nodes import offline_cues as cues
from everlong.nodes.offline_terms import keywords
from everlong.nodes.statements import Language

Schema = Mapping[str, Any]
"""A tool as providers are told of it: `{"type": "function", "function": {...}}`."""

SEARCHES = ("memory_search", "session_search")
READERS = frozenset({*SEARCHES, "memory_get", "session_history"})
"""Tools whose results are material for an answer, not the answer."""
REPORTED_CHARS = 300

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(
    r"[`\"”」']?\s*(?:tool|function|工具)?\s*[,，]?\s*(?:with|using|on|for|参数)?\s*"
    r"(?:the |these )?(?:arguments?|args|parameters?|是|为)?\s*[:：=]?\s*(?=\{)",
    re.IGNORECASE,
)
_AND = re.compile(r"\s*(?:,|，|、|;|；|and|和|以及)\s*(?=\{)", re.IGNORECASE)


@dataclass(frozen=True)
class Told:
    """What a message says about tools."""

    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    trouble: str = ""
    """Why a call that was asked for cannot be made."""


def told_calls(text: str, tools: Sequence[Schema], *, seed: str, tongue: Language) -> Told:
    """Return the calls that a message says to make, such as `call read_file {"path": "a"}`.

    The ids follow from `seed` and the calls. Nothing is called where the message forbids it.
    """
    if not tools or cues.NO_TOOLS.search(text) or not cues.CALL.search(text):
        return Told()
    schemas = {name_of(tool): tool for tool in tools}
    names = "|".join(sorted(map(re.escape, schemas), key=len, reverse=True))
    wanted: list[tuple[str, dict[str, Any]]] = []
    for found in re.finditer(rf"(?<![\w.-])(?:{names})(?![\w-])", text):
        objects = _objects(text, found.end())
        wanted += [(found[0], args) for args in objects]
        if not objects and cues.CALL_BEFORE.search(text[: found.start()]):
            lacking = _required(schemas[found[0]])
            if lacking:
                return Told(trouble=_lacks(found[0], lacking, tongue))
            wanted.append((found[0], {}))
    calls = [
        call_of(name, args, seed=f"{seed}{place}") for place, (name, args) in enumerate(wanted)
    ]
    return Told(calls) if calls else Told(trouble=_unknown(text, list(schemas), tongue))


def _objects(text: str, place: int) -> list[dict[str, Any]]:
    """Return the JSON objects that follow a tool's name: one, or several joined by `and`."""
    found: list[dict[str, Any]] = []
    gap = _BETWEEN.match(text, place)
    while gap:
        try:
            value, place = _DECODER.raw_decode(text, gap.end())
        except ValueError:
            break
        found.append(cast("dict[str, Any]", value))
        gap = _AND.match(text, place)
    return found


def _lacks(name: str, lacking: Sequence[str], tongue: Language) -> str:
    example = f"call {name} {json.dumps(dict.fromkeys(lacking, '...'))}"
    needs = ", ".join(lacking)
    if tongue == "zh":
        return f"工具 {name} 需要参数 {needs}。请这样说：{example.replace('call', '调用', 1)}"
    return f"The tool {name} needs {needs}. Say, for example: {example}"


def _unknown(text: str, names: Sequence[str], tongue: Language) -> str:
    """Say that a tool which is asked for by name and arguments is not there; else nothing."""
    asked = cues.CALL_OF.search(text)
    if not asked or asked["name"] in names:
        return ""
    if tongue == "zh":
        return f"没有名为 {asked['name']} 的工具。可用的工具：{'、'.join(names)}。"
    return f"There is no tool named {asked['name']} here. The tools are: {', '.join(names)}."


def search_call(question: str, tools: Sequence[Schema], *, seed: str) -> ToolCall | None:
    """Return the call that searches memory for a question's words; None where no tool can."""
    tool = next((one for name in SEARCHES for one in tools if name_of(one) == name), None)
    if tool is None:
        return None
    fields = list(_properties(tool))
    field_name = "query" if "query" in fields or not fields else fields[0]
    query = " ".join(keywords(question)) or question.strip()
    return call_of(name_of(tool), {field_name: query}, seed=seed)


def call_of(name: str, args: dict[str, Any], *, seed: str) -> ToolCall:
    """Return a call whose id follows from what is called, and from `seed`."""
    written = json.dumps([seed, name, args], ensure_ascii=False, sort_keys=True)
    digest = hashlib.sha256(written.encode("utf-8", "replace")).hexdigest()[:24]
    return ToolCall(name=name, args=args, id=f"call_{digest}", type="tool_call")


def name_of(tool: Schema) -> str:
    """Return a tool's name."""
    return str(_function(tool).get("name", ""))


def _function(tool: Schema) -> Schema:
    return cast("Schema", tool.get("function", tool))


def _properties(tool: Schema) -> Schema:
    return cast("Schema", _function(tool).get("parameters", {}).get("properties", {}))


def _required(tool: Schema) -> list[str]:
    return cast("list[str]", _function(tool).get("parameters", {}).get("required", []))


def fresh_results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    """Return the tool results that end a prompt: those that the next answer is about."""
    found: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        found.insert(0, message)
    return found


def names_called_since(messages: Sequence[BaseMessage], question: int) -> list[str]:
    """Return the names of the tools that were called after the message at this place."""
    return [
        call["name"]
        for message in messages[question:]
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    ]


def reported(
    results: Sequence[ToolMessage], messages: Sequence[BaseMessage], tongue: Language
) -> str:
    """Report results briefly: each one's name and how it begins."""
    names = {
        call["id"]: call["name"]
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    lines: list[str] = []
    for result in results:
        name = result.name or names.get(result.tool_call_id, "tool")
        text = result.text.strip()
        shown = text if len(text) <= REPORTED_CHARS else f"{text[:REPORTED_CHARS].rstrip()}…"
        failed = result.status == "error"
        verb = {"zh": "失败" if failed else "返回"}.get(tongue, "failed" if failed else "returned")
        lines.append(f"{name} {verb}{'：' if tongue == 'zh' else ': '}{shown}")
    return "\n\n".join(lines)


def last_question(messages: Sequence[BaseMessage]) -> int:
    """Return the place of the newest message of a person; -1 without one."""
    places = [
        place
        for place, message in enumerate(messages)
        if isinstance(message, HumanMessage) and not (message.name or "").startswith("__")
    ]
    return places[-1] if places else -1
