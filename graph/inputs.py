"""What may not be in a thread: ids that nothing can be kept under, what is no message, pins."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import add_messages
from langgraph.types import Command

from everlong.nodes.errors import InvalidInputError
from everlong.nodes.pins import most_pinned_tokens, pinned_tokens, refuse_too_many
from everlong.nodes.state import Input, State
from everlong.nodes.transcript import is_pinned
from everlong.stores.namespaces import label
from everlong.stores.text import clean_text

INPUT = tuple(one.name for one in fields(Input))
NEW = State()
KINDS: Mapping[str, type[Any]] = {
    name: cast("type[Any]", type(value)) for name, value in vars(NEW).items() if name not in INPUT
}
"""What each of our other channels holds."""
PAIR = 2
NO_MESSAGE = (AttributeError, KeyError, NotImplementedError, TypeError, ValueError)
"""What LangChain raises where something cannot be read as a message."""


def thread_of(config: RunnableConfig) -> str | None:
    """Return which thread a run is of; None where it is of none.

    Raises:
        InvalidInputError: its id is empty, too long, or holds what no store can hold.
    """
    thread_id = config.get("configurable", {}).get("thread_id")
    return None if thread_id is None else storable("thread_id", str(thread_id))


def storable(name: str, ident: str) -> str:
    """Refuse an id that checkpoints or the user's records could not be kept under."""
    if ident != clean_text(ident):
        msg = (
            f"`{name}`: expected text without NUL and lone surrogates; got {ident!r}. "
            "Choose another id."
        )
        raise InvalidInputError(msg)
    try:
        label(ident)
    except ValueError as error:
        msg = f"`{name}`: {error}"
        raise InvalidInputError(msg) from error
    return ident


def refuse_unreadable(given: Any) -> None:
    """Refuse what LangGraph would store as input and then fail to add to the state.

    Raises:
        InvalidInputError: it is no message, no request, or no value of its channel.
    """
    for name, value in _pairs_in(given):
        refuse_no_value(name, value)
        if name == "messages" and isinstance(given, Command) and cast("Any", given).resume:
            msg = (
                "`messages`: expected none beside `resume`, which goes on in the middle of a call; "
                f"got {value!r}. Send them when the call has ended."
            )
            raise InvalidInputError(msg)


def refuse_no_value(name: str, value: Any) -> None:
    """Refuse what a channel of ours cannot hold.

    Raises:
        InvalidInputError: as `refuse_unreadable`.
    """
    if name == "messages":
        _refuse_no_messages(value)
    elif name == "request" and not (value is None or isinstance(value, Mapping)):
        msg = f"`request`: expected an object such as `{{'compact': True}}`; got {value!r}"
        raise InvalidInputError(msg)
    elif name in KINDS and not isinstance(value, KINDS[name]):
        msg = f"`{name}`: expected a {KINDS[name].__name__}, as the thread holds it; got {value!r}"
        raise InvalidInputError(msg)


def _pairs_in(given: Any) -> Sequence[tuple[str, Any]]:
    """Return what an input, or a command, writes to which channels."""
    if not isinstance(given, Command):
        known = cast("dict[str, Any]", given if isinstance(given, Mapping) else {})
        return [(name, known[name]) for name in INPUT if name in known]
    update: Any = cast("Any", given).update
    if isinstance(update, Mapping):
        return list(cast("Mapping[str, Any]", update).items())
    pairs = list(cast("Sequence[Any]", update)) if isinstance(update, list | tuple) else []
    names = [one[0] for one in pairs if _is_pair(one)]
    alone = [name for name in names if name != "messages"]
    if len(names) < len(pairs) or len(set(alone)) < len(alone):
        msg = (
            "`update`: expected an object, or pairs of a channel and a value, each channel once; "
            f"got {update!r}"
        )
        raise InvalidInputError(msg)
    return [(one[0], one[1]) for one in pairs]


def _is_pair(given: Any) -> bool:
    pair = cast("Sequence[Any]", given) if isinstance(given, list | tuple) else ()
    return len(pair) == PAIR and isinstance(pair[0], str)


def _refuse_no_messages(messages: Any) -> None:
    try:
        convert_to_messages(
            cast("list[Any]", messages if isinstance(messages, list) else [messages])
        )
    except NO_MESSAGE as error:
        msg = f"`messages`: expected messages with `role` and `content`; got: {error}"
        raise InvalidInputError(msg) from error


def refuse_too_many_pins(
    values: Mapping[str, Any], settings: Mapping[str, Any], update: Any
) -> None:
    """Refuse an edit that pins more than may be; what a new thread begins with, `open_call` sees.

    The window is that of the thread's last call.
    """
    given = cast("Mapping[str, Any]", update).get("messages") if isinstance(update, Mapping) else ()
    edited = convert_to_messages(cast("list[Any]", given)) if isinstance(given, list) else []
    if settings and any(is_pinned(message) for message in edited):
        before: list[Any] = list(values.get("messages", ()))
        after = cast("list[BaseMessage]", add_messages(before, list[Any](edited)))
        window = settings.get("compaction", {}).get("window_tokens")
        refuse_too_many(pinned_tokens(after), most_pinned_tokens(window))
