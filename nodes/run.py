"""What a node needs to know of the run it works in."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from everlong.nodes.context import Context, HasContext, context_of, user_of
from everlong.nodes.state import State

BETWEEN_GRAPHS, BEFORE_TASK_ID = "|", ":"
"""LangGraph's own signs in a namespace, such as `sales|tools:5f0c`."""
ONE_CALL = "_run_call"
"""The task in which the node `tools` runs one call: a level below the node."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One call of one user's thread."""

    context: Context
    user_id: str
    thread_id: str
    """As `thread_of` says; empty in a run that no checkpointer keeps."""
    store: BaseStore | None
    instant: str
    """When the call began: ISO 8601, UTC."""
    tell: Callable[[dict[str, Any]], None]
    """Send a custom stream event."""
    first: str = ""
    """Id of the first message that the call brought; empty: not known."""

    @property
    def local_time(self) -> datetime:
        """The call's instant on the user's clock."""
        return datetime.fromisoformat(self.instant).astimezone(ZoneInfo(self.context.time_zone))

    @property
    def archive(self) -> BaseStore | None:
        """The store, where the thread's transcript is kept."""
        return self.store if self.context.transcript and self.thread_id else None

    @property
    def memory(self) -> BaseStore | None:
        """The store, where the user's memory is kept."""
        return self.store if self.context.memory.enabled else None


def thread_of(runtime: HasContext) -> str:
    """Return the id that a thread's records go by; empty where nothing is kept of the run.

    A graph that keeps a history of its own inside another graph has a thread of its own: `t1|sales`
    is that of the node `sales` in thread `t1`. One that begins anew in each call has none.
    """
    info = runtime.execution_info
    if info is None or not info.thread_id:
        return ""
    *inside, own = info.checkpoint_ns.split(BETWEEN_GRAPHS)
    if own.startswith(f"{ONE_CALL}{BEFORE_TASK_ID}"):
        inside = inside[:-1]
    if any(BEFORE_TASK_ID in part for part in inside):
        return ""
    return BETWEEN_GRAPHS.join([str(info.thread_id), *inside])


def is_inside(runtime: HasContext) -> bool:
    """Tell whether the node belongs to a graph that runs inside another one."""
    info = runtime.execution_info
    return info is not None and BETWEEN_GRAPHS in info.checkpoint_ns


def run_of(state: State, runtime: Runtime[Context]) -> Run:
    """Return the run that the state and the runtime describe."""
    return Run(
        context=context_of(runtime),
        user_id=user_of(runtime),
        thread_id=thread_of(runtime),
        store=runtime.store,
        instant=state.call.get("instant", ""),
        tell=runtime.stream_writer,
        first=str(state.call.get("first", "")),
    )
