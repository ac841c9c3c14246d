"""Whether a part of an answer has already been given out when its request fails (R21)."""

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs

TOLD = frozenset({"content-block-start", "content-block-delta"})
"""Stream events that carry a part of an answer, where a model is streamed by events."""


class Heard(AsyncCallbackHandler):
    """Notes the first part of an answer that the run's listeners are given.

    It asks for no stream: a model streams only where somebody else listens.
    """

    def __init__(self) -> None:
        self.anything = False
        """A part of the answer is out: text, a thought or a call. An empty first chunk is none."""

    def config(self) -> RunnableConfig:
        """Return the surrounding run's configuration with this listener beside its others."""
        return merge_configs(ensure_config(), {"callbacks": [self]})

    async def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Look at no request: the base class would have it written out as text."""

    async def on_llm_new_token(
        self,
        token: str | list[Any],
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        **_: Any,
    ) -> None:
        """Note a chunk that says something."""
        self.anything = self.anything or bool(token) or _says_something(chunk)

    async def on_stream_event(self, event: Mapping[str, Any], **_: Any) -> None:
        """Note an event that carries a part of the answer."""
        self.anything = self.anything or event.get("event") in TOLD


def _says_something(chunk: GenerationChunk | ChatGenerationChunk | None) -> bool:
    message = chunk.message if isinstance(chunk, ChatGenerationChunk) else None
    if not isinstance(message, AIMessageChunk):
        return False
    return bool(message.tool_call_chunks or message.additional_kwargs.get("reasoning_content"))
