"""Node `evict`: move oversized tool results to the user's files, leaving a preview and a path."""

import logging

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime

from everlong.nodes.context import Context
from everlong.nodes.eviction import moved
from everlong.nodes.pruning import EVICTED
from everlong.nodes.run import run_of
from everlong.nodes.state import State, Update
from everlong.nodes.thresholds import evictable

log = logging.getLogger("everlong.eviction")


async def evict(state: State, runtime: Runtime[Context]) -> Update:
    """Move each oversized tool result to the store; the message keeps its id, name and status.

    Reads and writes `messages`, which no meter counts yet. Where the store fails, the original
    stays.
    """
    run = run_of(state, runtime)
    done: dict[str | None, ToolMessage] = {}
    if run.store is None:
        return Update()
    for message in evictable(run.context, state):
        try:
            evicted = await moved(run, run.store, message)
        except Exception:
            log.exception("Eviction of %s failed; the result stays where it is", message.id)
            continue
        done[message.id] = evicted
        record = evicted.additional_kwargs[EVICTED]
        log.info("Evicted %s: %d characters → %s", message.id, record["chars"], record["path"])
        run.tell({"type": "eviction", "message": message.id, **record})
    return Update(messages=list(done.values())) if done else Update()
