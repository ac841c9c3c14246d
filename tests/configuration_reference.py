"""The page docs/configuration.md, made from the settings themselves."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo

from everlong.nodes.context import Context
from everlong.stores.settings import PREFIX, Settings

LONG_TEXT_CHARS = 60
KINDS = {
    "integer": "whole number",
    "number": "number",
    "boolean": "`true` or `false`",
    "array": "list",
    "object": "JSON object",
}
HEAD = """\
# Settings

Made from the settings themselves; `make golden` writes it again.

Each can be given in the environment, by the name in the first column. What a run can choose for
itself is a field of `Context`: `Context(compaction=Compaction(trigger_messages=30))` in code,
`"context": {"compaction": {"trigger_messages": 30}}` over HTTP, a field of the assistant in
Studio. A run's own choice goes before the environment. A list is written with commas between.
"""


def reference() -> str:
    """Return the page."""
    sections = [*_sections("A run", Context, ()), *_sections("The process", Settings, ())]
    return "\n".join([HEAD, *sections])


def _sections(title: str, model: type[BaseModel], path: tuple[str, ...]) -> Iterator[str]:
    yield _section(title, model, path)
    for name, field in model.model_fields.items():
        if inner := _inner(field):
            yield from _sections(f"`{'.'.join((*path, name))}`", inner, (*path, name))


def _section(title: str, model: type[BaseModel], path: tuple[str, ...]) -> str:
    schema = model.model_json_schema()["properties"]
    rows = [
        f"| `{_variable(name, field, path)}` | {_default(field)} | {_bounds(schema, name, field)} "
        f"| {field.description} |"
        for name, field in model.model_fields.items()
        if not _inner(field) and name != "user_id"
    ]
    head = ["| variable | default | takes | what it is |", "|---|---|---|---|"]
    return "\n".join([f"## {title}", "", *head, *rows, ""])


def _inner(field: FieldInfo) -> type[BaseModel] | None:
    found: Any = field.annotation
    return found if isinstance(found, type) and issubclass(found, BaseModel) else None


def _variable(name: str, field: FieldInfo, path: tuple[str, ...]) -> str:
    alias = field.validation_alias
    if isinstance(alias, AliasChoices):
        alias = str(alias.choices[0])
    return str(alias) if alias else PREFIX + "__".join((*path, name)).upper()


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is None or (not value and not isinstance(value, bool | int | float)) or not str(value):
        return "none"
    if isinstance(value, dict):
        return f"`{json.dumps(value)}`"
    if isinstance(value, tuple):
        return ", ".join(f"`{one}`" for one in value)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if len(text) > LONG_TEXT_CHARS:
        return "everlong's own text"
    return f"`{text}`"


def _bounds(schema: dict[str, Any], name: str, field: FieldInfo) -> str:
    alias = field.validation_alias
    own = schema.get(str(alias) if alias else name, {})
    forms = [one for one in own.get("anyOf", [own]) if one.get("type") != "null"]
    return ", or ".join(dict.fromkeys(_form(one) for one in forms))


def _form(schema: dict[str, Any]) -> str:
    if choices := schema.get("enum"):
        return " or ".join(f"`{one}`" for one in choices)
    kind = KINDS.get(schema.get("type", ""), "text")
    limits = [
        f"{word} {schema[key]:,}"
        for key, word in (
            ("minimum", "from"),
            ("exclusiveMinimum", "more than"),
            ("maximum", "to"),
            ("exclusiveMaximum", "less than"),
        )
        if key in schema
    ]
    return " ".join([kind, *limits])
