"""Whether the state that a node works from is stored, for what must not be told before."""

import asyncio
import logging
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.runtime import Runtime

log = logging.getLogger("everlong.compaction")

CHECKPOINTER, DURABILITY = "__pregel_checkpointer", "__pregel_durability"
"""LangGraph's own names in a run's configuration, which it does not export."""
WAIT_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 0.002
LONGEST_PAUSE_SECONDS = 0.1


async def is_written(runtime: Runtime[Any]) -> bool:
    """Wait, where that is near, until the checkpoint that the node works from is stored.

    With the durability `sync` it is; with `async` it is being written; with `exit` it is not
    before the run ends. Without a checkpointer it is as written as it will ever be.
    """
    given: dict[str, Any] = get_config().get("configurable", {})
    saver: Any = given.get(CHECKPOINTER)
    durability = given.get(DURABILITY, "async")
    info = runtime.execution_info
    if not isinstance(saver, BaseCheckpointSaver) or info is None or durability == "sync":
        return True
    if durability == "exit":
        return False
    where = {
        "thread_id": info.thread_id,
        "checkpoint_ns": info.checkpoint_ns.rpartition("|")[0],
        "checkpoint_id": info.checkpoint_id,
    }
    return await _appears(cast("BaseCheckpointSaver[Any]", saver), where)


async def _appears(saver: BaseCheckpointSaver[Any], where: dict[str, Any]) -> bool:
    pause = FIRST_PAUSE_SECONDS
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while await saver.aget_tuple({"configurable": where}) is None:
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
    except Exception:
        log.exception("The state that a compaction has left cannot be read")
        return False
    return True
