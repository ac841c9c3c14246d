"""The agent graph.

START ─▶ open_call ─▶ evict? ─▶ compact? ─▶ reason ─▶ flush_memory? ─▶ consolidate? ─▶ END
                        ▲          ▲          │ │
                        │          └──────────┘ │   the provider said: too long (once in a call)
                        └─────── tools ◀────────┘   the model calls tools

  ?             entered only when its question says yes; else passed by, at no cost
  evict         has_oversized        a tool result is over its limit
  compact       needs_compaction     a message or token threshold is reached, the provider
                                     refused, or a person asked
  flush_memory  has_records_to_keep  there is a transcript or a memory to write to
  consolidate   call["consolidate"]  fresh ledger entries, and the gap has passed
  compact ─▶ compact, once, to tell what came of it, ─▶ END when the run asked for nothing but
  compaction; else ─▶ reason
  open_call ─▶ consolidate when the run asked for nothing but consolidation; ─▶ tools when the
  history ends in calls that still have to run
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langgraph.graph import END, START
from langgraph.runtime import Runtime

from everlong.graph.callers import checked
from everlong.graph.guard import GuardedBuilder
from everlong.graph.routes import (
    after_compact,
    after_evict,
    after_flush,
    after_open_call,
    after_reason,
    before_reasoning,
)
from everlong.nodes.compact import compact
from everlong.nodes.consolidate import consolidate
from everlong.nodes.context import Context
from everlong.nodes.evict import evict
from everlong.nodes.flush_memory import flush_memory
from everlong.nodes.open_call import open_call
from everlong.nodes.reason import reason
from everlong.nodes.state import Input, Output, State
from everlong.nodes.tool_paths import Tool
from everlong.nodes.tool_source import ToolSource
from everlong.nodes.tools import tools as run_tools

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Tell the time; the only place that does."""
    return datetime.now(UTC)  # noqa: TID251 - the one place


def build(
    *,
    tools: Sequence[Tool] | ToolSource = (),
    clock: Clock = utc_now,
    defaults: Context | Mapping[str, Any] | None = None,
) -> GuardedBuilder:
    """Return the uncompiled graph, so that the caller chooses checkpointer and store.

    `defaults` are the settings where a run's context, or that of a graph around it, does not say
    otherwise. Inside another graph, compile with `checkpointer=True`.

    Raises:
        ValueError: two tools have one name.
        InvalidInputError: a default is unknown or out of range.
    """
    schemas: Any = {"context_schema": Context, "input_schema": Input, "output_schema": Output}
    source = tools if isinstance(tools, ToolSource) else given(tools)
    opening = partial(open_call, clock=clock)
    return (
        GuardedBuilder(State, **schemas, defaults=checked(defaults))
        .add_node("open_call", using(opening, source), metadata=about(open_call))
        .add_node("evict", using(evict, source), metadata=about(evict))
        .add_node("compact", using(compact, source), metadata=about(compact))
        .add_node("reason", using(reason, source), metadata=about(reason))
        .add_node("tools", using(run_tools, source), metadata=about(run_tools))
        .add_node("flush_memory", flush_memory, metadata=about(flush_memory))
        .add_node("consolidate", consolidate, metadata=about(consolidate))
        .add_edge(START, "open_call")
        .add_conditional_edges("open_call", after_open_call)
        .add_conditional_edges("evict", after_evict)
        .add_conditional_edges("compact", after_compact)
        .add_conditional_edges("reason", after_reason)
        .add_conditional_edges("tools", before_reasoning)
        .add_conditional_edges("flush_memory", after_flush)
        .add_edge("consolidate", END)
    )


def given(tools: Sequence[Tool]) -> ToolSource:
    """Return these tools and no others."""
    source = ToolSource(tools, mcp={})
    source.check()
    return source


def using(node: Callable[..., Awaitable[Any]], source: ToolSource) -> Callable[..., Any]:
    """Return the node with the tools that there are when it runs."""

    async def run(state: State, runtime: Runtime[Context]) -> Any:
        return await node(state, runtime, toolbox=await source.toolbox())

    return run


def about(node: Callable[..., Any]) -> dict[str, str]:
    """Return what drawings tell of a node: its docstring's first line."""
    return {"description": str(node.__doc__).partition("\n")[0]}


named = ToolSource()
graph = build(tools=named).compile(name="everlong")
if __name__ != "everlong.graph.agent":  # a server loads this file by its path, and starts with it
    named.check()
