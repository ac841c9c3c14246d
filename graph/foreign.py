"""Our nodes' state and context in a graph that has its own: one small channel keeps what is ours.

A history there is that graph's; what our nodes keep beside it (watermarks, the meter, the last
compaction's receipt) is one dict in the channel `everlong`, and MEMORY.md as the run has read it
is in `everlong_run`, which no checkpoint holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, cast, get_type_hints

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import (
    BinaryOperatorAggregate,
    EphemeralValue,
    LastValue,
    UntrackedValue,
)
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.internals import channel_in
from everlong.nodes.meter import counted
from everlong.nodes.rewriting import whole_history
from everlong.nodes.state import State, Update

KEPT, OF_RUN, OVERFLOW = "everlong", "everlong_run", "everlong_overflow"
SMALL = tuple(
    one.name for one in fields(State) if one.name not in ("messages", "request", "recalled")
)
"""What the channel `everlong` holds: all of our state but the history and what is read anew."""

Kept = dict[str, Any]
OfRun = Annotated[dict[str, Any], UntrackedValue]
Overflow = Annotated[dict[str, Any] | None, EphemeralValue]


class Foreign(TypedDict, total=False):
    """The channels that our nodes bring along into a graph; their names are stored data."""

    everlong: Kept
    """Our small channels, as one value."""
    everlong_run: OfRun
    """What no checkpoint holds: MEMORY.md as the run has read it. Empty before it has begun."""
    everlong_overflow: Overflow
    """A provider's refusal, for the compaction that comes next."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What our nodes work on in a foreign graph, and what they have written so far."""

    state: State
    runtime: Runtime[Context]
    kept: Mapping[str, Any]
    """What the channel `everlong` holds."""
    of_run: Mapping[str, Any]
    """What the channel `everlong_run` holds: `recalled`, and `model`, the name of the run's own."""
    model: str = ""
    written: tuple[BaseMessage | dict[str, Any], ...] = ()
    """Updates of the history, in order."""

    @property
    def has_begun(self) -> bool:
        """Whether one of our nodes has opened this run."""
        return bool(self.of_run)

    def with_update(self, update: Update) -> "Work":
        """Return the work as it is when an update has been applied."""
        changes: dict[str, Any] = {k: v for k, v in update.items() if k != "messages"}
        new = list(update.get("messages", ()))
        work = replace(self, state=replace(self.state, **changes))
        return replace(work.seeing(new), written=(*self.written, *new)) if new else work

    def seeing(self, messages: Sequence[Any]) -> "Work":
        """Return the work with messages in its history that somebody else writes."""
        before: list[Any] = list(self.state.messages)
        merged = cast("list[AnyMessage]", add_messages(before, list[Any](messages)))
        return replace(self, state=replace(self.state, messages=merged))

    def update(
        self, messages_key: str = "messages", *, more: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the foreign graph's update: only what has changed; `more` is kept with ours."""
        state = replace(self.state, meter=counted(self.state.messages, self.state.meter))
        kept = {name: value for name in SMALL if (value := getattr(state, name))} | dict(more or {})
        of_run = {"recalled": state.recalled, "model": self.model}
        found: dict[str, Any] = {} if kept == self.kept else {KEPT: kept}
        found |= {} if of_run == self.of_run else {OF_RUN: of_run}
        return found | ({messages_key: list(self.written)} if self.written else {})


def work_on(
    values: Mapping[str, Any],
    runtime: Runtime[Any],
    *,
    messages: Sequence[BaseMessage],
    context: Context,
    model: str = "",
) -> Work:
    """Return the work on a foreign graph's state; `model` is what the run's own goes by."""
    of_run: Mapping[str, Any] = values.get(OF_RUN) or {}
    kept: Mapping[str, Any] = values.get(KEPT) or {}
    ours: dict[str, Any] = {name: kept[name] for name in SMALL if name in kept}
    history = cast("Sequence[AnyMessage]", messages)
    return Work(
        state=State(messages=history, recalled=of_run.get("recalled", {}), **ours),
        runtime=cast("Runtime[Context]", runtime.override(context=context)),
        kept=kept,
        of_run=of_run,
        model=model,
    )


def reads(messages_key: str) -> type:
    """Return what a node of ours reads of a foreign state, as a schema of LangGraph's.

    The history is named without a reducer: the graph has its own.
    """
    channels = get_type_hints(Foreign, include_extras=True)
    schema: Any = TypedDict  # whose fields type checkers want to see spelled out
    return schema("Reads", {messages_key: list[AnyMessage], **channels}, total=False)


def refuse_unmerged(config: RunnableConfig, messages_key: str) -> None:
    """Refuse a history that cannot be replaced: a removal would be one more entry in it.

    Raises:
        InvalidInputError: the channel's reducer takes no removals; the text says which does.
    """
    channel = channel_in(config, messages_key)
    if not _replaces(channel):
        msg = (
            f"`{messages_key}`: expected a channel that merges messages by id and takes removals, "
            f"such as `Annotated[list[AnyMessage], add_messages]`; got a {type(channel).__name__} "
            "that does not"
        )
        raise InvalidInputError(msg)


def _replaces(channel: Any) -> bool:
    """Tell whether a channel takes our update of a whole history for what it is."""
    if not isinstance(channel, BinaryOperatorAggregate):
        return not isinstance(channel, LastValue)
    reducer: Any = cast("Any", channel).operator
    old, new = HumanMessage("old", id="old"), HumanMessage("new", id="new")
    try:
        merged = reducer([old], whole_history([new]))
        return [message.id for message in merged] == ["new"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
