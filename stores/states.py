"""What the states of threads hold, straight from the checkpointer, without a graph."""

from collections.abc import AsyncGenerator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from everlong.stores.pruned_saver import PrunedSaver

BETWEEN_GRAPHS = "|"


def places_of(thread_id: str) -> list[dict[str, str]]:
    """Return where a thread's checkpoints may be, by the id that its records go by.

    A graph inside another one has its records under the thread and its own place in it.
    """
    whole = {"thread_id": thread_id, "checkpoint_ns": ""}
    outer, _, inside = thread_id.partition(BETWEEN_GRAPHS)
    return [whole, {"thread_id": outer, "checkpoint_ns": inside}] if inside else [whole]


async def states_of(saver: PrunedSaver, thread_id: str) -> AsyncGenerator[CheckpointTuple]:
    """Yield what a thread may go on from: the newest checkpoint first, then branches that wait.

    A branch waits for a person, though the thread went on elsewhere. One at a time: each may be
    large.
    """
    for place in places_of(thread_id):
        if (newest := await saver.aget_tuple({"configurable": place})) is None:
            continue
        yield newest
        if place["checkpoint_ns"]:
            continue
        for checkpoint_id in await saver.waiting_of(thread_id):
            config: RunnableConfig = {"configurable": place | {"checkpoint_id": checkpoint_id}}
            if checkpoint_id == newest.checkpoint["id"]:
                continue
            if (found := await saver.aget_tuple(config)) is not None:
                yield found


def held_in(state: CheckpointTuple) -> list[Any]:
    """Return what a checkpoint holds, and what waits to get into it."""
    return [*state.checkpoint["channel_values"].values(), state.pending_writes]
