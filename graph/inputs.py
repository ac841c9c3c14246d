"""What may not be in a thread: ids that nothing can be kept under, what is no message, pins."""

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import add_messages
from langgraph.types import Command

from everlong.nodes.errors import InvalidInputError
from everlong.nodes.pins import most_pinned_tokens, pinned_tokens, refuse_too_many
from everlong.nodes.transcript import is_pinned
from everlong.stores.namespaces import label
from everlong.stores.text import clean_text

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
    """Refuse what LangGraph would store as input and then fail to add to the state."""
    values: Any = given.update if isinstance(given, Command) else given
    if not isinstance(values, Mapping):
        return
    fields = cast("Mapping[str, Any]", values)
    wish = fields.get("request")
    if wish is not None and not isinstance(wish, Mapping):
        msg = f"`request`: expected an object such as `{{'compact': True}}`; got {wish!r}"
        raise InvalidInputError(msg)
    messages = fields.get("messages", [])
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
