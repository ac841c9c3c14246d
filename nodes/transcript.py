"""What may be cut from a list of messages, and what stays.

Cuts count non-system messages from 0: system messages are never cut.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from everlong.nodes.blocks import ties

SUMMARY_NAME = "__compaction_summary__"


@dataclass(frozen=True)
class Cut:
    """Where a transcript is cut."""

    plain: int
    """Index that the keep setting asks for."""
    safe: int
    """Index that parts no call from its results: the first message of the tail."""
    reason: str
    """Why the two differ, or that they don't."""


@dataclass(frozen=True)
class Split:
    """What a compaction replaces and what it keeps, each in the order of the transcript."""

    cut: Cut
    system: tuple[BaseMessage, ...]
    """System messages, wherever they stood."""
    replaced: tuple[BaseMessage, ...]
    """What the summary stands for; begins with the old summary, if there is one."""
    pinned: tuple[BaseMessage, ...]
    """Pinned messages before the tail, with their tool partners."""
    question: tuple[BaseMessage, ...]
    """The open question, where it lies before the tail; else nothing."""
    tail: tuple[BaseMessage, ...]

    @property
    def kept(self) -> tuple[BaseMessage, ...]:
        """What stays after the summary, in its new order."""
        return (*self.pinned, *self.question, *self.tail)

    @property
    def is_cut(self) -> bool:
        """Whether more than the old summary would be replaced."""
        return any(not is_summary(message) for message in self.replaced)


def is_summary(message: BaseMessage) -> bool:
    """Return whether `message` is the summary of a compaction."""
    return isinstance(message, HumanMessage) and message.name == SUMMARY_NAME


def adopted(message: BaseMessage) -> BaseMessage:
    """Take a summary of langchain's SummarizationMiddleware for one of ours: they begin alike."""
    is_theirs = message.additional_kwargs.get("lc_source") == "summarization"
    if not is_theirs or not isinstance(message, HumanMessage) or is_summary(message):
        return message
    return message.model_copy(update={"name": SUMMARY_NAME})


def is_pinned(message: BaseMessage) -> bool:
    """Return whether `message` survives every compaction word for word."""
    return bool(message.additional_kwargs.get("pin"))


def conversation(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages that count: all but the system's."""
    return [message for message in messages if not isinstance(message, SystemMessage)]


def call_ids(message: BaseMessage) -> list[str]:
    """Return the ids of the tool calls of `message`, valid or not, in order."""
    if not isinstance(message, AIMessage):
        return []
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    return [call["id"] for call in calls if call["id"]]


def open_question(messages: Sequence[BaseMessage]) -> int | None:
    """Return the index of the last user message where no answer follows it, else None.

    A message that calls tools is no answer, and a summary no user message.
    """
    for index in reversed(range(len(messages))):
        message = messages[index]
        if isinstance(message, HumanMessage) and not is_summary(message):
            return index
        if isinstance(message, AIMessage) and not calls_tools(message):
            return None
    return None


def calls_tools(message: AIMessage) -> bool:
    """Return whether `message` waits for a tool, be it for a call that can't be read."""
    return bool(message.tool_calls or message.invalid_tool_calls)


def batches(messages: Sequence[BaseMessage]) -> list[tuple[int, ...]]:
    """Return each assistant message that calls tools, with its results, as indices.

    A result belongs to the nearest earlier message with its call id: some models number the calls
    of each message anew.
    """
    groups: dict[int, list[int]] = {}
    callers: dict[str, int] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage) and calls_tools(message):
            groups[index] = [index]
            callers |= dict.fromkeys(call_ids(message), index)
        elif isinstance(message, ToolMessage) and message.tool_call_id in callers:
            groups[callers[message.tool_call_id]].append(index)
    return [tuple(group) for group in groups.values()]


def plain_cut(
    messages: Sequence[BaseMessage],
    *,
    keep_messages: int,
    budget: int,
    sizes: Sequence[int],
    counted: bool,
) -> int:
    """Return the index that the keep setting asks for: by messages where `budget` is 0.

    `counted`: the message count triggered, so no more than `keep_messages` stay.
    """
    by_messages = plain_cut_by_messages(messages, keep_messages)
    if not budget:
        return by_messages
    by_tokens = plain_cut_by_tokens(messages, budget, sizes)
    return max(by_messages, by_tokens) if counted else by_tokens


