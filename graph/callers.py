"""Who calls: from outside, or from another graph; with which settings, and what of it is ours."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.pregel import Pregel
from langgraph.runtime import Runtime, ServerInfo
from langgraph.types import Command, Interrupt
from pydantic import ValidationError

from everlong.graph.exchange import MESSAGES, fields_in
from everlong.nodes.context import Context, context_within
from everlong.nodes.errors import InvalidInputError, ThreadBusyError
from everlong.nodes.internals import (
    CHECKPOINTER,
    RUNTIME,
    TASK_ID,
    Saver,
    path_in,
    placed,
    replayed_before,
    step_around,
    value_in,
)
from everlong.nodes.sections import given_in
from everlong.stores.settings import settings

WISHES = frozenset({"compact", "consolidate"})
"""What our `request` may ask for."""
At = tuple[str | None, str]
_at_it: dict[tuple[Any, ...], list[At]] = {}
"""Which step and task around us goes on with a history of ours now, once for each call."""
LOOK_SECONDS = 0.02
"""Between two looks whether another run has let go of a history."""


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Who begins a run, and where it is kept."""

    config: RunnableConfig
    """Whole: with what the graph has bound, and what surrounds the run."""
    runtime: Runtime[Any]
    """What the nodes will see: context, store, and whom a server has authenticated."""
    saver: Saver | None
    """What keeps the run."""
    is_inside: bool
    """Another graph calls: this one is a node of it, or a node calls it."""


def surrounding(config: RunnableConfig) -> Mapping[str, Any] | None:
    """Return what the graph around a run has configured; None where there is none.

    A call with a `thread_id` of its own is a run of its own, also in a node of another graph.
    """
    given = config.get("configurable", {})
    return given if TASK_ID in given else None


def runtime_of(config: RunnableConfig, context: Any) -> Runtime[Any]:
    """Return what the nodes will see of the caller; LangGraph looks for a user in that place."""
    given = config.get("configurable", {})
    user = given.get("langgraph_auth_user")
    server = ServerInfo(
        assistant_id=str(given.get("assistant_id") or ""),
        graph_id=str(given.get("graph_id") or ""),
        user=user if hasattr(user, "identity") else None,
    )
    return Runtime(context=context, server_info=server)


def over_defaults(defaults: Mapping[str, Any], context: Any) -> Any:
    """Return the context that a caller from outside gives, over the graph's own settings.

    Raises:
        InvalidInputError: a field is unknown or out of range; the text names it.
    """
    if not defaults:
        return context
    if isinstance(context, Mapping):
        checked(cast("Mapping[str, Any]", context))
    return context_within(context, defaults)


