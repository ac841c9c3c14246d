"""Tools by import path, as settings and the command line name them: `shop.tools:TOOLS`."""

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from langchain_core.tools import BaseTool

from everlong.nodes.errors import ToolsError
from everlong.stores.spelled_settings import names_in

Tool = BaseTool | Callable[..., Any]
EXAMPLE = "MODULE:NAME such as shop.tools:TOOLS"


def tools_at(paths: str, setting: str) -> list[Tool]:
    """Return the tools that paths name, parted by commas; a path names a tool or a list of some.

    Modules are looked for in the working folder, too. A tool that two paths name is one tool.
    `setting` is where the paths come from, for the errors.

    Raises:
        ToolsError: a path names no tool, or two tools have one name.
    """
    found: dict[str, tuple[Tool, str]] = {}
    for path in names_in(paths):
        for tool in _tools(path, setting):
            known, before = found.setdefault(_name(tool), (tool, path))
            if known is not tool:
                msg = (
                    f"`{setting}`: expected tools with different names; got two named "
                    f"{_name(tool)!r}, in {before} and in {path}. Rename one of them."
                )
                raise ToolsError(msg)
    return [tool for tool, _ in found.values()]


def _tools(path: str, setting: str) -> list[Tool]:
    module, _, name = path.partition(":")
    if not module or not name:
        msg = f"`{setting}`: expected {EXAMPLE}; got {path!r}"
        raise ToolsError(msg)
    value = _value(path, module, name, setting)
    found = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else [value]
    for one in found:
        if isinstance(one, type) or not (isinstance(one, BaseTool) or callable(one)):
            msg = (
                f"`{setting}`: expected {path} to be a function, a LangChain tool or a list of "
                f"these; got {type(one).__name__} {str(one)[:80]!r}"
            )
            raise ToolsError(msg)
    return list(found)


def _value(path: str, module: str, name: str, setting: str) -> Any:
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        loaded = import_module(module)
    except Exception as error:
        why = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        msg = (
            f"`{setting}`: expected {EXAMPLE}; got {path!r}, which cannot be imported ({why}). "
            f"Python looks in {here}, too; install the package that holds it, or mend the name."
        )
        raise ToolsError(msg) from error
    if not hasattr(loaded, name):
        msg = f"`{setting}`: expected {EXAMPLE}; got {path!r}: the module has no {name!r}"
        raise ToolsError(msg)
    return getattr(loaded, name)


def _name(tool: Tool) -> str:
    return tool.name if isinstance(tool, BaseTool) else str(getattr(tool, "__name__", tool))
