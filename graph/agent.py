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

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.graph import END, START

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
from everlong.nodes.toolbox import Toolbox
from everlong.nodes.tools import tools as run_tools

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Tell the time; the only place that does."""
    return datetime.now(UTC)  # noqa: TID251 - the one place


def build(
    *, tools: Sequence[BaseTool | Callable[..., Any]] = (), clock: Clock = utc_now
) -> GuardedBuilder:
    """Return the uncompiled graph, so that the caller chooses checkpointer and store.

    Raises:
        ValueError: two tools have one name.
    """
    box = Toolbox(tools)
    opening = partial(open_call, toolbox=box, clock=clock)
    return (
        GuardedBuilder(State, context_schema=Context, input_schema=Input, output_schema=Output)
        .add_node("open_call", opening, metadata=about(open_call))
        .add_node("evict", partial(evict, toolbox=box), metadata=about(evict))
        .add_node("compact", partial(compact, toolbox=box), metadata=about(compact))
        .add_node("reason", partial(reason, toolbox=box), metadata=about(reason))
        .add_node("tools", partial(run_tools, toolbox=box), metadata=about(run_tools))
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


def about(node: Callable[..., Any]) -> dict[str, str]:
    """Return what drawings tell of a node: its docstring's first line."""
    return {"description": str(node.__doc__).partition("\n")[0]}


graph = build().compile(name="everlong")
