"""The graph `memory`: what a server runs for a user without a conversation, by a cron or by hand.

START ─▶ finish_work ─▶ consolidate_memory? ─▶ END

  consolidate_memory  wants_consolidation  unless the caller said no
"""

from functools import partial
from typing import Literal

from langgraph.graph import END, START, StateGraph

from everlong.graph.agent import Clock, about, utc_now
from everlong.nodes.consolidate_memory import consolidate_memory
from everlong.nodes.context import Context
from everlong.nodes.finish_work import finish_work
from everlong.nodes.memory_state import MemoryInput, MemoryState

Builder = StateGraph[MemoryState, Context, MemoryInput, MemoryState]


def build_memory(*, clock: Clock = utc_now) -> Builder:
    """Return the uncompiled graph; who runs it is whose memory it is, as in the agent's."""
    return (
        StateGraph(MemoryState, context_schema=Context, input_schema=MemoryInput)
        .add_node("finish_work", partial(finish_work, clock=clock), metadata=about(finish_work))
        .add_node(
            "consolidate_memory",
            partial(consolidate_memory, clock=clock),
            metadata=about(consolidate_memory),
        )
        .add_edge(START, "finish_work")
        .add_conditional_edges("finish_work", wants_consolidation)
        .add_edge("consolidate_memory", END)
    )


def wants_consolidation(state: MemoryState) -> Literal["consolidate_memory", "__end__"]:
    """Consolidate unless the caller said no."""
    return "__end__" if state.consolidate == "no" else "consolidate_memory"


graph = build_memory().compile(name="memory")