def plain_cut_by_messages(messages: Sequence[BaseMessage], keep: int) -> int:
    """Return the index from which the last `keep` messages stay."""
    return max(0, len(conversation(messages)) - keep)


def plain_cut_by_tokens(messages: Sequence[BaseMessage], budget: int, sizes: Sequence[int]) -> int:
    """Return the smallest index from which the messages fit `budget`; the last one stays anyway.

    `sizes` holds the tokens of each of `messages`, system messages included.
    """
    pairs = zip(messages, sizes, strict=True)
    counted = [size for message, size in pairs if not isinstance(message, SystemMessage)]
    cut = max(0, len(counted) - 1)
    used = sum(counted[cut:])
    while cut > 0 and used + counted[cut - 1] <= budget:
        cut -= 1
        used += counted[cut]
    return cut


def safe_cut(messages: Sequence[BaseMessage], plain: int) -> Cut:
    """Move `plain` back until it parts no message from what answers it."""
    talk = conversation(messages)
    spans = [(group, _end(talk, group)) for group in batches(talk)]
    spans += [(tie, tie[-1] + 1) for tie in ties(talk)]
    safe, reason = min(plain, len(talk)), "the cut parts no tool call from its result"
    while parted := next((group for group, end in spans if group[0] < safe < end), None):
        safe, reason = parted[0], _why_at(talk, parted)
    return Cut(plain, safe, reason)


def _why_at(talk: Sequence[BaseMessage], parted: tuple[int, ...]) -> str:
    call, results = parted[0], len(parted) - 1
    if not any(isinstance(talk[index], ToolMessage) for index in parted[1:]):
        if results:
            return f"what answers a server-side call at {call} comes later; both stay in the tail"
        return f"a tool call at {call} still runs; it stays in the tail"
    together = "the pair stays" if results == 1 else f"it and its {results} results stay"
    return f"a tool result's call is at {call}; {together} in the tail"


def _end(talk: Sequence[BaseMessage], group: tuple[int, ...]) -> int:
    """Return the index after a batch; the newest one lasts while a call of it is open."""
    is_newest = not any(isinstance(message, AIMessage) for message in talk[group[0] + 1 :])
    is_open = len(group) - 1 < len(call_ids(talk[group[0]]))
    return len(talk) + 1 if is_newest and is_open else max(group) + 1


def split(messages: Sequence[BaseMessage], plain_cut: int) -> Split:
    """Return what a compaction at `plain_cut` replaces and keeps."""
    talk = conversation(messages)
    cut = safe_cut(talk, plain_cut)
    asked = open_question(talk)
    question = _with_partners(talk, {asked} if asked is not None and asked < cut.safe else set())
    pinned = {index for index in pinned_indices(talk) - question if index < cut.safe}
    summaries = {index for index, message in enumerate(talk) if is_summary(message)}
    tail = set(range(cut.safe, len(talk))) - summaries
    return Split(
        cut=cut,
        system=tuple(message for message in messages if isinstance(message, SystemMessage)),
        replaced=_pick(talk, set(range(len(talk))) - pinned - question - tail),
        pinned=_pick(talk, pinned),
        question=_pick(talk, question),
        tail=_pick(talk, tail),
    )


def _pick(talk: Sequence[BaseMessage], indices: Collection[int]) -> tuple[BaseMessage, ...]:
    return tuple(talk[index] for index in sorted(indices))


def pinned_indices(messages: Sequence[BaseMessage]) -> set[int]:
    """Return the indices of pinned messages and of their tool partners."""
    pinned = {
        index
        for index, message in enumerate(messages)
        if is_pinned(message) and not is_summary(message)
    }
    return _with_partners(messages, pinned)


def _with_partners(messages: Sequence[BaseMessage], chosen: set[int]) -> set[int]:
    """Return the indices with those of calls and results that belong to them."""
    together: list[tuple[int, ...]] = [*batches(messages), *ties(messages)]
    while missing := [
        group for group in together if not chosen.isdisjoint(group) and not chosen.issuperset(group)
    ]:
        chosen = chosen.union(*missing)
    return chosen
