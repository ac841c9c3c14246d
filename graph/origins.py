"""Where in its thread a run goes on from."""

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from everlong.nodes.errors import InvalidInputError


async def refuse_gone(saver: object, config: RunnableConfig) -> None:
    """Refuse to go on from a checkpoint that is not there.

    LangGraph would begin the thread anew: its transcript would get a second beginning, and what
    follows would be stored over what is there.

    Raises:
        InvalidInputError: it is not, or not any more; nothing is written.
    """
    asked = config.get("configurable", {}).get("checkpoint_id")
    if not asked or not isinstance(saver, BaseCheckpointSaver):
        return
    if await saver.aget_tuple(config) is None:
        msg = (
            f"`checkpoint_id`: expected a checkpoint of the thread; {asked!r} is none, or not any "
            "more. Go on from one that the thread's history lists, or without an id from the "
            "newest; EVERLONG_CHECKPOINTS_KEPT is how many stay."
        )
        raise InvalidInputError(msg)
