"""MCP servers as settings name them: the usual `mcpServers` form, as JSON or in a JSON file."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, TypeAdapter, ValidationError

from everlong.nodes.errors import ToolsError
from everlong.stores.settings import variable

Given = str | Path | Mapping[str, Any]
TRANSPORTS: Mapping[str, Literal["stdio", "sse", "streamable_http"]] = {
    "stdio": "stdio",
    "sse": "sse",
    "http": "streamable_http",
    "streamable-http": "streamable_http",
    "streamable_http": "streamable_http",
}
LEAST_SECRET_CHARS = 4
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_SECRET_IN_URL = re.compile(r"(?<=//)[^/@]+(?=@)|\?.*", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class McpConnection:
    """How one server is reached."""

    name: str
    transport: Literal["stdio", "sse", "streamable_http"]
    command: str = ""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] | None = field(default=None, repr=False)
    cwd: str | None = None
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    sends_user: bool = False
    """Whether each call says whose it is."""

    def without_secrets(self, text: str) -> str:
        """Return the text without what only the settings know: `env`, headers, secrets of a URL."""
        values = [*(self.env or {}).values(), *self.headers.values()]
        values += [part for one in self.headers.values() for part in one.split()]
        values += _SECRET_IN_URL.findall(self.url)
        long = [one for one in values if len(one) >= LEAST_SECRET_CHARS]
        for value in sorted(long, key=len, reverse=True):
            text = text.replace(value, "***")
        return text


class _Entry(BaseModel):
    """An entry of the usual form; what other clients know beside this is left out."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True, strict=True)

    type: str = ""
    transport: str = ""
    command: str = ""
    args: list[str] = Field(default_factory=list)
    env: dict[str, str] | None = None
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict)
    disabled: bool = False
    send_user: bool = Field(default=False, alias="sendUser")


def servers_in(given: Given, setting: str) -> list[McpConnection]:
    """Return the servers that JSON, a JSON file or a mapping names, as `setting` gives them.

    `${NAME}` and `${NAME:-else}` in a value stand for a variable of the process.

    Raises:
        ToolsError: they cannot be read, or the extra that talks with them is not installed.
    """
    entries = _entries(given, setting)
    found = [_connection(name, entry, f"{setting}: {name}") for name, entry in entries.items()]
    known = [one for one in found if one is not None]
    if known and find_spec("langchain_mcp_adapters") is None:
        msg = f"`{setting}`: MCP servers need an extra: pip install 'everlong[mcp]'"
        raise ToolsError(msg)
    return known


def _entries(given: Given, setting: str) -> Mapping[str, Any]:
    value: Any = given if isinstance(given, Mapping) else _loaded(given, setting)
    if isinstance(value, Mapping) and "mcpServers" in value:
        value = cast("Mapping[str, Any]", value)["mcpServers"]
    if not isinstance(value, Mapping):
        _refuse(setting, f"an object of servers by name; got {type(value).__name__}")
    return cast("Mapping[str, Any]", value)


def _loaded(given: str | Path, setting: str) -> Any:
    text, source = str(given), setting
    if not {"{", "["} & set(text):
        source = f"{setting}: {text}"
        try:
            text = Path(text).expanduser().read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            _refuse(setting, f"JSON, or the path of a JSON file; {given} cannot be read ({why})")
    try:
        return json.loads(text)
    except ValueError as error:  # its text says where, and repeats nothing
        _refuse(source, f"JSON; {error}")


def _connection(name: str, entry: Any, source: str) -> McpConnection | None:
    """Return how a server is reached; None where it is disabled."""
    try:
        found = _Entry.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "entry"
        _refuse(source, f"a server's settings; `{where}`: {first['msg']}")
    if found.disabled:
        return None
    named = found.type or found.transport or ("streamable_http" if found.url else "stdio")
    if named not in TRANSPORTS:
        _refuse(source, f"`type` to be one of {sorted(set(TRANSPORTS))}; got {named!r}")
    transport = TRANSPORTS[named]
    has, lacks = ("command", "url") if transport == "stdio" else ("url", "command")
    if not getattr(found, has) or getattr(found, lacks):
        _refuse(source, f"`{has}` and no `{lacks}` for a server of type {transport}")
    url = _expanded(found.url, source)
    if url and not _is_url(url):
        _refuse(source, "`url` to be one, such as https://example.test/mcp")
    return McpConnection(
        name=name,
        transport=transport,
        command=_expanded(found.command, source),
        args=tuple(_expanded(one, source) for one in found.args),
        env=None if found.env is None else _all_expanded(found.env, source),
        cwd=None if found.cwd is None else _expanded(found.cwd, source),
        url=url,
        headers=_all_expanded(found.headers, source),
        sends_user=found.send_user,
    )


def _is_url(text: str) -> bool:
    try:
        TypeAdapter(HttpUrl).validate_python(text)
    except ValidationError:
        return False
    return True


def _all_expanded(values: Mapping[str, str], source: str) -> dict[str, str]:
    return {name: _expanded(value, source) for name, value in values.items()}


def _expanded(text: str, source: str) -> str:
    def value_of(found: re.Match[str]) -> str:
        value = variable(found[1])
        if value is None and found[2] is None:
            _refuse(source, f"the variable {found[1]}, which ${{{found[1]}}} names; it is not set")
        return found[2] if value is None else value

    return _VARIABLE.sub(value_of, text)


def _refuse(source: str, expected: str) -> NoReturn:
    msg = f"`{source}`: expected {expected}"
    raise ToolsError(msg)
