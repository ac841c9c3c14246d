"""What stands before each run: what may not be in a thread never gets there."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph._internal._constants import CONFIG_KEY_RUNTIME
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, ServerInfo
from langgraph.store.base import BaseStore
from langgraph.types import Command, StateUpdate

from everlong.nodes.context import Context, context_of, user_of
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.forgetting import forgotten_user
from everlong.nodes.models import load_all
from everlong.nodes.pins import most_pinned_tokens, pinned_tokens, refuse_too_many
from everlong.nodes.state import Input, Output, State
from everlong.nodes.transcript import is_pinned
from everlong.stores.namespaces import OWNER, label
from everlong.stores.text import clean_text
from everlong.stores.tombstones import user_is_marked

log = logging.getLogger("everlong.call")

Saver = BaseCheckpointSaver[Any]
NO_MESSAGE = (AttributeError, KeyError, NotImplementedError, TypeError, ValueError)
"""What LangChain raises where something cannot be read as a message."""


class GuardedGraph(CompiledStateGraph[State, Context, Input, Output]):
    """The compiled graph; a run that may not be is refused before its input is in the thread.

    A node is too late: by then the input has changed messages and dropped a pending approval, and
    what is no message has made the thread unreadable until the next run.
    """

    async def astream(
        self,
        input: Any,  # noqa: A002 - the graph's own name
        config: RunnableConfig | None = None,
        *,
        context: Any = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Check, then run and stream; `ainvoke` and `astream_events` come through here, too.

        Raises:
            InvalidInputError: no messages, no user, one who was forgotten, an id that no store can
                hold, or another user's thread.
            ModelUnavailableError: no model can be made of a name in the settings.
        """
        _refuse_unreadable(input)
        user_id = await self._refuse_stranger(merge_configs(self.config, config), context)
        marked = merge_configs(config, {"metadata": {OWNER: user_id}}) if user_id else config
        running = super().astream(input, marked, context=context, **options)
        async with aclosing(cast("AsyncGenerator[Any]", running)) as parts:
            async for part in parts:
                yield part

    def stream(self, *args: Any, **options: Any) -> Iterator[Any]:  # noqa: ARG002 - refused
        """Refuse: the nodes run asynchronously. `invoke` comes through here, too.

        Raises:
            InvalidInputError: always.
        """
        msg = (
            "`invoke` and `stream`: expected `ainvoke` or `astream`; this graph runs "
            "asynchronously. Write `asyncio.run(graph.ainvoke(...))` where no loop runs."
        )
        raise InvalidInputError(msg)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Edit the state; `aupdate_state` comes through here, too.

        What is next is decided by the settings of the call that is edited: LangGraph runs the
        forks, but gives them no runtime to ask.

        Raises:
            InvalidInputError: more would be pinned than may be.
        """
        snapshot = await self.aget_state(config)
        settings = snapshot.values.get("call", {}).get("settings", {})
        for update in (update for step in supersteps for update in step):
            _refuse_too_many_pins(snapshot.values, settings, update.values)
        runtime = Runtime(context=Context(**settings), store=self.store)
        told: RunnableConfig = {"configurable": {CONFIG_KEY_RUNTIME: runtime}}
        return await super().abulk_update_state(merge_configs(config, told), supersteps)

    async def _refuse_stranger(self, config: RunnableConfig, context: Any) -> str:
        """Return whose the run is; nobody's where this graph keeps nothing of it."""
        thread_id = thread_of(config)
        saver = cast("Saver | bool | None", self.checkpointer)
        if thread_id is None or not isinstance(saver, BaseCheckpointSaver):
            return ""  # nothing is kept, or a parent graph keeps it: then `open_call` refuses
        runtime = runtime_of(config, context)
        user_id = _storable("user_id", user_of(runtime))
        owner, is_forgotten = await asyncio.gather(
            _owner_of(saver, thread_id), _is_forgotten(self.store, user_id)
        )
        if is_forgotten:
            raise InvalidInputError(forgotten_user(user_id))
        if owner not in ("", user_id):
            msg = (
                f"`thread_id`: {thread_id!r} is not a thread of {user_id!r}. "
                "Use an id of your own; a new id begins a new thread."
            )
            raise InvalidInputError(msg)
        await load_all(context_of(runtime))
        return user_id


class GuardedBuilder(StateGraph[State, Context, Input, Output]):
    """A builder whose compiled graphs are guarded."""

    def compile(self, *args: Any, **options: Any) -> GuardedGraph:
        """Compile, as the base class does."""
        compiled = super().compile(*args, **options)
        return GuardedGraph(**{k: v for k, v in vars(compiled).items() if k != "__orig_class__"})


def thread_of(config: RunnableConfig) -> str | None:
    """Return which thread a run is of; None where it is of none.

    Raises:
        InvalidInputError: its id is empty, too long, or holds what no store can hold.
    """
    thread_id = config.get("configurable", {}).get("thread_id")
    return None if thread_id is None else _storable("thread_id", str(thread_id))


def _storable(name: str, ident: str) -> str:
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


def _refuse_unreadable(given: Any) -> None:
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


def _refuse_too_many_pins(
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


def runtime_of(config: RunnableConfig, context: Any) -> Runtime[Any]:
    """Return what the nodes will see of the caller; LangGraph looks for a user in that place."""
    user = config.get("configurable", {}).get("langgraph_auth_user")
    known = user if hasattr(user, "identity") else None
    return Runtime(
        context=context, server_info=ServerInfo(assistant_id="", graph_id="", user=known)
    )


async def _is_forgotten(store: Any, user_id: str) -> bool:
    """Tell whether nothing may be written for the user; a store that fails is no reason."""
    if not isinstance(store, BaseStore):
        return False
    try:
        return await user_is_marked(store, user_id)
    except Exception:
        log.exception("The store cannot be read; the call goes on without it")
        return False


async def _owner_of(saver: Saver, thread_id: str) -> str:
    """Return whose thread it is; our own saver tells without loading it."""
    tell = getattr(saver, "owner_of", None)
    if tell is not None:
        return await tell(thread_id)
    found = await saver.aget_tuple({"configurable": {"thread_id": thread_id}})
    return str(found.checkpoint["channel_values"].get("owner", "")) if found else ""
