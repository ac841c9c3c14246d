"""A conversation with a LangGraph server by HTTP, as its SDK does it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Self

from langgraph_sdk.client import LangGraphClient

MODES: Any = ["messages-tuple", "updates", "custom"]
BEGIN_SECONDS = 30


class RunFailedError(Exception):
    """The server's stream ended with an error: its class and its text."""


@dataclass(kw_only=True)
class HttpThread:
    """A thread of one user, by HTTP."""

    client: LangGraphClient
    thread_id: str
    context: dict[str, Any]
    graph: str = "everlong"
    events: list[Any] = field(default_factory=list[Any])
    """What the last run streamed."""

    @classmethod
    async def new(cls, client: LangGraphClient, context: dict[str, Any], graph: str) -> Self:
        made = await client.threads.create()
        return cls(client=client, thread_id=made["thread_id"], context=context, graph=graph)

    async def run(self, given: Any = None, **options: Any) -> str:
        """Run and return the words that came in the stream.

        Raises:
            RunFailedError: as the client is told.
        """
        self.events = []
        options = {"context": self.context, "input": given} | options
        async for part in self.client.runs.stream(
            self.thread_id,
            self.graph,
            stream_mode=["messages-tuple", "updates", "custom"],
            **options,
        ):
            self.events.append(part)
            if part.event == "error":
                raise RunFailedError(part.data["error"], part.data["message"])
        return "".join(
            part.data[0]["content"]
            for part in self.events
            if part.event == "messages" and part.data[0]["type"] == "AIMessageChunk"
        )

    async def say(self, text: str, **options: Any) -> str:
        return await self.run(said(text), **options)

    async def begin(self, text: str) -> str:
        """Begin a run, and return its id when it is at work in a tool."""
        run = await self.client.runs.create(
            self.thread_id, self.graph, input=said(text), context=self.context
        )
        async with asyncio.timeout(BEGIN_SECONDS):
            while (await self.state())["next"] != ["tools"]:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.1)
        return run["run_id"]

    async def state(self) -> Any:
        return await self.client.threads.get_state(self.thread_id)

    async def texts(self) -> list[str]:
        """Return the state's messages; a message without text by its tools' names."""
        values = (await self.state())["values"]
        return [
            one["content"] or " ".join(call["name"] for call in one.get("tool_calls", []))
            for one in values.get("messages", [])
        ]

    def streamed(self, event: str) -> list[Any]:
        """Return what the last run streamed in one mode."""
        return [part.data for part in self.events if part.event == event]


def said(text: str) -> dict[str, Any]:
    """Return the input of a run in which the user says this."""
    return {"messages": [{"role": "user", "content": text}]}
