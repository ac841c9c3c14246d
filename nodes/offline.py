"""A chat model that needs no network and no key: it works by extraction, and says so."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.model_profile import ModelProfile
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from everlong.nodes import offline_cues as cues
from everlong.nodes.offline_answers import answer
from everlong.nodes.offline_inner import inner_answer
from everlong.nodes.offline_texts import said
from everlong.nodes.offline_tools import (
    READERS,
    fresh_results,
    last_question,
    name_of,
    names_called_since,
    reported,
    search_call,
    told_calls,
)
from everlong.nodes.statements import Language, language
from everlong.nodes.tokens import estimate_messages, estimate_text, estimate_tools

NAME = "everlong-offline"
WINDOW_TOKENS = 128_000
_PIECE = re.compile(r"[\u2e80-\uffef]{1,4}|[^\s\u2e80-\uffef]*\s+|[^\s\u2e80-\uffef]+")


class OfflineModel(BaseChatModel):
    """The model of a run without a key. The same prompt always gets the same answer.

    It sums up, remembers, recalls and calls tools when told to; it never makes anything up.
    """

    model_name: str = NAME
    tools: tuple[dict[str, Any], ...] = ()
    """The tools that it may call, as providers are told of them."""

    @property
    def _llm_type(self) -> str:
        return NAME

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name, "tools": [name_of(tool) for tool in self.tools]}

    def _resolve_model_profile(self) -> ModelProfile:
        return ModelProfile(max_input_tokens=WINDOW_TOKENS, tool_calling=True)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,  # noqa: ARG002 - nothing forces an extractive model
        **kwargs: Any,  # noqa: ARG002 - such as `strict`
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return a model that may call these tools."""
        return self.model_copy(update={"tools": tuple(map(convert_to_openai_tool, tools))})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the base tells it
        **kwargs: Any,
    ) -> ChatResult:
        answered = self._answered(messages, stop, kwargs)
        return ChatResult(generations=[ChatGeneration(message=answered)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the base tells it
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._answered(messages, stop, kwargs)):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._answered(messages, stop, kwargs)):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _answered(
        self, messages: list[BaseMessage], stop: list[str] | None, given: dict[str, Any]
    ) -> AIMessage:
        """Return the whole answer with what it would cost."""
        tools = tuple(map(convert_to_openai_tool, given.get("tools") or self.tools))
        text, calls = reply(messages, tools)
        for mark in stop or ():
            text = text.partition(mark)[0]
        sent = estimate_messages(messages) + estimate_tools(tools)
        made = estimate_text(text) + sum(estimate_text(json.dumps(call)) for call in calls)
        return AIMessage(
            text,
            tool_calls=calls,
            usage_metadata=UsageMetadata(
                input_tokens=sent, output_tokens=made, total_tokens=sent + made
            ),
            response_metadata={
                "model_name": self.model_name,
                "finish_reason": "tool_calls" if calls else "stop",
            },
        )


def reply(
    messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]]
) -> tuple[str, list[ToolCall]]:
    """Return the answer to a prompt: a text, or tool calls."""
    inner = inner_answer(messages)
    place = last_question(messages)
    if inner is not None or place < 0:
        return inner or said("hello", language(messages[-1].text if messages else "")), []
    text = messages[place].text
    tongue = _tongue(messages, place)
    seed = f"{len(messages)}{text}"
    told = told_calls(text, tools, seed=seed, tongue=tongue)
    results = fresh_results(messages)
    called = names_called_since(messages, place)
    if results and (told.calls or not READERS.issuperset(called)):
        return reported(results, messages, tongue), []
    if not results and (told.calls or told.trouble):
        return told.trouble, told.calls
    found = answer(messages, place, tongue, [name_of(tool) for tool in tools])
    may_search = not (cues.NO_TOOLS.search(text) or READERS.intersection(called))
    search = search_call(found.sought, tools, seed=seed) if found.sought else None
    return ("", [search]) if search and may_search else (found.text, [])


def _tongue(messages: Sequence[BaseMessage], place: int) -> Language:
    """Return the language to answer in: the question's, else that of what went before."""
    before = "\n".join(m.text[:500] for m in messages[:place] if isinstance(m, HumanMessage))
    return language(messages[place].text) or language(before)


def _chunks(answered: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Cut an answer into words or a few characters; the last chunk says what it cost."""
    for piece in _PIECE.findall(answered.text):
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
    calls = [
        tool_call_chunk(
            name=call["name"],
            args=json.dumps(call["args"], ensure_ascii=False),
            id=call["id"],
            index=index,
        )
        for index, call in enumerate(answered.tool_calls)
    ]
    last = AIMessageChunk(
        content="",
        tool_call_chunks=calls,
        usage_metadata=answered.usage_metadata,
        response_metadata=answered.response_metadata,
        chunk_position="last",
    )
    yield ChatGenerationChunk(message=last)
