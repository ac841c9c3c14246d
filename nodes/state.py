"""The state of one thread: what callers send, what is kept, and what nodes write.

Channel names are stored data: renaming one loses it in every old thread.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.channels import EphemeralValue, UntrackedValue
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

Phase = Literal["answer", "compact_only", "consolidate_only"]


class Call(TypedDict, total=False):
    """What belongs to one call; `open_call` writes it anew."""

    instant: str
    """When the call began: ISO 8601, UTC."""
    first: str
    """Id of the call's first new message."""
    last: str
    """Id of the newest message that the call was given."""
    fixed_tokens: int
    """Tokens of the request's fixed parts: system prompt, rules, tool schemas, recalled memory."""
    tool_rounds: int
    """Rounds of tool calls that have run."""
    approve_tools: list[str]
    """Which calls waited for a person when the call began, where any do."""
    overflow: dict[str, Any] | None
    """A refusal that `compact` still has to answer: the provider's `limit` and `requested`."""
    overflowed: bool
    """An overflow was met in this call; a second one goes to the caller."""
    settled: bool
    """A compaction of this call came to nothing: none follows but on overflow."""
    given_up: str
    """Why the summariser is not asked again in this call, but on overflow: it gave nothing."""
    instructions: str
    """What the person who asked for a compaction wants kept."""
    forgot: bool
    """Something was forgotten in this call: what the user said of it is struck at its end."""
    consolidate: bool
    """`flush_memory` found fresh ledger entries and the gap has passed."""
    memory_version: str
    """Version of MEMORY.md that the call's requests carry; empty where there is none."""
    to_tell: list[dict[str, Any]]
    """Stream events that report what the last step wrote; the next node tells them."""
    settings: dict[str, Any]
    """What forks ask of the run's settings, for when no run is there: a person edits the state."""
    requests: list[dict[str, Any]]
    """Each request of the call: `kind`; `input`, `cached`, `output` tokens; `milliseconds`."""


class Meter(TypedDict, total=False):
    """The running token count, so that deciding costs only the new messages."""

    through: str
    """Id of the newest message that is counted."""
    count: int
    """How many messages are counted."""
    tokens: int
    """Estimate of the counted messages."""
    reported: int
    """The provider's figure for the whole request through that message; 0 where none holds."""
    fixed_tokens: int
    """`Call.fixed_tokens` when `reported` was measured."""
    scale: int
    """Per cent: what the provider reported of our estimate of the same request."""


class Injected(TypedDict):
    """What of MEMORY.md the requests carry; it stays so, that their prefix is kept in caches."""

    text: str
    """What stands after the system message."""
    keys: list[str]
    """Of the facts that it and `later` say."""
    edited: str
    """The newest version that a person had written by then."""
    later: list[dict[str, str]]
    """What came since: its `text`, and the id of the message that it stands `before`."""


def nothing_injected() -> Injected:
    """Return what requests carry of no memory."""
    return Injected(text="", keys=[], edited="", later=[])


@dataclass(frozen=True, kw_only=True)
class Input:
    """What a caller sends."""

    messages: Annotated[Sequence[AnyMessage], add_messages] = ()
    """New messages: at least one from the user, unless only compaction is asked for."""
    request: Annotated[dict[str, Any] | None, EphemeralValue] = None
    """`{"compact": true, "instructions": "..."}` or `{"consolidate": true}`: only that."""


@dataclass(frozen=True, kw_only=True)
class State(Input):
    """What a thread keeps."""

    owner: str = ""
    """Whose thread it is; written once."""
    phase: Phase = "answer"
    """What this call is for; `open_call` writes it in every call."""
    call: Call = field(default_factory=Call)
    """The call's own counters."""
    meter: Meter = field(default_factory=Meter)
    """The running token count."""
    named_windows: dict[str, int] = field(default_factory=dict[str, int])
    """Context windows, in tokens, that providers named when they refused; by model."""
    flushed_through: str = ""
    """Id of the newest message that a flush has read, or that a record hands over to one."""
    unflushed: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What left the history before a flush could read it: in the transcript `first` and `count`.

    `messages`, where no transcript has them.
    """
    archived: dict[str, Any] = field(default_factory=dict[str, Any])
    """`through`: id of the newest message in the transcript; `count`: how many it holds.

    `anchors`: the numbers of messages whose next one in the transcript a compaction took away.
    """
    compaction: dict[str, Any] = field(default_factory=dict[str, Any])
    """The receipt of the last attempt to compact, without its long lists, which its record has."""
    forgotten: str = ""
    """Names what the user had forgotten when the history was last held against it."""
    injected: Injected = field(default_factory=nothing_injected)
    """What of MEMORY.md the requests carry."""
    recalled: Annotated[dict[str, Any], UntrackedValue] = field(default_factory=dict[str, Any])
    """MEMORY.md as this call read it: `version`, `text`. Never in a checkpoint."""


class Update(TypedDict, total=False):
    """What a node may write: the channels of `State`."""

    messages: Sequence[BaseMessage | dict[str, Any]]
    request: dict[str, Any] | None
    owner: str
    phase: Phase
    call: Call
    meter: Meter
    named_windows: dict[str, int]
    flushed_through: str
    unflushed: list[dict[str, Any]]
    archived: dict[str, Any]
    compaction: dict[str, Any]
    forgotten: str
    injected: Injected
    recalled: dict[str, Any]


class Output(TypedDict):
    """What a call returns."""

    messages: Annotated[Sequence[AnyMessage], add_messages]
