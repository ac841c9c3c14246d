"""A deployed agent as a node of a graph here, through LangGraph's `RemoteGraph`.

`RemoteGraph` is a node by itself, but one that passes no context on, sends the whole history each
time, wants threads named by a UUID, and has no place for the answer to a question that it asked.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphInterrupt
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, StateSnapshot, interrupt
from langgraph_sdk.errors import NotFoundError
from pydantic import TypeAdapter

from everlong.graph.callers import checked, own_input
from everlong.graph.exchange import MESSAGES, brought, messages_in, new_from_parent
from everlong.nodes.context import Context, context_within, user_of
from everlong.nodes.errors import InvalidInputError, RemoteAgentError
from everlong.nodes.internals import STREAM
from everlong.nodes.sections import given_in

Headers = Callable[[Runtime[Any]], Mapping[str, str]]
Node = Callable[..., Awaitable[dict[str, Any]]]
MESSAGE_LIST: TypeAdapter[list[AnyMessage]] = TypeAdapter(list[AnyMessage])
TO_DO = {
    401: "Send the user's token with `headers`; perhaps it has expired",
    403: "Send the user's token with `headers`",
    404: "Look at the graph's name, and whose token it is: another's thread is not found, either",
    409: "Wait until the thread's run there has ended",
}
"""What to do about a refusal, by its status."""
CARRIED = ("checkpoint_ns", STREAM)
"""Of the node's configuration: where what the server streams is shown as coming from."""


def remote_node(
    remote: RemoteGraph,
    settings: Context | Mapping[str, Any] | None = None,
    *,
    headers: Headers | None = None,
) -> Node:
    """Return a deployed agent as a node of a graph whose messages it shares.

    It keeps its history on its server, in a thread of its own for each of this graph's. It gets
    what is new to it, with the user and the settings of the run's context over `settings`, and
    brings what it says. A question that it asks pauses this graph, which takes the answer.
    `headers` makes a run's HTTP headers out of its runtime: a token of the user's, for a server
    that asks for one.

    Raises:
        InvalidInputError: a setting is unknown or out of range.
        RemoteAgentError: by the node: the server cannot be reached, or refuses.
    """
    defaults = checked(settings)

    async def node(state: Any, runtime: Runtime[Any], config: RunnableConfig) -> dict[str, Any]:
        context = context_within(runtime.context, defaults)
        user_id = user_of(runtime.override(context=context))
        there = _There(
            remote=remote,
            thread_id=_thread_id(runtime, user_id),
            config=config,
            context=_sendable(given_in(context)) | {"user_id": user_id},
            headers=dict(headers(runtime)) if headers else None,
        )
        given = own_input(state, config)
        now = await there.state()
        new = new_from_parent(given, now.values | _read(now))
        if messages_in(new) or not now.values.get(MESSAGES):
            now = await there.after(new)
        elif now.next and not now.interrupts:  # the connection was lost in the middle
            now = await there.after(None)
        while now.interrupts:
            answers = {one.id: interrupt(one.value) for one in now.interrupts}
            now = await there.after(Command(resume=answers))
        return brought(_read(now), given)

    return node


@dataclass(frozen=True, kw_only=True)
class _There:
    """A thread on the server, and for whom it is run."""

    remote: RemoteGraph
    thread_id: str
    config: RunnableConfig
    """The node's own."""
    context: dict[str, Any]
    headers: dict[str, str] | None

    async def state(self) -> StateSnapshot:
        """Return what the server holds of the thread; nothing where it does not know it yet."""
        place: RunnableConfig = {"configurable": {"thread_id": self.thread_id}}
        with _named(self.remote):
            try:
                return await self.remote.aget_state(place, headers=self.headers)
            except NotFoundError:
                return StateSnapshot({}, (), place, None, None, None, (), ())

    async def after(self, given: Any) -> StateSnapshot:
        """Run the thread, and return what the server holds of it then."""
        own = self.config.get("configurable", {})
        carried = {name: own[name] for name in CARRIED if name in own}
        place: RunnableConfig = {"configurable": carried | {"thread_id": self.thread_id}}
        with _named(self.remote), suppress(GraphInterrupt):  # questions are in the thread's state
            await self.remote.ainvoke(given, place, context=self.context, headers=self.headers)
        return await self.state()


def _sendable(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings for a server, which knows models by name only.

    Raises:
        InvalidInputError: one of them is a model.
    """
    for name in ("model", "summary_model", "memory_model"):
        if not isinstance(settings.get(name), str | None):
            msg = (
                f"`{name}`: expected a name that the server knows, such as 'openai:gpt-4o'; got a "
                f"{type(settings[name]).__name__}. A model of this graph's own goes under a "
                "context's other fields; ours are in `everlong`, where it has that."
            )
            raise InvalidInputError(msg)
    return dict(settings)


@contextmanager
def _named(remote: RemoteGraph) -> Generator[None]:
    """Say of an error of the connection which agent it was, and what to do.

    Raises:
        RemoteAgentError: the server cannot be reached, or refuses.
    """
    try:
        yield
    except httpx.HTTPError as error:
        what, to_do = type(error).__name__, "See that the server runs at its `url`"
        if isinstance(error, httpx.HTTPStatusError):
            what = str(error.response.status_code)
            to_do = TO_DO.get(error.response.status_code, "The server's log says more")
        msg = f"`remote_node`: expected an answer of {remote.name!r}; got {what}: {error}. {to_do}."
        raise RemoteAgentError(msg) from error


def _read(snapshot: StateSnapshot) -> dict[str, Any]:
    return {MESSAGES: MESSAGE_LIST.validate_python(snapshot.values.get(MESSAGES, []))}


def _thread_id(runtime: Runtime[Any], user_id: str) -> str:
    """Return the UUID of the thread there: the same for one user, thread and node here.

    Where nothing is kept of the run here, it is a new one in each call.
    """
    info = runtime.execution_info
    if info is None:
        msg = "`remote_node`: expected a node of a running graph; got no information on its run"
        raise InvalidInputError(msg)
    path = "|".join(part.partition(":")[0] for part in info.checkpoint_ns.split("|"))
    named = f"everlong:{user_id}|{info.thread_id or info.task_id}|{path}"
    return str(uuid5(NAMESPACE_URL, named))
