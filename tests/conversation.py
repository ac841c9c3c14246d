"""A conversation with the whole graph: every request and state is held against the rules."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from call_invariants import check_call
from everlong.graph.agent import build
from everlong.nodes.context import Context
from everlong.nodes.pruning import EVICTED
from everlong.stores import files
from invariants import check_state
from observed import CURRENT, Observed, RecordingStore

NOON = datetime(2026, 3, 9, 12, 0, tzinfo=UTC)
WATCHED_CALLS = 5
MODES = ("values", "updates", "messages", "custom")


class Watcher(AsyncCallbackHandler):
    """Notes what the user's model is sent; inner calls have no callbacks."""

    def __init__(self) -> None:
        self.requests: list[list[BaseMessage]] = []

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        for request in messages:
            self.requests.append(list(request))
            if (call := CURRENT.get()) is not None:
                call.requests.append(self.requests[-1])

    async def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        if (call := CURRENT.get()) is not None:
            call.answers += [one.text for many in response.generations for one in many]


@dataclass(kw_only=True)
class Conversation:
    """One thread of one user on given stores."""

    saver: BaseCheckpointSaver[Any]
    store: BaseStore | None
    context: Context
    tools: Sequence[Any] = ()
    thread_id: str = "thread-1"
    clock: Callable[[], datetime] = lambda: NOON
    watcher: Watcher = field(default_factory=Watcher)
    events: list[dict[str, Any]] = field(default_factory=list)
    waived: Mapping[str, str] = field(default_factory=dict)
    """Invariants (`call_invariants.INVARIANTS`) that do not hold for this test, each with why."""
    calls: list[Observed] = field(default_factory=list)
    """What each call did; of all but the newest few without what was streamed."""

    def __post_init__(self) -> None:
        self.use_store(self.store)

    def use_store(self, store: BaseStore | None) -> None:
        """Go on with another store."""
        self.store = store
        builder = build(tools=self.tools, clock=self.clock)
        recording = None if store is None else RecordingStore(store)
        self.graph = builder.compile(checkpointer=self.saver, store=recording)

    @property
    def config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self.thread_id}}

    async def send(self, given: Any, *, at: str = "", **options: Any) -> list[BaseMessage]:
        """Run a call, hold it against the invariants whatever it came to; return the messages.

        `at` is the id of an earlier checkpoint from which the thread is to go on.
        """
        call = Observed(user_id=str(self.context.user_id))
        self.calls.append(call)
        for old in self.calls[:-WATCHED_CALLS]:
            old.forget_stream()
        running = CURRENT.set(call)
        try:
            await self._run(call, given, at, options)
        except (Exception, asyncio.CancelledError) as error:
            call.error = error
            await self._check(call)
            raise
        finally:
            CURRENT.reset(running)
        await self._check(call)
        return list(call.messages)

    async def _run(self, call: Observed, given: Any, at: str, options: Mapping[str, Any]) -> None:
        place = {"thread_id": self.thread_id} | ({"checkpoint_id": at} if at else {})
        config: RunnableConfig = {"configurable": place, "callbacks": [self.watcher]}
        async for mode, part in self.graph.astream(
            given,
            config,
            context=self.context,
            stream_mode=list(MODES),
            durability="sync",
            **options,
        ):
            if mode == "custom":
                self.events.append(part)
                call.events.append(part)
            elif mode == "messages":
                call.chunks.append(part)
            else:
                call.steps.append((mode, part))

    async def _check(self, call: Observed) -> None:
        call.values = await self.values()
        sent = [message for request in call.requests for message in request]
        for message in (*sent, *call.messages):
            record = message.additional_kwargs.get(EVICTED)
            if isinstance(message, HumanMessage) and isinstance(record, dict) and self.store:
                path = str(record.get("path"))
                if path not in call.previewed:
                    whole = await files.read_text(self.store, call.user_id, path)
                    call.previewed[path] = whole
        check_call(call, self.waived)

    async def say(self, *texts: str) -> str:
        """Say each text in a call of its own; return the last answer."""
        messages: list[BaseMessage] = []
        for text in texts:
            messages = await self.send({"messages": [{"role": "user", "content": text}]})
            check_state(messages)
        return messages[-1].text

    async def compact(self, instructions: str = "") -> list[BaseMessage]:
        """Ask for a compaction and nothing else."""
        return await self.send({"request": {"compact": True, "instructions": instructions}})

    async def seed(self, messages: Sequence[Any]) -> None:
        """Put messages into the thread as an import would."""
        await self.graph.aupdate_state(
            self.config, {"messages": list(messages)}, as_node="consolidate"
        )

    async def values(self) -> Mapping[str, Any]:
        return (await self.graph.aget_state(self.config)).values

    async def messages(self) -> list[BaseMessage]:
        return list((await self.values()).get("messages", []))

    @property
    def last_call(self) -> Observed:
        return self.calls[-1]

    @property
    def last_request(self) -> list[BaseMessage]:
        return self.watcher.requests[-1]

    def event_types(self) -> list[str]:
        return [event["type"] for event in self.events]
