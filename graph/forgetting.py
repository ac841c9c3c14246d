"""Forget a fact, or a user altogether, in a process of your own (R49)."""

from typing import Any, cast

from langgraph.store.base import BaseStore

from everlong.graph.agent import utc_now
from everlong.graph.runtime import Agent, Compiled
from everlong.nodes.errors import InvalidInputError
from everlong.stores import erasure, forgetting
from everlong.stores.erasure import Erased
from everlong.stores.forgetting import Forgotten


async def forget(agent: Agent | Compiled, user_id: str, what: str) -> Forgotten:
    """Erase one thing that is known of a user, everywhere; again is harmless.

    `what` is a `Source:` of one line, or words. Where these don't name one thing, nothing is erased
    and `matters` are what may be meant.

    Raises:
        InvalidInputError: the agent has no store.
        UserForgottenError: the user was forgotten altogether.
    """
    store, saver = _stores(agent)
    return await forgetting.forget(store, user_id, what, at=_now(), saver=saver)


async def forget_user(agent: Agent | Compiled, user_id: str) -> Erased:
    """Erase everything of a user: records, files and checkpoints; a call under way writes no more.

    The id is refused from then on, until `allow_again`.

    Raises:
        InvalidInputError: the agent has no store.
    """
    store, saver = _stores(agent)
    return await erasure.forget_user(store, user_id, saver=saver, at=_now())


async def allow_again(agent: Agent | Compiled, user_id: str) -> bool:
    """Let the id of a user who was forgotten be used again; return whether it was forgotten.

    Raises:
        InvalidInputError: the agent has no store.
    """
    store, saver = _stores(agent)
    return await erasure.allow_again(store, user_id, saver=saver)


def _stores(agent: Agent | Compiled) -> tuple[BaseStore, Any]:
    graph = agent.graph if isinstance(agent, Agent) else agent
    if not isinstance(graph.store, BaseStore):
        msg = "expected an agent with a store; this one keeps no records"
        raise InvalidInputError(msg)
    saver: Any = cast("Any", graph.checkpointer)
    return graph.store, None if isinstance(saver, bool) else saver


def _now() -> str:
    return utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
