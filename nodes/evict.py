"""Node `evict`: move oversized tool results to the user's files, leaving a preview and a path."""

import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime

from everlong.nodes.attempts import to_tell
from everlong.nodes.context import Context
from everlong.nodes.eviction import moved
from everlong.nodes.meter import recounted, uncounted
from everlong.nodes.oversize import evictable
from everlong.nodes.pruning import EVICTED
from everlong.nodes.run import run_of
from everlong.nodes.state import State, Update
from everlong.nodes.toolbox import Toolbox

log = logging.getLogger("everlong.eviction")


async def evict(state: State, runtime: Runtime[Context], *, toolbox: Toolbox) -> Update:
    """Move each oversized tool result to the store; the message keeps its id, name and status.

    Reads and writes `messages`; `meter`, where one of them was counted already; and leaves in
    `call` what the next node has to tell. Where the store fails, the original stays.
    """
    run = run_of(state, runtime)
    done: list[ToolMessage] = []
    events: list[dict[str, Any]] = []
    if run.store is None:
        return Update()
    reader, named = toolbox.reader(run.context), state.named_windows
    for message in evictable(run.context, state):
        try:
            evicted = await moved(run, run.store, message, named=named, reader=reader)
        except Exception:
            log.exception("Eviction of %s failed; the result stays where it is", message.id)
            continue
        done.append(evicted)
        record = evicted.additional_kwargs[EVICTED]
        log.info("Evicted %s: %d characters → %s", message.id, record["chars"], record["path"])
        events.append({"type": "eviction", "message": message.id, **record})
    if not done:
        return Update()
    update = Update(messages=done, call=to_tell(state.call, *events))
    return update | _recounted(state, done)


def _recounted(state: State, done: Sequence[ToolMessage]) -> Update:
    """Return the meter where it counted what has moved now; what was reported is void then."""
    by_id = {message.id: message for message in done}
    new = {message.id for message in uncounted(state.messages, state.meter)}
    if set(by_id) <= new:
        return Update()
    return Update(meter=recounted([by_id.get(each.id, each) for each in state.messages]))
