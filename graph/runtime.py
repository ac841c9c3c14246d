"""Run the graph on Postgres in a process of your own."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Command
from pydantic import ValidationError

from everlong.graph.agent import Clock, build, utc_now
from everlong.graph.inputs import thread_of
from everlong.graph.worker import BackgroundWorker
from everlong.nodes.context import Context, user_of
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.mcp_config import Given as GivenServers
from everlong.nodes.state import Input, Output, State
from everlong.nodes.tool_paths import Tool
from everlong.nodes.tool_source import ToolSource
from everlong.stores.database import open_database
from everlong.stores.postgres import Index, Stores, open_stores
from everlong.stores.settings import settings

Compiled = CompiledStateGraph[State, Context, Input, Output]
Given = Context | Mapping[str, Any] | None
DURABILITY = "sync"
"""A killed process repeats no finished tool: each step is stored before the next begins."""


class Agent:
    """The compiled graph, with one run of a thread at a time and nothing that bad input can change.

    What is not here (`aget_state_history`, `get_graph`, ...) is the compiled graph's own.
    """

    def __init__(
        self, graph: Compiled, stores: Stores, worker: BackgroundWorker | None = None
    ) -> None:
        self.graph = graph
        self._worker = worker or BackgroundWorker(stores.store, utc_now)
        self._any: Any = graph  # its methods' types know neither a mapping nor a command
        self.store: BaseStore = stores.store
        """The store with every user's records."""
        self._locks = stores.locks

    def __getattr__(self, name: str) -> Any:
        return getattr(self.graph, name)

    async def ainvoke(
        self,
        input: Mapping[str, Any] | Command[Any] | None,  # noqa: A002 - the graph's own name
        config: RunnableConfig,
        *,
        context: Given = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Run a call and return the state's messages; like the compiled graph's `ainvoke`.

        Raises:
            InvalidInputError: no user, another user's thread, a setting out of range, no thread id,
                or an id that no store can hold.
        """
        async with self._turn(config, context) as checked:
            return await self._any.ainvoke(input, config, context=checked, **_durable(options))

    def astream(
        self,
        input: Mapping[str, Any] | Command[Any] | None,  # noqa: A002 - the graph's own name
        config: RunnableConfig,
        *,
        context: Given = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Run a call and stream it; like the compiled graph's `astream`.

        Raises:
            InvalidInputError: as `ainvoke`.
        """
        return self._streamed(self._any.astream, input, config, context, options)

    def astream_events(
        self,
        input: Mapping[str, Any] | Command[Any] | None,  # noqa: A002 - the graph's own name
        config: RunnableConfig,
        *,
        context: Given = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Run a call and stream its events; like the compiled graph's `astream_events`.

        Raises:
            InvalidInputError: as `ainvoke`.
        """
        options = {"version": "v2"} | options
        return self._streamed(self._any.astream_events, input, config, context, options)

    async def _streamed(
        self,
        stream: Callable[..., AsyncGenerator[Any]],
        given: Any,
        config: RunnableConfig,
        context: Given,
        options: dict[str, Any],
    ) -> AsyncGenerator[Any]:
        """Stream a call; the thread's turn ends when the run has, however that comes."""
        async with self._turn(config, context) as checked:
            running = stream(given, config, context=checked, **_durable(options))
            async with aclosing(running) as parts:
                async for part in parts:
                    yield part

    async def aupdate_state(
        self, config: RunnableConfig, values: Any, **options: Any
    ) -> RunnableConfig:
        """Edit the state, when no run holds the thread."""
        async with self._locks.hold(_thread_id(config)):
            return await self.graph.aupdate_state(config, values, **options)

    async def await_quiescence(
        self,
        timeout: float = 60.0,  # noqa: ASYNC109 - what is left is told with the error
        *,
        user_id: str | None = None,
    ) -> None:
        """Wait until the memory work of calls in the background mode is done.

        That is what the calls of this process have left; with `user_id`, what any process has left
        of this user. What has failed for good is not waited for; `everlong doctor` lists it.

        Raises:
            TimeoutError: some is left after `timeout` seconds; the text says which and why.
        """
        await self._worker.await_quiescence(timeout, user_id)

    @asynccontextmanager
    async def alone(self, config: RunnableConfig) -> AsyncGenerator[Compiled]:
        """Give the compiled graph while no run holds the thread: to read, and then to edit."""
        async with self._locks.hold(_thread_id(config)):
            yield self.graph

    @asynccontextmanager
    async def _turn(self, config: RunnableConfig, context: Given) -> AsyncGenerator[Context]:
        """Check before anything is written, and wait for the thread's turn."""
        checked = _checked(context)
        thread_id = _thread_id(config)
        if checked.memory.flush_mode == "background":
            self._worker.start()
        async with self._locks.hold(thread_id):
            yield checked


def _durable(options: dict[str, Any]) -> dict[str, Any]:
    return {"durability": DURABILITY} | options


def _checked(context: Given) -> Context:
    try:
        checked = context if isinstance(context, Context) else Context(**(context or {}))
    except ValidationError as error:
        raise InvalidInputError(str(error)) from error
    user_of(Runtime(context=checked))
    return checked


def _thread_id(config: RunnableConfig) -> str:
    thread_id = thread_of(config)
    if thread_id is None:
        msg = (
            "`thread_id`: expected which conversation it is; got none. "
            "Pass `{'configurable': {'thread_id': '...'}}`."
        )
        raise InvalidInputError(msg)
    return thread_id


@asynccontextmanager
async def open_agent(
    *,
    tools: Sequence[Tool] | None = None,
    mcp: GivenServers | None = None,
    dsn: str | None = None,
    clock: Clock = utc_now,
    index: Index | None = None,
) -> AsyncGenerator[Agent]:
    """Open the agent on Postgres: `dsn`, else `DATABASE_URL`, else the embedded server.

    `tools` are its tools, else those that `EVERLONG_TOOLS` names; `mcp` its MCP servers by name,
    or a JSON file of these, else what `EVERLONG_MCP` says. A server is started with the first call
    and ended with the agent.
    `index` is the store's index by meaning, as LangGraph configures one: `embed` and `dims`.

    Calls with `flush_mode="background"` begin a worker in this process; closing waits at most ten
    seconds for what they have left, and leaves the rest to any other worker.

    Raises:
        DatabaseUnavailableError: Postgres cannot be reached.
        EmbeddedPostgresError: the embedded server cannot be started.
        ToolsError: tools or servers that a setting names cannot be had.
    """
    source = ToolSource(tools, mcp)
    await asyncio.to_thread(source.check)  # it imports, and reads files
    builder = build(tools=source, clock=clock)
    lone_nodes = {START, *builder.nodes}
    async with (
        open_database(dsn) as found,
        open_stores(
            found, pool_size=settings().pool_size, lone_nodes=lone_nodes, index=index
        ) as stores,
    ):
        graph = builder.compile(checkpointer=stores.saver, store=stores.store, name="everlong")
        worker = BackgroundWorker(stores.store, clock)
        try:
            yield Agent(graph, stores, worker)
        finally:
            await worker.stop()
            await source.close()
