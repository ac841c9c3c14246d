"""Keep the transcript complete (R17): for `compact`, before it removes, and `flush_memory`."""

import logging
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from everlong.nodes.run import Run
from everlong.nodes.state import State
from everlong.nodes.transcript import is_summary
from everlong.stores import transcripts

log = logging.getLogger("everlong.transcript")


def after(messages: Sequence[BaseMessage], through: str) -> list[BaseMessage] | None:
    """Return the messages after the one with this id; None where it is not among them."""
    if not through:
        return list(messages)
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].id == through:
            return list(messages[index + 1 :])
    return None


async def archive(run: Run, state: State) -> dict[str, Any]:
    """Append what the transcript lacks; return the new value of `State.archived`.

    Appending twice is harmless: an entry's key comes from its number and the message's id.

    Raises:
        Exception: the store's own, when it cannot be written.
    """
    store = run.archive
    if store is None:
        return state.archived
    count = int(state.archived.get("count", 0))
    new = after(state.messages, str(state.archived.get("through", "")))
    edited = new is None
    if new is None:  # the watermark's message was edited away: ask the archive what it holds
        held = {
            entry.message_id for entry in await transcripts.read(store, run.user_id, run.thread_id)
        }
        count = len(held)
        new = [message for message in state.messages if message.id not in held]
    new = [message for message in new if not is_summary(message)]
    if not new:
        return state.archived
    await transcripts.append(
        store,
        run.user_id,
        run.thread_id,
        new,
        first=count,
        instant=run.instant,
        may_be_there=edited,
    )
    return {"through": new[-1].id, "count": count + len(new)}
