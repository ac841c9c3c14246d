"""What LangGraph keeps for itself in a run's configuration: the only module that knows its names.

They are no part of what it promises; where a release renames one, this is what has to follow.
"""

from dataclasses import replace
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph._internal._config import ensure_config
from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_MAP,
    CONFIG_KEY_CHECKPOINTER,
    CONFIG_KEY_DURABILITY,
    CONFIG_KEY_READ,
    CONFIG_KEY_REPLAY_STATE,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_SCRATCHPAD,
    CONFIG_KEY_STREAM,
    CONFIG_KEY_TASK_ID,
)
from langgraph._internal._scratchpad import PregelScratchpad
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import EmptyChannelError

Saver = BaseCheckpointSaver[Any]
CHECKPOINTER = CONFIG_KEY_CHECKPOINTER
DURABILITY = CONFIG_KEY_DURABILITY
RUNTIME = CONFIG_KEY_RUNTIME
STREAM = CONFIG_KEY_STREAM
TASK_ID = CONFIG_KEY_TASK_ID


def whole(*configs: RunnableConfig | None) -> RunnableConfig:
    """Return a configuration with what surrounds the call: that of the node which makes it, too."""
    return ensure_config(*configs)


def saver_in(config: RunnableConfig) -> Saver | None:
    """Return the checkpointer of the run; None where nothing is kept of it."""
    found: Any = config.get("configurable", {}).get(CHECKPOINTER)
    return cast("Saver", found) if isinstance(found, BaseCheckpointSaver) else None


def placed(config: RunnableConfig) -> RunnableConfig:
    """Return the configuration of a call in a node, with the place where its run is kept.

    The second call in a node has a number in it, which LangGraph would give only when it runs: too
    late to look at what is kept there.
    """
    given = config.get("configurable", {})
    scratchpad: Any = given.get(CONFIG_KEY_SCRATCHPAD)
    if not isinstance(scratchpad, PregelScratchpad):
        return config
    number = scratchpad.subgraph_counter()
    place = f"{given['checkpoint_ns']}|{number}" if number else given["checkpoint_ns"]
    counted = replace(scratchpad, subgraph_counter=lambda: 0)
    return config | {
        "configurable": given | {"checkpoint_ns": place, CONFIG_KEY_SCRATCHPAD: counted}
    }


def path_in(config: RunnableConfig) -> str:
    """Return the names of the nodes that a run is inside of, from the outermost on."""
    inside = str(config.get("configurable", {}).get("checkpoint_ns", ""))
    return "|".join(part.partition(":")[0] for part in inside.split("|"))


def step_around(config: RunnableConfig) -> str | None:
    """Return the checkpoint that the outermost graph's step is from: one for all its tasks."""
    return config.get("configurable", {}).get(CONFIG_KEY_CHECKPOINT_MAP, {}).get("")


def replayed_before(config: RunnableConfig) -> str | None:
    """Return the checkpoint from before which a graph inside goes on; None: from its newest.

    Where the graph around it is run again from an old checkpoint, the first call goes back, too.
    """
    replay: Any = config.get("configurable", {}).get(CONFIG_KEY_REPLAY_STATE)
    if replay is None or path_in(config) in replay._visited_ns:  # noqa: SLF001 - nothing else tells
        return None
    return replay.checkpoint_id


def value_in(config: RunnableConfig, name: str) -> Any:
    """Return what a channel of the graph that a node runs in holds; None where it is empty."""
    channel = channel_in(config, name)
    try:
        return None if channel is None else channel.get()
    except EmptyChannelError:
        return None


def channel_in(config: RunnableConfig, name: str) -> Any:
    """Return a channel of the graph that a node runs in; None where it has none of the name."""
    read: Any = config.get("configurable", {}).get(CONFIG_KEY_READ)
    channels: Any = read.args[1] if isinstance(read, partial) and read.args[1:] else {}
    return channels.get(name)
