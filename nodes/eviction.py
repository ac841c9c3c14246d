"""Move a text out of a tool result: shared by `tools`, for new results, and `evict` (R30)."""

from typing import Any, TypeVar

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.store.base import BaseStore

from everlong.nodes.pruning import EVICTED
from everlong.nodes.run import Run
from everlong.nodes.thresholds import WAITING, eviction_limits, is_oversized
from everlong.stores import files

Message = TypeVar("Message", bound=BaseMessage)
PLACEHOLDER = "[{chars:,} characters, stored whole as {path}; read_file reads them.]"
NOTICE = (
    "[The result is too long to keep here: {chars:,} characters. It is stored whole as {path}; "
    "read the rest with read_file.]\n\n"
    "## Beginning\n{head}\n\n## End\n{tail}"
)


async def spilled(run: Run, message: BaseMessage) -> BaseMessage:
    """Store an oversized result at once, so that no checkpoint ever holds it.

    The state gets a placeholder, which `evict` turns into the preview. A store that fails leaves
    the result for `evict` to try again.
    """
    if run.store is None or not is_oversized(run.context, message):
        return message
    try:
        path = await _stored(run, run.store, message)
    except Exception:  # noqa: BLE001 - `evict` tries again, and logs
        return message
    record = {"path": path, "chars": len(message.text), WAITING: True}
    return _changed(message, PLACEHOLDER.format(**record), record)


async def moved(run: Run, store: BaseStore, message: ToolMessage) -> ToolMessage:
    """Return the message with a preview and a path in the place of its text.

    Raises:
        Exception: the store's own; LookupError where a stored text is gone.
    """
    _, preview_chars = eviction_limits(run.context)
    preview = max(preview_chars // 2, 1)
    record: dict[str, Any] = dict(message.additional_kwargs.get(EVICTED, {}))
    if WAITING in record:
        head, tail = await _ends(run, store, record, preview)
    else:
        text = message.text
        record = {"path": await _stored(run, store, message), "chars": len(text)}
        head, tail = text[:preview], text[-preview:]
    record.pop(WAITING, None)
    return _changed(message, NOTICE.format(**record, head=head, tail=tail), record)


async def _stored(run: Run, store: BaseStore, message: BaseMessage) -> str:
    path = files.evicted_path(message.text)
    call = message.tool_call_id if isinstance(message, ToolMessage) else ""
    origin = {"tool": message.name or "", "call": call, "thread": run.thread_id}
    await files.write(store, run.user_id, path, message.text, origin=origin)
    return path


async def _ends(
    run: Run, store: BaseStore, record: dict[str, Any], preview: int
) -> tuple[str, str]:
    ends: list[str] = []
    for offset in (0, max(int(record["chars"]) - preview, 0)):
        page = await files.read_page(
            store, run.user_id, str(record["path"]), offset=offset, max_chars=preview
        )
        if page is None:
            msg = f"expected the stored text {record['path']!r}; it is gone"
            raise LookupError(msg)
        ends.append(page.text)
    return ends[0], ends[1]


def _changed(message: Message, text: str, record: dict[str, Any]) -> Message:
    """Put `text` in the place of the text blocks; other blocks stay."""
    content: Any = text
    if not isinstance(message.content, str):
        others = [b for b in message.content if isinstance(b, dict) and b.get("type") != "text"]
        content = [{"type": "text", "text": text}, *others] if others else text
    kwargs = message.additional_kwargs | {EVICTED: record}
    return message.model_copy(update={"content": content, "additional_kwargs": kwargs})