def checked(settings: Context | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what was given of settings, when they are right.

    Raises:
        InvalidInputError: a field is unknown or out of range; the text names it.
    """
    if isinstance(settings, Context):
        return given_in(settings)
    try:
        Context(**(settings or {}))
    except ValidationError as error:
        raise InvalidInputError(str(error)) from error
    return dict(settings or {})


def caller_inside(
    config: RunnableConfig,
    parent: Mapping[str, Any],
    context: Any,
    *,
    checkpointer: object,
    defaults: Mapping[str, Any],
) -> Caller:
    """Return the caller of a run inside another graph: its saver, its store, its context."""
    found = parent.get(RUNTIME)
    around = cast("Runtime[Any]", found) if isinstance(found, Runtime) else Runtime[Any]()
    given: Any = around.context if context is None else context
    return Caller(
        config=placed(config),
        runtime=around.override(context=context_within(given, defaults)),
        saver=None if checkpointer is False else parent.get(CHECKPOINTER),
        is_inside=True,
    )


def own_input(given: Any, config: RunnableConfig) -> Any:
    """Return what is ours of a parent's state: its messages, and no `request` but one of ours."""
    if given is None or isinstance(given, Command):
        return cast("Any", given)
    found = fields_in(given, (MESSAGES, "request"))
    wish: Any = found.get("request")
    if not (isinstance(wish, Mapping) and WISHES & set(cast("Mapping[str, Any]", wish))):
        found.pop("request", None)
    if isinstance(messages := found.get(MESSAGES), list):
        found[MESSAGES] = _named(cast("list[Any]", messages), config)
    return found


def _named(messages: list[Any], config: RunnableConfig) -> list[Any]:
    """Return a parent's messages, those without an id named by their place in its history.

    A reducer that gives none, such as `operator.add`, would have them all new in each call.
    """
    if all(fields_in(one, ("id",)).get("id") for one in messages):
        return messages
    found: Any = value_in(config, MESSAGES)
    held = cast("list[Any]", found) if isinstance(found, list) else []
    start = len(held) - len(messages)
    if start < 0 or any(a is not b for a, b in zip(messages, held[start:], strict=True)):
        return messages  # they are the caller's own
    thread_id = config.get("configurable", {}).get("thread_id", "")
    return [
        one if one.id else one.model_copy(update={"id": _id_at(f"{thread_id}|{place}", one)})
        for place, one in enumerate(convert_to_messages(messages), start)
    ]


def _id_at(place: str, message: BaseMessage) -> str:
    return str(uuid5(NAMESPACE_OID, f"{place}|{message.type}|{message.content}"))


async def held_by(agent: Pregel[Any, Any, Any, Any], config: RunnableConfig) -> Mapping[str, Any]:
    """Return what an agent inside another graph has; where that is replayed, what it had then."""
    bound = replayed_before(config)
    if bound is None:
        return (await agent.aget_state(config)).values
    before: RunnableConfig = {"configurable": {"checkpoint_id": bound}}
    async for found in agent.aget_state_history(config, before=before, limit=1):
        return found.values
    return {}


@asynccontextmanager
async def undivided(caller: Caller) -> AsyncGenerator[None]:
    """Refuse a second task that would go on with a history of ours while a first one does.

    A task of another run waits: that may be one which was left early, and is about to end.

    Raises:
        InvalidInputError: another task of the surrounding graph's step is at it.
        ThreadBusyError: another run is at it for too long.
    """
    if not caller.is_inside or caller.saver is None:
        yield
        return
    given = caller.config.get("configurable", {})
    key = (id(caller.saver), given.get("thread_id"), path_in(caller.config))
    own = (step_around(caller.config), str(given.get("checkpoint_ns", "")))
    await _free(key, own)
    at_it = _at_it.setdefault(key, [])
    at_it.append(own)
    try:
        yield
    finally:
        at_it.remove(own)
        if not at_it:
            _at_it.pop(key, None)


async def _free(key: tuple[Any, ...], own: At) -> None:
    """Wait until no other run goes on with the history; refuse a neighbour of the same step."""
    _, thread_id, path = key
    seconds = settings().thread_wait_seconds
    try:
        async with asyncio.timeout(seconds):
            while others := [step for step, task in _at_it.get(key, ()) if task != own[1]]:
                if own[0] in others:
                    raise InvalidInputError(_two_at_once(thread_id, path))
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError as error:
        msg = (
            f"`thread_id`: expected {thread_id!r} to be free within {seconds:g} s; another run "
            f"still goes on with the history of the agent in `{path}`. Wait until that one ends, "
            "or cancel it; EVERLONG_THREAD_WAIT_SECONDS is how long a run waits."
        )
        raise ThreadBusyError(msg) from error


def _two_at_once(thread_id: Any, path: str) -> str:
    return (
        f"expected one call at a time of the agent in `{path}`, which keeps one history in "
        f"thread {thread_id!r}; got two. For workers side by side (`Send`), "
        "compile it with `checkpointer=False`: then each call stands by itself."
    )


def once_each(pause: GraphInterrupt) -> tuple[Interrupt, ...]:
    """Return what a pause asks, each question once."""
    asked: Sequence[Interrupt] = pause.args[0] if pause.args else ()
    return tuple({one.id: one for one in asked}.values())
