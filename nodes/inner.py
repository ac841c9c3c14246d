"""Model calls of our own (summary, flush, consolidation), which the user's stream never shows."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import var_child_runnable_config

from everlong.nodes.models import may_pass, retries_itself
from everlong.nodes.storable import without_faults
from everlong.nodes.usage import usage_of

log = logging.getLogger("everlong.inner")

Answering = Runnable[Any, AIMessage]
"""A chat model, with tools or without."""
QUIET: Any = {"callbacks": [], "tags": ["nostream"]}
"""`nostream` hides a call from the message stream; no callbacks, from the event stream too."""
PAUSES_SECONDS = (0.5, 1.0)
"""Before the second and the third try of a request whose failure may pass."""


@dataclass(frozen=True, kw_only=True)
class InnerAnswer:
    """What a model answered, and what it cost."""

    message: AIMessage
    record: dict[str, Any]
    """`kind`, `input`, `cached`, `output` tokens, `milliseconds`."""

    @property
    def text(self) -> str:
        """The answer's text, without thinking or other blocks."""
        return self.message.text.strip()


async def ask(
    model: Answering, messages: Sequence[BaseMessage], *, kind: str, seconds: float
) -> InnerAnswer:
    """Ask without tools and out of the user's sight.

    A failure that may pass is tried again at most twice, all within `seconds`; where the model's
    own client does so, not here.

    Raises:
        TimeoutError: no answer within `seconds`.
        Exception: the provider's own.
    """
    began = time.perf_counter()
    # A model with tools adds the surrounding run's callbacks to those it is given: there is none.
    outside = var_child_runnable_config.set(None)
    try:
        async with asyncio.timeout(seconds):
            message = without_faults(await _answered(model, list(messages), kind))
    finally:
        var_child_runnable_config.reset(outside)
    return InnerAnswer(message=message, record=record_of(kind, message, began))


async def _answered(model: Answering, messages: list[BaseMessage], kind: str) -> AIMessage:
    for seconds in () if retries_itself(model) else PAUSES_SECONDS:
        try:
            return await model.ainvoke(messages, config=QUIET)
        except Exception as error:
            if not may_pass(error):
                raise
            log.info("The request for a %s failed and is tried again: %s", kind, error)
        await asyncio.sleep(seconds)
    return await model.ainvoke(messages, config=QUIET)


def record_of(kind: str, message: AIMessage, began: float) -> dict[str, Any]:
    """Return what a request cost; `began` is a reading of `time.perf_counter`."""
    usage = usage_of(message)
    return {
        "kind": kind,
        "input": usage.input if usage else 0,
        "cached": usage.cached if usage else 0,
        "output": usage.output if usage else 0,
        "milliseconds": round((time.perf_counter() - began) * 1_000),
    }
