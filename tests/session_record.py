"""What a session must have kept: each message in order, each user's word, each result whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langgraph.store.base import BaseStore

from everlong.nodes.transcript import call_ids, is_summary
from everlong.stores import transcripts
from observed import Observed


@dataclass
class Record:
    """The messages of one branch of a session, as they came."""

    order: list[str] = field(default_factory=list[str])
    """Ids of all messages."""
    said: dict[str, str] = field(default_factory=dict[str, str])
    """What the user said, by id."""
    pinned: dict[str, str] = field(default_factory=dict[str, str])
    window: int = 0
    """The model's window, as far as the branch can know."""

    def copy(self) -> "Record":
        return replace(self, order=list(self.order), said=dict(self.said), pinned=dict(self.pinned))

    def follow(self, call: Observed) -> None:
        """Add what came in a call, each message after the one that it stood behind."""
        for mode, what in call.steps:
            if mode == "values":
                self._add(what.get("messages", []))
        self._add(call.messages)

    def _add(self, messages: Sequence[BaseMessage]) -> None:
        before = None
        for message in messages:
            if is_summary(message) or isinstance(message, SystemMessage):
                continue
            ident = str(message.id)
            if ident not in self.order:
                at = self.order.index(before) + 1 if before in self.order else len(self.order)
                self.order.insert(at, ident)
            before = ident


async def check_kept(
    record: Record,
    state: Mapping[str, Any],
    store: BaseStore,
    *,
    user_id: str,
    thread_id: str,
    results: Mapping[str, str],
    complete: bool,
    forked: bool,
) -> None:
    """Raise AssertionError unless the transcript and the state together hold the whole session.

    `complete`: the last call came to its end, so nothing is missing from the transcript. `forked`:
    messages of other branches may stand between.
    """
    entries = await transcripts.read(store, user_id, thread_id)
    ids = [entry.message_id for entry in entries]
    twice = sorted({one for one in ids if ids.count(one) > 1})
    assert not twice, f"each message once in the transcript; got {twice} twice in {ids}"
    own = [one for one in ids if one in set(record.order)] if forked else ids
    expected = record.order if complete else record.order[: len(own)]
    assert own == expected, f"the transcript in order: {expected}; got {own}"
    whole = {
        entry.message_id: await transcripts.full_text(store, user_id, entry) for entry in entries
    }
    kept = {str(each.id): each for each in state.get("messages", [])}
    for ident, text in record.said.items():
        in_state = ident in kept and kept[ident].text == text
        assert in_state or whole.get(ident) == text, f"user message {ident} word for word"
    given = {text.partition(":")[0] + ":": text for text in whole.values()}
    found = {begin: given.get(begin) for begin in results if begin in given}
    messages = state.get("messages", [])
    is_open = bool(messages) and bool(call_ids(messages[-1]))  # they are still to be closed
    all_there = complete and not forked and not is_open
    wanted = dict(results) if all_there else {one: results[one] for one in found}
    assert found == wanted, (
        f"each result whole; got {[(k, len(v or '')) for k, v in found.items()]}"
    )


def check_pins(record: Record, call: Observed) -> None:
    """Raise AssertionError unless each request holds what is pinned, word for word."""
    for request in call.requests:
        users = {each.id: each.text for each in request if isinstance(each, HumanMessage)}
        for ident, text in record.pinned.items():
            assert users.get(ident) == text, f"pinned {ident} in each request; got {[*users]}"
