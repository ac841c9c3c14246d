"""The tools of an agent: the caller's own, and ours for reading back what was moved away."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import ToolNode

from everlong.nodes.context import Context
from everlong.nodes.forget_tool import memory_forget
from everlong.nodes.guidance import READ_STORED
from everlong.nodes.inner import Answering
from everlong.nodes.memory_tools import memory_get, memory_save, memory_search
from everlong.nodes.reading_tools import list_files, read_file
from everlong.nodes.request import fixed_tokens
from everlong.nodes.session_tools import session_history, session_search
from everlong.nodes.state import Injected
from everlong.nodes.tokens import estimate_tools

READING: tuple[BaseTool, ...] = (read_file, list_files)
MEMORY: tuple[BaseTool, ...] = (memory_search, memory_get, memory_save, memory_forget)
SESSIONS: tuple[BaseTool, ...] = (session_search, session_history)


class Toolbox:
    """The tools that one graph offers; `reason` offers them, `tools` runs them.

    A caller's tool takes the place of one of ours with the same name; a `read_file` of theirs reads
    something else than what we store, so ours is then named `read_stored`.

    Raises:
        ValueError: two of the caller's tools have one name.
    """

    sends = True
    """Requests are built with it, so a summary's can extend the one that was sent last (R25)."""

    def __init__(self, tools: Sequence[BaseTool | Callable[..., Any]] = ()) -> None:
        own = ToolNode(tools).tools_by_name if tools else {}
        if len(own) < len(tools):
            msg = f"expected tools with different names; got {sorted(own)} for {len(tools)} tools"
            raise ValueError(msg)
        self._own: dict[str, BaseTool] = dict(own)
        self.own = frozenset(own)
        """The names of the caller's."""
        self._reading = tuple(_beside(tool, own) for tool in READING)
        ours = [tool for tool in (*self._reading, *MEMORY, *SESSIONS) if tool.name not in own]
        self.node = ToolNode([*own.values(), *ours], handle_tool_errors=_as_result)
        self._schemas = {
            name: convert_to_openai_tool(tool) for name, tool in self.node.tools_by_name.items()
        }
        self._tokens = {name: estimate_tools([schema]) for name, schema in self._schemas.items()}

    def offered(self, context: Context) -> tuple[str, ...]:
        """Return the names of the tools that a run's model is told of."""
        remembering = context.memory.enabled and context.memory.tools
        shortening = context.compaction.enabled or context.compaction.overflow_retry
        storing = context.eviction.enabled or context.memory.enabled or shortening
        ours = [
            *(self._reading if storing else ()),
            *(MEMORY if remembering else ()),
            *(SESSIONS if remembering and context.transcript else ()),
        ]
        return (*self._own, *(tool.name for tool in ours if tool.name not in self._own))

    def reader(self, context: Context) -> str:
        """Return the name of the tool that reads back what we store; empty: none is offered."""
        name = self._reading[0].name
        return name if name not in self._own and name in self.offered(context) else ""

    def fixed_tokens(self, context: Context, injected: Injected) -> int:
        """Estimate what each request carries beside the history: prompt, memory, schemas."""
        names = self.offered(context)
        size = sum(self._tokens[name] for name in names)
        return fixed_tokens(context, injected, tools=names, tools_tokens=size)

    def bind(self, model: BaseChatModel, names: Sequence[str]) -> Answering:
        """Return the model with these tools; their schemas were made once, with the graph."""
        return model.bind_tools([self._schemas[name] for name in names]) if names else model


def _beside(tool: BaseTool, own: Mapping[str, BaseTool]) -> BaseTool:
    """Return our reading tool, under another name where the caller has one of its name."""
    if tool.name != read_file.name or tool.name not in own:
        return tool
    return tool.model_copy(update={"name": READ_STORED})


def _as_result(error: Exception) -> str:
    """Tell the model what went wrong, so that it can try another way."""
    if isinstance(error, ToolException):  # a tool's own words for the model
        return str(error)
    return f"The tool failed: {type(error).__name__}: {error}"
