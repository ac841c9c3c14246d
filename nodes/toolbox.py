"""The tools of an agent: the caller's own, and ours for reading back what was moved away."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import ToolNode

from everlong.nodes.context import Context
from everlong.nodes.reading_tools import list_files, read_file
from everlong.nodes.tokens import estimate_tools

Answering = Runnable[Any, AIMessage]


class Toolbox:
    """The tools that one graph offers; `reason` offers them, `tools` runs them.

    A caller's tool takes the place of one of ours with the same name.

    Raises:
        ValueError: two of the caller's tools have one name.
    """

    def __init__(self, tools: Sequence[BaseTool | Callable[..., Any]] = ()) -> None:
        own = ToolNode(tools).tools_by_name if tools else {}
        if len(own) < len(tools):
            msg = f"expected tools with different names; got {sorted(own)} for {len(tools)} tools"
            raise ValueError(msg)
        self._own: dict[str, BaseTool] = dict(own)
        self._reading: dict[str, BaseTool] = {
            tool.name: tool for tool in (read_file, list_files) if tool.name not in own
        }
        self.node = ToolNode(
            [*self._own.values(), *self._reading.values()], handle_tool_errors=_as_result
        )
        self._schemas = {
            name: convert_to_openai_tool(tool) for name, tool in self.node.tools_by_name.items()
        }
        self._tokens = {name: estimate_tools([schema]) for name, schema in self._schemas.items()}

    def offered(self, context: Context) -> tuple[str, ...]:
        """Return the names of the tools that a run's model is told of."""
        reading = self._reading if context.eviction.enabled or context.memory.enabled else {}
        return (*self._own, *reading)

    def tokens(self, context: Context) -> int:
        """Estimate what the offered tools' schemas take of each request."""
        return sum(self._tokens[name] for name in self.offered(context))

    def bind(self, model: BaseChatModel, names: Sequence[str]) -> Answering:
        """Return the model with these tools; their schemas were made once, with the graph."""
        return model.bind_tools([self._schemas[name] for name in names]) if names else model


def _as_result(error: Exception) -> str:
    """Tell the model what went wrong, so that it can try another way."""
    return f"The tool failed: {type(error).__name__}: {error}"
