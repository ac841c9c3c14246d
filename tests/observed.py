"""What one call of a conversation did, as seen from outside: what the invariants are held against.

Models and stores of tests report to the call that is running in their context, so that calls which
run at the same time are told apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
)

from everlong.nodes.transcript import is_summary

REFERENCE = "__memory__"


@dataclass
class Exchange:
    """One request to a scripted model, and what came of it."""

    kind: str
    """`answer`, `summary`, `flush` or `consolidation`."""
    request: Sequence[BaseMessage]
    answer: object = None
    """A message, an error, seconds that it hung, or None where the call ended before."""

    @property
    def text(self) -> str:
        """What was answered."""
        if isinstance(self.answer, AIMessage):
            return self.answer.text.strip()
        return self.answer.strip() if isinstance(self.answer, str) else ""


@dataclass(kw_only=True)
class Observed:
    """One call."""

    user_id: str = "kim"
    requests: list[Sequence[BaseMessage]] = field(default_factory=list[Sequence[BaseMessage]])
    """What the user's model was sent."""
    answers: list[str] = field(default_factory=list[str])
    """What it said."""
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    """Every request to a scripted model, the inner ones too."""
    chunks: list[tuple[BaseMessage, Mapping[str, Any]]] = field(
        default_factory=list[tuple[BaseMessage, Mapping[str, Any]]]
    )
    """Stream mode `messages`."""
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Stream mode `custom`."""
    steps: list[tuple[str, Mapping[str, Any]]] = field(
        default_factory=list[tuple[str, Mapping[str, Any]]]
    )
    """Stream modes `updates` and `values`, in order: the mode and what came."""
    places: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])
    """Namespaces of the store that were read or written."""
    written: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    """Keys and values that were put in the store."""
    previewed: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Whole texts by path, of user messages that are sent as previews."""
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The state afterwards."""
    error: BaseException | None = None
    """What the call raised."""

    @property
    def messages(self) -> Sequence[BaseMessage]:
        """The history afterwards."""
        return self.values.get("messages", [])

    @property
    def was_let_in(self) -> bool:
        """Whether the input got into the thread."""
        return any(mode == "values" for mode, _ in self.steps)

    @property
    def newest(self) -> HumanMessage | None:
        """The newest user message when the call began; blank ones are nobody's question."""
        first = next((what for mode, what in self.steps if mode == "values"), {})
        asked = [message for message in first.get("messages", []) if is_spoken(message)]
        return asked[-1] if asked else None

    def forget_stream(self) -> None:
        """Give back the room that each step's whole state takes."""
        self.steps.clear()
        self.chunks.clear()
        self.values = {}

    def of_kind(self, kind: str) -> list[Exchange]:
        """Return the requests of one kind."""
        return [one for one in self.exchanges if one.kind == kind]


CURRENT: ContextVar[Observed | None] = ContextVar("the call that is running", default=None)


def is_spoken(message: object) -> bool:
    """Tell a user's message from a summary, injected material and an empty one."""
    if not isinstance(message, HumanMessage) or is_summary(message) or message.name == REFERENCE:
        return False
    return bool(message.text.strip() if isinstance(message.content, str) else message.content)


def noted(exchange: Exchange) -> Exchange:
    """Add an exchange to the call that is running, if one is."""
    if (call := CURRENT.get()) is not None:
        call.exchanges.append(exchange)
    return exchange


class RecordingStore(BaseStore):
    """Passes everything on to another store, and tells the running call what it touched."""

    def __init__(self, inner: BaseStore) -> None:
        self.inner = inner

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        _note(given)
        return self.inner.batch(given)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        given = list(ops)
        _note(given)
        return await self.inner.abatch(given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _note(ops: Sequence[Op]) -> None:
    call = CURRENT.get()
    if call is None:
        return
    for op in ops:
        call.places.add(_place(op))
        if isinstance(op, PutOp):
            call.written.append((op.key, op.value))


def _place(op: Op) -> tuple[str, ...]:
    if isinstance(op, GetOp | PutOp):
        return op.namespace
    if isinstance(op, SearchOp):
        return op.namespace_prefix
    assert isinstance(op, ListNamespacesOp)
    prefixes = [one.path for one in op.match_conditions or () if one.match_type == "prefix"]
    return tuple(map(str, prefixes[0])) if prefixes else ()
