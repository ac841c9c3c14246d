"""Keep what a user had forgotten out of a thread: its history, summaries and requests (R49)."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.messages import (
    BaseMessage,
    HumanMessage,
    messages_from_dict,
    messages_to_dict,
)

from everlong.nodes.errors import InvalidInputError
from everlong.nodes.injection import still_known
from everlong.nodes.meter import recounted, uncounted
from everlong.nodes.recall import recall
from everlong.nodes.run import Run
from everlong.nodes.state import State, Update
from everlong.nodes.toolbox import Toolbox
from everlong.stores import tombstones
from everlong.stores.tombstones import Tombstones

log = logging.getLogger("everlong.memory")

TOOL = "memory_forget"


async def known(run: Run) -> Tombstones | None:
    """Return what the user had forgotten; None without a store, and where it cannot be read.

    Raises:
        InvalidInputError: the user was forgotten altogether.
    """
    if run.store is None:
        return None
    try:
        stones = await tombstones.load(run.store, run.user_id)
    except Exception:
        log.exception("What is forgotten cannot be read; this call goes on without it")
        return None
    if stones.user_forgotten:
        raise InvalidInputError(forgotten_user(run.user_id))
    return stones


def forgotten_user(user_id: str) -> str:
    """Say why a user who was forgotten is refused."""
    return (
        f"`user_id`: {user_id!r} was forgotten, and nothing is written for this id any more. "
        "`everlong forget-user ID --allow-again` lets it be used again."
    )


async def struck(state: State, stones: Tombstones | None) -> Update:
    """Return the update that strikes out of the thread what was forgotten since it was last open.

    Nothing where nothing was: the thread knows which tombstones its history was held against.
    """
    if stones is None or stones.digest == state.forgotten:
        return Update()
    update = Update(forgotten=stones.digest)
    changed = await asyncio.to_thread(_struck_messages, state.messages, stones)
    if changed:
        by_id = {message.id: message for message in changed}
        left = [by_id.get(one.id, one) for one in state.messages]
        new = len(uncounted(state.messages, state.meter))
        update["messages"] = changed
        update["meter"] = recounted(left[: len(left) - new])
    unflushed = _struck_unflushed(state.unflushed, stones)
    if unflushed != state.unflushed:
        update["unflushed"] = unflushed
    receipt = stones.struck(state.compaction)
    if receipt is not state.compaction:
        update["compaction"] = receipt
    return update


async def after_tools(
    run: Run, state: State, results: Sequence[BaseMessage], toolbox: Toolbox
) -> Update:
    """Return what else the node `tools` writes where a call has forgotten something: at once.

    The history and the call's own results are struck, and MEMORY.md is read again. The user's own
    request follows when it is answered (`after_answer`).
    """
    stones = await known(run)
    update = await struck(state, stones)
    if stones is None or not update:
        return Update()
    del update["forgotten"]  # the request is left as it is until it is answered
    asked = next((m for m in reversed(state.messages) if isinstance(m, HumanMessage)), None)
    left = [one for one in update.get("messages", ()) if asked is None or _id(one) != asked.id]
    recalled = await recall(run)
    injected = still_known(state.injected, stones)
    update["injected"] = injected
    update["messages"] = [*left, *(stones.struck_message(message) for message in results)]
    update["recalled"] = recalled
    update["call"] = state.call | {
        "forgot": True,
        "fixed_tokens": toolbox.fixed_tokens(run.context, injected),
        "memory_version": str(recalled.get("version", "")),
    }
    return update


async def after_answer(run: Run, state: State) -> Update:
    """Return what is left to strike when a call that has forgotten something is answered."""
    return await struck(state, await known(run)) if state.call.get("forgot") else Update()


async def without_forgotten(run: Run, update: Update) -> Update:
    """Return a compaction's update without what is forgotten: in its summary and its receipt."""
    stones = await known(run) if "compaction" in update else None
    if not stones:
        return update
    new = Update(compaction=stones.struck(update.get("compaction", {})))
    if "messages" in update:
        new["messages"] = [_struck_written(one, stones) for one in update["messages"]]
    return update | new


def _id(written: BaseMessage | dict[str, Any]) -> Any:
    return written.id if isinstance(written, BaseMessage) else written.get("id")


def _struck_messages(messages: Sequence[BaseMessage], stones: Tombstones) -> list[BaseMessage]:
    changed = [(message, stones.struck_message(message)) for message in messages]
    return [new for old, new in changed if new is not old]


def _struck_written(
    written: BaseMessage | dict[str, Any], stones: Tombstones
) -> BaseMessage | dict[str, Any]:
    if isinstance(written, BaseMessage):
        return stones.struck_message(written)
    return cast("dict[str, Any]", stones.struck(written))


def _struck_unflushed(
    unflushed: Sequence[Mapping[str, Any]], stones: Tombstones
) -> list[dict[str, Any]]:
    """Strike in the messages that wait for a flush and lie in no transcript."""
    found: list[dict[str, Any]] = []
    for part in unflushed:
        if "messages" in part:
            messages = messages_from_dict(part["messages"])
            left = [stones.struck_message(message) for message in messages]
            found.append(dict(part) | {"messages": messages_to_dict(left)})
        else:
            found.append(dict(part))
    return found


def in_state(state: State, update: Update) -> State:
    """Return the state as it will be with what was struck."""
    by_id = {one.id: one for one in update.get("messages", ()) if isinstance(one, BaseMessage)}
    return replace(
        state,
        messages=[by_id.get(one.id, one) for one in state.messages] if by_id else state.messages,
        unflushed=update.get("unflushed", state.unflushed),
        compaction=update.get("compaction", state.compaction),
        meter=update.get("meter", state.meter),
    )
