"""Play a conversation and note what happens: requests, log lines, messages before and after."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from everlong.graph.runtime import Agent
from everlong.nodes.context import Context
from everlong.nodes.request import REFERENCE_NAME
from everlong.nodes.summary import HEADER
from everlong.nodes.transcript import SUMMARY_NAME

ROLES = {"human": "user", "ai": "assistant"}
NAMES = {SUMMARY_NAME: "summary", REFERENCE_NAME: "memory"}


@dataclass(frozen=True, kw_only=True)
class Check:
    """One expected number or word, and what came."""

    what: str
    expected: Any
    got: Any

    @property
    def ok(self) -> bool:
        """Whether it came out as expected."""
        return self.got == self.expected


@dataclass(frozen=True, kw_only=True)
class Round:
    """One call: what was asked, what the model was sent, what came of it."""

    question: str
    before: list[str]
    requests: list[list[str]]
    log: list[str]
    after: list[str]
    answer: str
    checks: list[Check] = field(default_factory=list[Check])


@dataclass(frozen=True, kw_only=True)
class Example:
    """A worked example as it happened."""

    name: str
    title: str
    user_id: str
    thread_id: str
    rounds: list[Round]

    @property
    def ok(self) -> bool:
        """Whether every number came out."""
        return all(check.ok for one in self.rounds for check in one.checks)

    def as_data(self) -> dict[str, Any]:
        """Return the example as plain data."""
        return asdict(self) | {"ok": self.ok}


class _Requests(AsyncCallbackHandler):
    """Notes what the model is sent."""

    def __init__(self) -> None:
        self.seen: list[list[BaseMessage]] = []

    async def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        del serialized, kwargs
        self.seen += messages


@contextmanager
def log_lines() -> Generator[list[str]]:
    """Collect the lines of everlong's loggers, which go nowhere else meanwhile."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("everlong")
    level, others = logger.level, logger.handlers
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        logger.handlers = others
        logger.setLevel(level)


def line_of(message: BaseMessage) -> str:
    """Return one line that shows a message: who, and what."""
    calls = ", ".join(call["name"] for call in getattr(message, "tool_calls", []))
    who = NAMES.get(message.name or "") or ROLES.get(message.type, message.type)
    text = message.text.removeprefix(HEADER)
    return f"{who}: {' '.join(text.split()) or (f'calls {calls}' if calls else '')}"


@dataclass(frozen=True, kw_only=True)
class Player:
    """Plays the rounds of one thread and notes what happens."""

    agent: Agent
    context: Context
    thread_id: str

    @property
    def config(self) -> RunnableConfig:
        """The thread's configuration."""
        return {"configurable": {"thread_id": self.thread_id}}

    async def messages(self) -> list[BaseMessage]:
        """Return the thread's messages as they are stored."""
        snapshot = await self.agent.aget_state(self.config)
        return list(snapshot.values.get("messages", []))

    async def play(
        self, question: str, given: dict[str, Any] | None = None
    ) -> tuple[Round, list[list[BaseMessage]]]:
        """Run one call and return what happened, and the requests in full."""
        watcher = _Requests()
        before = await self.messages()
        given = given or {"messages": [HumanMessage(question)]}
        with log_lines() as lines:
            config: RunnableConfig = {**self.config, "callbacks": [watcher]}
            await self.agent.ainvoke(given, config, context=self.context)
        after = await self.messages()
        answer = after[-1].text if "request" not in given else ""
        return (
            Round(
                question=question,
                before=[line_of(message) for message in before],
                requests=[[line_of(message) for message in seen] for seen in watcher.seen],
                log=list(lines),
                after=[line_of(message) for message in after],
                answer=answer,
            ),
            watcher.seen,
        )
