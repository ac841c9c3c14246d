"""Move a text out of a tool result: shared by `tools`, for new results, and `evict` (R30)."""

from typing import Any, TypeVar

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.store.base import BaseStore

from everlong.nodes.oversize import (
    WAITING,
    Windows,
    eviction_limits,
    is_oversized,
    is_preview,
    waits,
)
from everlong.nodes.pruning import EVICTED
from everlong.nodes.result_text import text_of, with_text
from everlong.nodes.run import Run
from everlong.stores import files
from everlong.stores.amounts import amount
from everlong.stores.characters import safe_end, safe_start

Message = TypeVar("Message", bound=BaseMessage)
NOTICE = (
    "[The result is too long to keep here: {chars} in {lines}. It is stored whole as {path}{how}.]"
    "\n\n## Beginning\n{head}\n\n## End\n{tail}"
)
HOW = "; read the rest with {reader}"


async def spilled(run: Run, message: BaseMessage, *, named: Windows, reader: str) -> BaseMessage:
    """Move an oversized result at once, so that no checkpoint ever holds it; `evict` tells of it.

    `reader` is the tool that reads it back, empty where none is offered. A store that fails leaves
    the result for `evict` to try again.
    """
    if run.store is None or not is_oversized(run.context, named, message):
        return message
    try:
        preview = await _preview(run, run.store, message, named, reader)
    except Exception:  # noqa: BLE001 - `evict` tries again, and logs
        return message
    record: dict[str, Any] = preview.additional_kwargs[EVICTED] | {WAITING: True}
    return _noted(preview, record)


async def moved(
    run: Run, store: BaseStore, message: ToolMessage, *, named: Windows, reader: str
) -> ToolMessage:
    """Return the message with a preview and a path in the place of its text.

    Raises:
        Exception: the store's own.
    """
    if not (waits(message) and is_preview(message)):
        return await _preview(run, store, message, named, reader)
    record = {k: v for k, v in message.additional_kwargs[EVICTED].items() if k != WAITING}
    return _noted(message, record)


async def _preview(
    run: Run, store: BaseStore, message: Message, named: Windows, reader: str
) -> Message:
    text = text_of(message)
    call = message.tool_call_id if isinstance(message, ToolMessage) else ""
    origin = {"tool": message.name or "", "call": call, "thread": run.thread_id}
    file = await files.keep(store, run.user_id, text, origin=origin)
    _, preview_chars = eviction_limits(run.context, named, message.name)
    half = max(preview_chars // 2, 1)
    notice = NOTICE.format(
        chars=amount(file.chars, "character"),
        lines=amount(file.lines, "line"),
        path=file.path,
        how=HOW.format(reader=reader) if reader else "",
        head=text[: safe_end(text, 0, half)],
        tail=text[safe_start(text, max(len(text) - half, 0)) :],
    )
    changed = message.model_copy(update={"content": with_text(message, notice)})
    return _noted(changed, {"path": file.path, "chars": file.chars})


def _noted(message: Message, record: dict[str, Any]) -> Message:
    kwargs = message.additional_kwargs | {EVICTED: record}
    return message.model_copy(update={"additional_kwargs": kwargs})
