"""The given cases: inputs as data, read from `cases/given.md`."""

import copy
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

CASES = Path(__file__).parent / "cases" / "given.md"
TYPES: Mapping[str, type[BaseMessage]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "tool": ToolMessage,
    "system": SystemMessage,
}


def case(name: str) -> dict[str, Any]:
    """Return the json block of a case, its long texts written out; `$gen` is for the test.

    Raises:
        KeyError: there is no case of this name.
    """
    cases = _cases()
    if name not in cases:
        msg = f"expected one of {sorted(cases)}; got {name!r}"
        raise KeyError(msg)
    return copy.deepcopy(cases[name])


def messages_of(given: Sequence[Mapping[str, Any]]) -> list[BaseMessage]:
    """Return `given` as LangChain's messages.

    Raises:
        ValueError: one of them is a `$gen`, which the test has to build, or of no known type.
    """
    return [_message(each) for each in given]


def _message(given: Mapping[str, Any]) -> BaseMessage:
    fields = dict(given)
    kind = TYPES.get(fields.pop("type", ""))
    if kind is None:
        msg = f"expected a message with a type of {sorted(TYPES)}; got {dict(given)!r}"
        raise ValueError(msg)
    for calls in ("tool_calls", "invalid_tool_calls"):
        if calls in fields:
            made = "invalid_tool_call" if calls.startswith("invalid") else "tool_call"
            fields[calls] = [{**call, "type": made} for call in fields[calls]]
    return kind(**fields)


@cache
def _cases() -> dict[str, dict[str, Any]]:
    blocks = re.findall(r"^```json\n(.*?)^```$", CASES.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    cases = [_written_out(json.loads(block)) for block in blocks]
    return {case["id"]: case for case in cases}


def _written_out(value: Any) -> Any:
    if isinstance(value, list):
        return [_written_out(each) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$rep"}:
        text, times = value["$rep"]
        return text * times
    if set(value) == {"$cat"}:
        return "".join(_written_out(part) for part in value["$cat"])
    if set(value) == {"$lone_surrogate"}:
        return json.loads(f'"{value["$lone_surrogate"]}"')
    return {name: _written_out(each) for name, each in value.items()}
