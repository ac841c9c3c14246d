"""Pin messages of a thread, so that they survive every compaction word for word (R19)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from everlong.graph.callers import runtime_of
from everlong.graph.inputs import thread_of
from everlong.graph.runtime import Agent, Compiled, Given
from everlong.nodes.context import Context, context_of, user_of
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.oversize import window_of
from everlong.nodes.pins import marked, most_pinned_tokens, pinned_tokens, refuse_too_many, unmarked
from everlong.nodes.transcript import is_pinned, is_summary


@dataclass(frozen=True, kw_only=True)
class Pins:
    """What is pinned in a thread."""

    messages: list[BaseMessage]
    """The messages that carry a pin, in their order."""
    tokens: int
    """Of these and of their tool partners, which stay with them."""
    most_tokens: int
    """A quarter of the window."""


async def pin(
    agent: Agent | Compiled, config: RunnableConfig, message_id: str, *, context: Given
) -> Pins:
    """Pin a message of the history, with its tool partners; return what is pinned then.

    Raises:
        InvalidInputError: there is no such message, it needs no pin, it would be too much, a call
            is under way, or the thread is another user's.
    """
    return await _marked(agent, config, message_id, context, wanted=True)


async def unpin(
    agent: Agent | Compiled, config: RunnableConfig, message_id: str, *, context: Given
) -> Pins:
    """Take the pin off a message; return what is pinned then.

    Raises:
        InvalidInputError: there is no such message, a call is under way, or the thread is another
            user's.
    """
    return await _marked(agent, config, message_id, context, wanted=False)


async def pinned(agent: Agent | Compiled, config: RunnableConfig, *, context: Given) -> Pins:
    """Return what is pinned in a thread.

    Raises:
        InvalidInputError: the thread is another user's.
    """
    graph = agent.graph if isinstance(agent, Agent) else agent
    values = (await _snapshot(graph, config, context)).values
    return _pins(values.get("messages", []), _most_tokens(config, context, values))


async def _marked(
    agent: Agent | Compiled,
    config: RunnableConfig,
    message_id: str,
    context: Given,
    *,
    wanted: bool,
) -> Pins:
    async with _alone(agent, config) as graph:
        snapshot = await _snapshot(graph, config, context)
        if snapshot.next:
            msg = (
                f"`thread_id`: expected a thread between two calls; one of {thread_of(config)!r} "
                f"stopped before {list(snapshot.next)}. Let it go on to its end, then pin."
            )
            raise InvalidInputError(msg)
        messages: list[BaseMessage] = list(snapshot.values.get("messages", []))
        most = _most_tokens(config, context, snapshot.values)
        index = _place_of(messages, message_id, wanted=wanted)
        if is_pinned(messages[index]) == wanted:
            return _pins(messages, most)
        messages[index] = marked(messages[index]) if wanted else unmarked(messages[index])
        if wanted:
            refuse_too_many(pinned_tokens(messages), most)
        # As the last node: nothing is left to run, and no fork is asked.
        await graph.aupdate_state(config, {"messages": [messages[index]]}, as_node="consolidate")
        return _pins(messages, most)


@asynccontextmanager
async def _alone(agent: Agent | Compiled, config: RunnableConfig) -> AsyncGenerator[Compiled]:
    """Hold the thread, where the agent has locks, so that no compaction comes in between."""
    if isinstance(agent, Agent):
        async with agent.alone(config) as graph:
            yield graph
    else:
        yield agent


async def _snapshot(graph: Compiled, config: RunnableConfig, context: Given) -> Any:
    """Return the thread's state, where it is this user's."""
    user_id, thread_id = user_of(runtime_of(config, context)), thread_of(config)
    snapshot = await graph.aget_state(config)
    if snapshot.values.get("owner", "") not in ("", user_id):
        msg = f"`thread_id`: {thread_id!r} is not a thread of {user_id!r}. Use one of your own."
        raise InvalidInputError(msg)
    return snapshot


def _most_tokens(config: RunnableConfig, context: Given, values: dict[str, Any]) -> int:
    settings: Context = context_of(runtime_of(config, context))
    return most_pinned_tokens(window_of(settings, values.get("named_windows", {})))


def _place_of(messages: list[BaseMessage], message_id: str, *, wanted: bool) -> int:
    """Return where the message is."""
    index = next((at for at, message in enumerate(messages) if message.id == message_id), None)
    if index is None:
        msg = (
            f"`message_id`: expected the id of a message of the history; got {message_id!r}, which "
            "is none. What a summary has replaced is in the transcript: say it again, and pin that."
        )
        raise InvalidInputError(msg)
    found = messages[index]
    if wanted and (is_summary(found) or isinstance(found, SystemMessage)):
        what = (
            "a system message, which is never" if not is_summary(found) else "a summary, which is"
        )
        msg = (
            f"`message_id`: expected a message of the conversation; got {message_id!r}, {what} "
            "replaced by compaction. Pin what was said."
        )
        raise InvalidInputError(msg)
    return index


def _pins(messages: list[BaseMessage], most_tokens: int) -> Pins:
    return Pins(
        messages=[message for message in messages if is_pinned(message)],
        tokens=pinned_tokens(messages),
        most_tokens=most_tokens,
    )
