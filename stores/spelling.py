"""How a transcript spells a message: to be read and searched, and to be made a message again."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, message_to_dict

from everlong.stores.text import clean, clean_text

NOT_KEPT = ("response_metadata", "usage_metadata")


def says(message: BaseMessage) -> str:
    """Return what a message says, and the calls that it makes."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    made = [f"{one['name']}({_told(one['args'])})" for one in calls]
    return clean_text("\n".join([part for part in (str(message.text), *made) if part]))


def _told(value: Any, *, inside: bool = False) -> str:
    """Spell arguments for reading and searching: texts as they are, not as JSON escapes them."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[Any, Any]", value).items()
        told = ", ".join(f"{name}: {_told(each, inside=True)}" for name, each in fields)
        return f"{{{told}}}" if inside else told
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        return f"[{', '.join(_told(each, inside=True) for each in items)}]"
    return value if isinstance(value, str) else _json(clean(value))


def spelled(message: BaseMessage) -> str:
    """Return the message as JSON: what makes it the same message again, and nothing else."""
    fields = message_to_dict(message)["data"]
    kept = {name: value for name, value in fields.items() if _says_something(name, value)}
    return _json({"type": message.type, "data": clean(kept)})


def _says_something(name: str, value: Any) -> bool:
    if name in NOT_KEPT or value is None:
        return False
    if name == "artifact":
        return _is_json(value)
    return name == "content" or value not in ([], {})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_as_text)


def _as_text(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else clean_text(str(value))


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True
