"""What the states of threads hold, straight from the checkpointer, without a graph."""

from collections.abc import Iterable
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

Saver = BaseCheckpointSaver[Any]
BETWEEN_GRAPHS = "|"


def places_of(thread_id: str) -> list[dict[str, str]]:
    """Return where a thread's checkpoints may be, by the id that its records go by.

    A graph inside another one has its records under the thread and its own place in it.
    """
    whole = {"thread_id": thread_id, "checkpoint_ns": ""}
    outer, _, inside = thread_id.partition(BETWEEN_GRAPHS)
    return [whole, {"thread_id": outer, "checkpoint_ns": inside}] if inside else [whole]


async def state_of(saver: Saver, thread_id: str) -> dict[str, Any] | None:
    """Return what the newest checkpoint of a thread holds, by channel; None where there is none."""
    for place in places_of(thread_id):
        found = await saver.aget_tuple({"configurable": place})
        if found is not None:
            return dict(found.checkpoint["channel_values"])
    return None


async def all_held(saver: Saver, threads: Iterable[str]) -> list[Any]:
    """Return what the newest checkpoints of threads hold, and what waits to get into them."""
    held: list[Any] = []
    for thread_id in threads:
        for place in places_of(thread_id):
            found = await saver.aget_tuple({"configurable": place})
            if found is not None:
                held += [*found.checkpoint["channel_values"].values(), found.pending_writes]
    return held
