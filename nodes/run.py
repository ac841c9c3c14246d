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


@dataclass(frozen=True, kw_only=True)
class Run:
    """One call of one user's thread."""

    context: Context
    user_id: str
    thread_id: str
    """Empty in a run that no checkpointer keeps."""
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
    """Return the thread's id; empty where no checkpointer keeps the run."""
    info = runtime.execution_info
    return str(info.thread_id or "") if info is not None else ""


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
