"""What of an input is new to a thread, and what of a result a call has brought.

LangGraph adds messages by their ids: one with a known id takes the place of the one it has. So a
client may send a whole history again, and a parent's state comes whole each time. What a compaction
has taken out is not known by its id any more, and must not come back.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, cast

from langchain_core.messages import (
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    convert_to_messages,
)
from langgraph.store.base import BaseStore

from everlong.nodes.pruning import EVICTED, SHORTENED
from everlong.nodes.storable import without_faults
from everlong.stores import compactions
from everlong.stores.compactions import MESSAGE_IDS
from everlong.stores.files import evicted_path

MESSAGES = "messages"


def fields_in(given: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the fields of these names that a mapping or an object has."""
    if isinstance(given, Mapping):
        known = cast("Mapping[str, Any]", given)
        return {name: known[name] for name in names if name in known}
    return {name: getattr(given, name) for name in names if hasattr(given, name)}


def messages_in(given: Any) -> list[Any]:
    """Return the messages of an input, as they were given."""
    found = fields_in(given, (MESSAGES,)).get(MESSAGES) if isinstance(given, Mapping) else None
    return cast("list[Any]", found) if isinstance(found, list) else []


def has_history(given: Any) -> bool:
    """Tell an input that may hold what the thread has already: more than one message with an id."""
    return sum(bool(_id_of(one)) for one in messages_in(given)) > 1


async def replaced(
    store: BaseStore | None, user_id: str, thread_id: str, compaction: Mapping[str, Any]
) -> set[str]:
    """Return the ids of what compactions have taken out of a history, up to its last one.

    Of a thread that was forked, what came later on another branch does not count.
    """
    if store is None or not thread_id or not compaction:
        return set()
    receipts = await compactions.read(store, user_id, thread_id)
    own = [(one["id"], one["at"]) for one in receipts]
    last = (compaction.get("id"), compaction.get("at"))
    until = own.index(last) + 1 if last in own else len(own)
    done = [
        one
        for one, name in zip(receipts[:until], own[:until], strict=True)
        if one["outcome"] == "done" or (name == last and compaction.get("outcome") == "done")
    ]
    return {ident for one in done for ident in one.get(MESSAGE_IDS, ())}


def new_from_client(given: Any, kept: Mapping[str, Any], gone: Collection[str]) -> Any:
    """Return an input without what the thread has, or had before a compaction (`gone`).

    What removes messages is an edit, and stays as it is.
    """
    known = _by_id(kept)

    def is_new(_: int, message: BaseMessage) -> bool:
        held = known.get(message.id)
        return message.id not in gone if held is None else _says_more(message, held)

    return _only(given, is_new)


def new_from_parent(given: Any, kept: Mapping[str, Any]) -> Any:
    """Return a parent's messages without what the agent was given before.

    That is what stands before the newest message that it was given then; others may have spoken
    after that. An older one counts where its text is another now, or where it is a system message.
    """
    known = _by_id(kept)
    ids = [_id_of(one) for one in messages_in(given)]
    before = _given(kept, ids)
    last = max((place for place, ident in enumerate(ids) if ident in before), default=-1)

    def is_new(place: int, message: BaseMessage) -> bool:
        held = known.get(message.id)
        if held is not None:
            return _says_more(message, held)
        return place > last or isinstance(message, SystemMessage)

    return _only(given, is_new)


def brought(result: Any, given: Any) -> Any:
    """Return the result of a call inside another graph: only the messages that it brought.

    The others are the parent's own, or a summary that is none of its business.
    """
    messages: list[BaseMessage] = fields_in(result, (MESSAGES,)).get(MESSAGES, [])
    sent = {_id_of(one) for one in messages_in(given)} - {None}
    last = max((i for i, one in enumerate(messages) if one.id in sent), default=None)
    if last is None:  # nothing that was sent is left
        last = max((i for i, one in enumerate(messages[:-1]) if one.type == "human"), default=-1)
    return result | {MESSAGES: messages[last + 1 :]} if messages else result


def _given(kept: Mapping[str, Any], ids: Collection[str | None]) -> set[str | None]:
    """Return what the agent was given last; where the parent has dropped that, what is before it.

    What stands behind it in the agent's history are its own words: others may have spoken before
    those. A thread of an older release does not say what was last: then it is all that it has.
    """
    call: Mapping[str, Any] = kept.get("call") or {}
    last, own = call.get("last"), [one.id for one in kept.get(MESSAGES, ())]
    if not last:
        return set(own)
    if last in ids:
        return {last}
    return set(own[: own.index(last) + 1]) if last in own else set()


def _says_more(message: BaseMessage, held: BaseMessage) -> bool:
    """Tell whether a message is another now than the one that is held under its id.

    A preview is not: it stands for the whole text, unless that is a user's, and was edited.
    """
    given = without_faults(message)
    if {EVICTED, SHORTENED} & set(held.additional_kwargs):
        return isinstance(held, HumanMessage) and _is_edit(given, held)
    calls = getattr(given, "tool_calls", None)
    return given.content != held.content or bool(calls and calls != getattr(held, "tool_calls", ()))


def _is_edit(message: BaseMessage, preview: BaseMessage) -> bool:
    record: Any = preview.additional_kwargs.get(EVICTED)
    path = str(cast("Mapping[str, Any]", record).get("path")) if record else ""
    text = message.content
    if not path or not isinstance(text, str) or path in text:
        return False
    return evicted_path(text) != path


def _by_id(kept: Mapping[str, Any]) -> dict[str | None, BaseMessage]:
    return {one.id: one for one in kept.get(MESSAGES, ())}


def _only(given: Any, is_new: Callable[[int, BaseMessage], bool]) -> Any:
    """Return an input with its messages that are new; with all of them where it removes some."""
    messages = convert_to_messages(messages_in(given))
    if any(isinstance(one, RemoveMessage) for one in messages):
        return given
    new = [one for place, one in enumerate(messages) if is_new(place, one)]
    return dict(cast("Mapping[str, Any]", given)) | {MESSAGES: new}


def _id_of(message: Any) -> Any:
    return fields_in(message, ("id",)).get("id")
