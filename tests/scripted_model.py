"""A real chat model that reads from a script and fails on one call too many."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

from everlong.nodes.rendering import ABOVE
from observed import Exchange, noted


@dataclass(frozen=True)
class Breaking:
    """An answer that begins, and then raises."""

    text: str
    error: Exception


Answer = str | AIMessage | Exception | float | Breaking
"""A text, a message, an error to raise, or seconds to hang before the next answer."""
Script = Sequence[Answer] | Callable[[list[BaseMessage]], Answer]


class ScriptedModel(BaseChatModel):
    """Plays its script in order, or asks a function of the request; records every request."""

    script: Any = ()
    profile: dict[str, Any] | None = None
    requests: list[list[BaseMessage]] = Field(default_factory=list)
    tools: list[list[str]] = Field(default_factory=list)
    _played: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=list(map(convert_to_openai_tool, tools)), **kwargs)

    def _next(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> Answer:
        self.requests.append(list(messages))
        self.tools.append([tool["function"]["name"] for tool in kwargs.get("tools", [])])
        exchange = noted(Exchange(kind_of(messages), list(messages)))
        try:
            exchange.answer = self._scripted(messages)
        except BaseException as error:
            exchange.answer = error
            raise
        return exchange.answer

    def _scripted(self, messages: list[BaseMessage]) -> Answer:
        if callable(self.script):
            return self.script(messages)
        if self._played >= len(self.script):
            msg = f"the script ended after {self._played} answers; got one more: {messages[-1]}"
            raise AssertionError(msg)
        self._played += 1
        return self.script[self._played - 1]

    @staticmethod
    def _message(answer: Answer) -> AIMessage:
        if isinstance(answer, Exception):
            raise answer.with_traceback(None)  # a script may raise it again and again
        if isinstance(answer, Breaking):
            raise answer.error.with_traceback(None)
        return answer if isinstance(answer, AIMessage) else AIMessage(str(answer))

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        message = self._message(self._next(messages, kwargs))
        return ChatResult(generations=[ChatGeneration(message=message.model_copy())])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        answer = self._next(messages, kwargs)
        if isinstance(answer, float):
            await asyncio.sleep(answer)
            answer = self._next(messages, kwargs)
        message = self._message(answer)
        return ChatResult(generations=[ChatGeneration(message=message.model_copy())])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        raise NotImplementedError

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        answer = self._next(messages, kwargs)
        if isinstance(answer, float):
            await asyncio.sleep(answer)
            answer = self._next(messages, kwargs)
        whole = AIMessage(answer.text) if isinstance(answer, Breaking) else self._message(answer)
        message = whole.model_copy()
        *words, last_part = _parts(message)
        for text in words:
            chunk = ChatGenerationChunk(message=AIMessageChunk(text, id=message.id))
            if run_manager:
                await run_manager.on_llm_new_token(text, chunk=chunk)
            yield chunk
        if isinstance(answer, Breaking):
            raise answer.error.with_traceback(None)
        last = AIMessageChunk(
            last_part,
            id=message.id,
            tool_calls=getattr(message, "tool_calls", []),
            invalid_tool_calls=getattr(message, "invalid_tool_calls", []),
            usage_metadata=getattr(message, "usage_metadata", None),
            response_metadata=message.response_metadata,
            additional_kwargs=message.additional_kwargs,
            chunk_position="last",
        )
        chunk = ChatGenerationChunk(message=last)
        if run_manager:
            await run_manager.on_llm_new_token(str(last_part), chunk=chunk)
        yield chunk


def _parts(message: AIMessage) -> list[Any]:
    """Return what is streamed one after the other: words, or a list of blocks at once."""
    if not isinstance(message.content, str):
        return [message.content]
    *words, last = message.content.split(" ")
    return [*(word + " " for word in words), last]


def calling(*calls: tuple[str, dict[str, Any]], text: str = "", prefix: str = "call") -> AIMessage:
    """Return an assistant message that calls tools: (name, arguments) each."""
    return AIMessage(
        text,
        tool_calls=[
            {"name": name, "args": args, "id": f"{prefix}_{at}_{name}"}
            for at, (name, args) in enumerate(calls)
        ],
    )


def asks_for_summary(messages: Sequence[BaseMessage]) -> bool:
    """Tell a request for a summary, in either form, from a question of the user's."""
    text = messages[-1].text
    return "NO_REPLY" not in text and ("<conversation>" in text or ABOVE in text)


def kind_of(messages: Sequence[BaseMessage]) -> str:
    """Say what a request is for: `answer`, `summary`, `flush` or `consolidation`."""
    if asks_for_summary(messages):
        return "summary"
    text = messages[-1].text
    if "NO_REPLY" in text and "<conversation>" in text:
        return "flush"
    return "consolidation" if "<ledger>" in text and "<document>" in text else "answer"
