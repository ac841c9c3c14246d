"""What stands before each run: what may not be in a thread never gets there."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, StateUpdate

from everlong.graph.callers import (
    Caller,
    caller_inside,
    held_by,
    once_each,
    over_defaults,
    own_input,
    runtime_of,
    surrounding,
    undivided,
)
from everlong.graph.exchange import (
    brought,
    has_history,
    new_from_client,
    new_from_parent,
    replaced,
)
from everlong.graph.inputs import (
    refuse_no_value,
    refuse_too_many_pins,
    refuse_unreadable,
    storable,
    thread_of,
)
from everlong.graph.origins import refuse_gone
from everlong.graph.ownership import (
    is_forgotten,
    owner_of,
    refuse_other_owner,
    refuse_stranger,
)
from everlong.graph.turns import alone, turn
from everlong.nodes.context import Context, context_of, user_of
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.forgetting import forgotten_user
from everlong.nodes.internals import CHECKPOINTER, RUNTIME, Saver, whole
from everlong.nodes.models import load_all
from everlong.nodes.state import Input, Output, State
from everlong.stores.namespaces import OWNER


class GuardedGraph(CompiledStateGraph[State, Context, Input, Output]):
    """The compiled graph; a run that may not be is refused before its input is in the thread.

    A node is too late: by then the input has changed messages and dropped a pending approval, and
    what is no message has made the thread unreadable until the next run.
    """

    def __init__(self, *, defaults: Mapping[str, Any] | None = None, **given: Any) -> None:
        super().__init__(**given)
        self.defaults = defaults or {}
        """Settings of a run whose context does not say otherwise."""

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 - the graph's own name
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> Any:
        """Run a call; inside another graph, return only the messages that it brought.

        Raises:
            InvalidInputError: as `astream`.
        """
        base: Any = super()
        try:
            result = await base.ainvoke(input, config, **options)
        except GraphInterrupt as pause:  # inside another graph: a call and its node say it both
            raise GraphInterrupt(once_each(pause)) from None
        full = whole(config)
        return brought(result, own_input(input, full)) if surrounding(full) else result

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
                hold, another user's thread, or a checkpoint that is not there.
            ModelUnavailableError: no model can be made of a name in the settings.
            ThreadBusyError: another run holds the thread for too long.
        """
        caller = self._caller(config, context)
        if caller.is_inside:
            input = own_input(input, caller.config)  # noqa: A001 - the graph's own name
        refuse_unreadable(input)
        async with turn(caller, thread_of(caller.config)) as has_begun, undivided(caller):
            given = None if has_begun else input
            user_id, kept = await self._admitted(caller, is_long=has_history(given))
            if not caller.is_inside:
                await refuse_gone(caller.saver, caller.config)
            refuse_other_owner(given if isinstance(given, Command) else None, user_id)
            given = await _new_in(given, kept, caller, user_id)
            marks = _marks(caller, user_id)
            marked = merge_configs(config, marks) if marks else config
            running = super().astream(given, marked, context=caller.runtime.context, **options)
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
            InvalidInputError: more would be pinned than may be, or the thread made another's.
            ThreadBusyError: a run holds the thread for too long.
        """
        full = merge_configs(self.config, config)
        async with alone(self.checkpointer, thread_of(full)):
            await refuse_gone(cast("object", self.checkpointer), full)
            snapshot = await self.aget_state(config)
            settings = snapshot.values.get("call", {}).get("settings", {})
            for update in (update for step in supersteps for update in step):
                for name, value in (update.values or {}).items():
                    refuse_no_value(name, value)
                refuse_other_owner(update.values, str(snapshot.values.get("owner", "")))
                refuse_too_many_pins(snapshot.values, settings, update.values)
            runtime = Runtime(context=Context(**settings), store=self.store)
            told: RunnableConfig = {"configurable": {RUNTIME: runtime}}
            return await super().abulk_update_state(merge_configs(config, told), supersteps)

    def _own_checkpoint_config(self, config: RunnableConfig) -> RunnableConfig:
        """Keep one history per thread inside another graph, as `checkpointer=True` does.

        Without one of its own it would sum up the parent's again in every call.
        """
        if self.checkpointer is None and CHECKPOINTER in config.get("configurable", {}):
            own = self.copy({"checkpointer": True})
            return own._own_checkpoint_config(config)  # noqa: SLF001 - our own class
        return super()._own_checkpoint_config(config)

    def _caller(self, config: RunnableConfig | None, context: Any) -> Caller:
        """Return who calls, from where, and with which settings."""
        full = whole(self.config, config)
        own = cast("Saver | bool | None", self.checkpointer)
        if parent := surrounding(full):
            return caller_inside(full, parent, context, checkpointer=own, defaults=self.defaults)
        given = over_defaults(self.defaults, context)
        saver = own if isinstance(own, BaseCheckpointSaver) else None
        runtime = runtime_of(full, given).override(store=self.store)
        return Caller(config=full, runtime=runtime, saver=saver, is_inside=False)

    async def _admitted(self, caller: Caller, *, is_long: bool) -> tuple[str, Mapping[str, Any]]:
        """Return whose the run is, and what the thread holds where that is to be looked at.

        Nobody's, where nothing is kept of it: then `open_call` refuses.
        """
        thread_id = thread_of(caller.config)
        if thread_id is None or caller.saver is None:
            return "", {}
        user_id = storable("user_id", user_of(caller.runtime))
        owner, kept, is_gone = await asyncio.gather(
            owner_of(caller, thread_id),
            self._kept(caller, is_long=is_long),
            is_forgotten(caller.runtime.store, user_id),
        )
        if is_gone:
            raise InvalidInputError(forgotten_user(user_id))
        for one in (owner, str(kept.get("owner", ""))):
            refuse_stranger(user_id, thread_id, one)
        await load_all(context_of(caller.runtime))
        return user_id, kept

    async def _kept(self, caller: Caller, *, is_long: bool) -> Mapping[str, Any]:
        """Return what the thread holds; from outside only for a long input, since that costs."""
        if caller.is_inside:
            return await held_by(self, caller.config)
        return (await self.aget_state(caller.config)).values if is_long else {}


class GuardedBuilder(StateGraph[State, Context, Input, Output]):
    """A builder whose compiled graphs are guarded."""

    def __init__(
        self, *args: Any, defaults: Mapping[str, Any] | None = None, **options: Any
    ) -> None:
        super().__init__(*args, **options)
        self.defaults = defaults or {}

    def compile(self, *args: Any, **options: Any) -> GuardedGraph:
        """Compile, as the base class does."""
        compiled = super().compile(*args, **options)
        given = {k: v for k, v in vars(compiled).items() if k != "__orig_class__"}
        return GuardedGraph(defaults=self.defaults, **given)


def _marks(caller: Caller, user_id: str) -> RunnableConfig:
    """Return what a run's configuration gets: whose it is, and inside another graph its place."""
    found: RunnableConfig = {"metadata": {OWNER: user_id}} if user_id else {}
    if caller.is_inside:
        found["configurable"] = caller.config.get("configurable", {})
    return found


async def _new_in(given: Any, kept: Mapping[str, Any], caller: Caller, user_id: str) -> Any:
    """Return an input without what the thread has already, where the input may be that long."""
    if not kept or not has_history(given):
        return given
    if caller.is_inside:
        return new_from_parent(given, kept)
    thread_id = str(thread_of(caller.config))
    gone = await replaced(caller.runtime.store, user_id, thread_id, kept.get("compaction") or {})
    return new_from_client(given, kept, gone)
