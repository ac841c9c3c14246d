"""A conversation with the whole graph: every request and state is held against the rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from everlong.graph.agent import build
from everlong.nodes.context import Context
from invariants import check_request, check_state

NOON = datetime(2026, 3, 9, 12, 0, tzinfo=UTC)


class Watcher(AsyncCallbackHandler):
    """Notes what the user's model is sent; inner calls have no callbacks."""

    def __init__(self) -> None:
        self.requests: list[list[BaseMessage]] = []

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        for request in messages:
            self.requests.append(list(request))


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

    def __post_init__(self) -> None:
        self.use_store(self.store)

    def use_store(self, store: BaseStore | None) -> None:
        """Go on with another store."""
        self.store = store
        builder = build(tools=self.tools, clock=self.clock)
        self.graph = builder.compile(checkpointer=self.saver, store=store)

    @property
    def config(self) -> RunnableConfig:
        return {"configurable": {"thread_id": self.thread_id}}

    async def send(self, given: Any, **options: Any) -> list[BaseMessage]:
        """Run a call; return the state's messages."""
        config: RunnableConfig = {**self.config, "callbacks": [self.watcher]}
        seen = len(self.watcher.requests)
        async for part in self.graph.astream(
            given,
            config,
            context=self.context,
            stream_mode="custom",
            durability="sync",
            **options,
        ):
            self.events.append(part)
        for request in self.watcher.requests[seen:]:
            check_request(request)
        return await self.messages()

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
    def last_request(self) -> list[BaseMessage]:
        return self.watcher.requests[-1]

    def event_types(self) -> list[str]:
        return [event["type"] for event in self.events]
