"""OpenAI's chat model, for OpenAI and for every endpoint that speaks its Chat Completions.

Imported only when a model is named `openai:...`. langchain-openai reads OpenAI's own fields; what
others add and an agent cannot do without is kept here. DeepSeek thinks by default, and answers
400 after the first tool call unless the `reasoning_content` of messages with calls comes back.
Source: the thinking mode page of DeepSeek's documentation.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from functools import cache
from typing import Any, Self, cast
from urllib.parse import urlsplit

import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, BaseMessageChunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from pydantic import SecretStr, model_validator

from everlong.nodes.chat_content import chat_messages
from everlong.nodes.errors import ModelUnavailableError
from everlong.nodes.usage import cached_tokens

SECONDS = 120
"""Longest wait for an answer, or for the next piece of a streamed one."""

CONNECT_SECONDS = 10
"""Longest wait for an address that does not answer at all."""

RETRIES = 2

REASONING = "reasoning_content"

OPENAI_REASONING = re.compile(r"o\d|gpt-[5-9]")
"""Models that refuse `max_tokens`, at a gateway too; other servers may not know the newer name."""


class OpenAICompatible(ChatOpenAI):
    """ChatOpenAI that also keeps cached tokens and reasoning under the names of other providers."""

    @property
    def is_openai(self) -> bool:
        """Whether requests go to OpenAI itself."""
        host = urlsplit(str(self.root_async_client.base_url)).hostname or ""
        return f".{host}".endswith(".api.openai.com")

    @model_validator(mode="after")
    def _chat_completions_elsewhere(self) -> Self:
        """Never ask others for the Responses API, whatever the model's name suggests."""
        if not self.is_openai:
            self.use_responses_api = False
        return self

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload = cast("dict[str, Any]", super()._get_request_payload(input_, stop=stop, **kwargs))
        if "messages" in payload and not self.is_openai:
            self._spell_for_others(self._convert_input(input_).to_messages(), payload)
        if "messages" in payload:
            payload["messages"] = chat_messages(payload["messages"])
        return _unwalked(payload)

    def _spell_for_others(self, messages: list[BaseMessage], payload: dict[str, Any]) -> None:
        """Use the older name of the output limit, and send reasoning back, in place."""
        if "max_completion_tokens" in payload and not OPENAI_REASONING.match(self.model_name):
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        for message, sent in zip(messages, payload["messages"], strict=True):
            if isinstance(message, AIMessage):
                sent.update(self._reasoning_of(message))

    def _reasoning_of(self, message: AIMessage) -> dict[str, str]:
        """Return the reasoning to send back; DeepSeek wants the field with calls, even empty."""
        reasoning = message.additional_kwargs.get(REASONING)
        if isinstance(reasoning, str):
            return {REASONING: reasoning}
        calls = message.tool_calls or message.invalid_tool_calls
        return {REASONING: ""} if calls and "deepseek" in self.model_name.lower() else {}

    def _create_chat_result(
        self, response: Any, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        result = super()._create_chat_result(response, generation_info)
        usage = (result.llm_output or {}).get("token_usage")
        choices = _field(response, "choices") or ()
        for generation, choice in zip(result.generations, choices, strict=True):
            _keep(generation.message, usage, _field(_field(choice, "message"), REASONING))
        return result

    def _convert_chunk_to_generation_chunk(
        self,
        chunk: dict[str, Any],
        default_chunk_class: type[BaseMessageChunk],
        base_generation_info: dict[str, Any] | None,
    ) -> ChatGenerationChunk | None:
        generation = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        if generation is not None:
            choices: list[Any] = chunk.get("choices") or [None]
            reasoning = _field(_field(choices[0], "delta"), REASONING)
            _keep(generation.message, chunk.get("usage"), reasoning)
        return generation


def _unwalked(payload: dict[str, Any]) -> dict[str, Any]:
    """Give the client messages and tools as they go over the wire.

    It walks each field of every message and schema otherwise, which takes longer than all else in
    a call. What is parsed into a type is left to it.
    """
    if "messages" not in payload or "response_format" in payload:
        return payload
    wire = {name: payload[name] for name in ("messages", "tools") if name in payload}
    rest = {name: value for name, value in payload.items() if name not in wire}
    return rest | {"messages": [], "extra_body": (payload.get("extra_body") or {}) | wire}


def _field(record: Any, name: str) -> Any:
    if isinstance(record, Mapping):
        return cast("Mapping[str, Any]", record).get(name)
    return getattr(record, name, None)


def _keep(message: Any, usage: Mapping[str, Any] | None, reasoning: Any) -> None:
    """Put into the message what langchain-openai left out."""
    if not isinstance(message, AIMessage):
        return
    if isinstance(reasoning, str) and reasoning:
        message.additional_kwargs[REASONING] = reasoning
    cached, known = cached_tokens(usage or {}), message.usage_metadata
    if cached is None or known is None:
        return
    details = known.get("input_token_details") or {}
    if not any(name.endswith("cache_read") for name in details):
        known["input_token_details"] = cast("Any", {**details, "cache_read": cached})


def openai_compatible(name: str) -> OpenAICompatible:
    """Return the model of this name at OPENAI_BASE_URL, with OPENAI_API_KEY.

    Streamed answers report usage at other addresses too, where langchain-openai turns it off.

    Raises:
        ModelUnavailableError: a variable is missing or cannot be used.
    """
    try:
        model = OpenAICompatible(
            model=name,
            stream_usage=True,
            timeout=openai.Timeout(SECONDS, connect=CONNECT_SECONDS),
            stream_chunk_timeout=SECONDS,
            max_retries=RETRIES,
            http_client=_plain_client(),
            http_async_client=_client_of_loop(),
        )
    except openai.OpenAIError as error:
        raise ModelUnavailableError(_needs_key(name)) from error
    _check(model, name)
    return model


def _check(model: OpenAICompatible, name: str) -> None:
    """Find out now what would fail deep in the first request."""
    key = model.openai_api_key
    secret = key.get_secret_value() if isinstance(key, SecretStr) else "-"
    if not secret.strip():
        raise ModelUnavailableError(_needs_key(name))
    if not secret.isascii() or not secret.isprintable():
        msg = "OPENAI_API_KEY: expected a key of printable ASCII characters; got others in it"
        raise ModelUnavailableError(msg)
    url = urlsplit(str(model.root_async_client.base_url))
    if url.scheme not in ("http", "https") or not url.hostname:
        msg = (
            "OPENAI_BASE_URL: expected an address such as `http://127.0.0.1:8000/v1`, or no such "
            f"variable; got {url.geturl().rstrip('/')!r}"
        )
        raise ModelUnavailableError(msg)


def _needs_key(name: str) -> str:
    return (
        f"model `openai:{name}` needs a key: set OPENAI_API_KEY. A local server that checks none "
        "still needs some value, such as `none`; `offline` is the model that needs nothing."
    )


@cache
def _plain_client() -> Any:
    """Return the client of calls that are not asynchronous."""
    return openai.DefaultHttpxClient()


@cache
def _forgetful_client() -> Any:
    """Return a client that keeps no connection, and so serves any loop."""
    return openai.DefaultAsyncHttpxClient(headers={"Connection": "close"})


_clients: dict[asyncio.AbstractEventLoop, tuple[Any, AsyncGenerator[None, None]]] = {}


def _client_of_loop() -> Any:
    """Return the running loop's client, so that its connections are used again.

    A connection belongs to the loop that opened it: used from a second `asyncio.run`, it fails
    with "Event loop is closed". Where no loop runs, nobody knows which will.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _forgetful_client()
    if loop not in _clients:
        for closed in [one for one in list(_clients) if one.is_closed()]:
            _clients.pop(closed, None)
        client = openai.DefaultAsyncHttpxClient()
        closer = _close_with_loop(client)
        with suppress(StopIteration):
            closer.asend(None).send(None)
        _clients[loop] = (client, closer)
    return _clients[loop][0]


async def _close_with_loop(client: Any) -> AsyncGenerator[None, None]:
    """Hold the client open; a loop that ends closes the generators that began in it."""
    try:
        yield
    finally:
        await client.aclose()
