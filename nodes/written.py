"""Whether the state that a node works from is stored, for what must not be told before."""

import asyncio
import logging
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.runtime import Runtime

from everlong.nodes.internals import DURABILITY, saver_in
from everlong.nodes.run import thread_of

log = logging.getLogger("everlong.compaction")

WAIT_SECONDS = 5.0
FIRST_PAUSE_SECONDS = 0.002
LONGEST_PAUSE_SECONDS = 0.1


async def is_written(runtime: Runtime[Any]) -> bool:
    """Wait, where that is near, until the checkpoint that the node works from is stored.

    With the durability `sync` it is; with `async` it is being written; with `exit` it is not
    before the run ends. Where nothing is kept of the run, it is as written as it will ever be.
    """
    config = get_config()
    saver = saver_in(config)
    durability = config.get("configurable", {}).get(DURABILITY, "async")
    info = runtime.execution_info
    if saver is None or info is None or durability == "sync":
        return True
    if not thread_of(runtime):
        return True
    if durability == "exit":
        return False
    where = {
        "thread_id": info.thread_id,
        "checkpoint_ns": info.checkpoint_ns.rpartition("|")[0],
        "checkpoint_id": info.checkpoint_id,
    }
    return await _appears(saver, where)


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
