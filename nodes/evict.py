"""Node `evict`: move oversized tool results to the user's files, leaving a preview and a path."""

import logging

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore

from everlong.nodes.context import Context
from everlong.nodes.meter import recounted
from everlong.nodes.pruning import EVICTED
from everlong.nodes.run import Run, run_of
from everlong.nodes.state import State, Update
from everlong.nodes.thresholds import evictable, eviction_limits
from everlong.stores import files

log = logging.getLogger("everlong.eviction")

NOTICE = (
    "[The result is too long to keep here: {chars:,} characters. It is stored whole as {path}; "
    "read the rest with read_file.]\n\n"
    "## Beginning\n{head}\n\n## End\n{tail}"
)


async def evict(state: State, runtime: Runtime[Context]) -> Update:
    """Move each oversized tool result to the store; the message keeps its id, name and status.

    Reads and writes `messages`, `meter`. Where the store fails, the original stays.
    """
    run = run_of(state, runtime)
    moved: list[ToolMessage] = []
    if run.store is None:
        return Update()
    for message in evictable(run.context, state):
        try:
            moved.append(await _moved(run, run.store, message))
        except Exception:
            log.exception("Eviction of %s failed; the result stays where it is", message.id)
    if not moved:
        return Update()
    by_id = {message.id: message for message in moved}
    meter = recounted([by_id.get(str(message.id), message) for message in state.messages])
    return Update(messages=moved, meter=meter)


async def _moved(run: Run, store: BaseStore, message: ToolMessage) -> ToolMessage:
    text = message.text
    path = files.evicted_path(text)
    origin = {"tool": message.name or "", "call": message.tool_call_id, "thread": run.thread_id}
    await files.write(store, run.user_id, path, text, origin=origin)
    _, preview = eviction_limits(run.context)
    notice = NOTICE.format(chars=len(text), path=path, head=text[:preview], tail=text[-preview:])
    log.info("Evicted %s: %d characters → %s", message.id, len(text), path)
    run.tell({"type": "eviction", "message": message.id, "path": path, "chars": len(text)})
    return message.model_copy(
        update={
            "content": _with_text(message, notice),
            "additional_kwargs": message.additional_kwargs
            | {EVICTED: {"path": path, "chars": len(text)}},
        }
    )


def _with_text(message: ToolMessage, text: str) -> str | list[str | dict[str, object]]:
    """Put `text` in the place of the text blocks; other blocks stay."""
    if isinstance(message.content, str):
        return text
    others = [
        block
        for block in message.content
        if isinstance(block, dict) and block.get("type") != "text"
    ]
    return [{"type": "text", "text": text}, *others] if others else text
