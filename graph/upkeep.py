"""A worker's sweep of everything, once a day, a little at a time."""

import logging
import time
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from everlong.graph.sweeping import Broom, Swept, sweep_checkpoints, sweep_user
from everlong.nodes.working import now_of
from everlong.stores import work_queue
from everlong.stores.tombstones import UserForgottenError
from everlong.stores.users import SWEEP, users_after

log = logging.getLogger("everlong.worker")

EVERY = timedelta(days=1)
LOOK_SECONDS = 600.0
"""Between two looks whether a sweep is due."""
LOOK_AGAIN_DAYS = 30
"""Between two looks at a thread in which something old has to stay: to look costs its state."""
USERS_AT_ONCE = 20


class Upkeep:
    """How far the sweep is stands in the store, so that workers go on with each other's.

    Two that take the same step at once do it twice, which is harmless; one that ends in the middle
    of a step leaves its users to the next day's sweep.
    """

    def __init__(self, broom: Broom) -> None:
        self._broom = replace(broom, again_days=LOOK_AGAIN_DAYS)
        self._look_at = 0.0
        self._done = Swept()

    async def step(self) -> bool:
        """Do a small part of what is due; return whether more is; a failure is logged."""
        if time.monotonic() < self._look_at:
            return False
        try:
            has_more = await self._step()
        except Exception:
            log.exception("What is old could not be let go of; the next look tries again")
            has_more = False
        if not has_more:
            self._look_at = time.monotonic() + LOOK_SECONDS
        return has_more

    async def _step(self) -> bool:
        state = await self._read()
        if "user" not in state:
            if state.get("thread") is not None:
                return await self._threads(state)
            if not self._is_due(state):
                return False
            state = {"user": ""}
        return await self._users(state)

    async def _users(self, state: dict[str, Any]) -> bool:
        store = self._broom.stores.store
        users = await users_after(store, state["user"], most=USERS_AT_ONCE)
        await self._write({"user": users[-1]} if users else {"thread": ""})
        for user_id in users:
            try:
                await sweep_user(self._broom, user_id, self._done)
            except UserForgottenError:
                continue  # meanwhile: nothing is left to let go of
            except Exception:
                log.exception("What is old of a user could not be let go of; tomorrow it is tried")
        return True

    async def _threads(self, state: dict[str, Any]) -> bool:
        after = await sweep_checkpoints(self._broom, self._done, after=state["thread"])
        if after:
            # else another worker is further, or a user has been forgotten
            if await self._read() == state:
                await self._write({"thread": after})
            return True
        await work_queue.sweep(self._broom.stores.store)
        await self._write({"at": now_of(self._broom.clock)})
        log.info("Swept: %s", self._done)
        self._done = Swept()
        return False

    def _is_due(self, state: dict[str, Any]) -> bool:
        last = state.get("at")
        if not last:
            return True
        since = self._broom.now - datetime.fromisoformat(last)
        return not timedelta(0) <= since < EVERY  # in the future: a clock was once ahead

    async def _read(self) -> dict[str, Any]:
        item = await self._broom.stores.store.aget(*SWEEP)
        return dict(item.value) if item else {}

    async def _write(self, state: dict[str, Any]) -> None:
        await self._broom.stores.store.aput(*SWEEP, state, index=False)
