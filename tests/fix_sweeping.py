"""A clock that a test turns on, and a sweep by it."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from everlong.graph.sweeping import Broom
from everlong.nodes.context import Context
from everlong.stores.postgres import Stores, open_stores


class Calendar:
    """The true time, and so many days more."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)  # noqa: TID251 - checkpoints tell the true time
        self.days = 0.0

    def __call__(self) -> datetime:
        return self.now + timedelta(days=self.days)


def broom(stores: Stores, calendar: Calendar, **settings: object) -> Broom:
    """Return what sweeps by these settings."""
    context = Context.model_validate({"memory": {"consolidate": "on_request"}} | settings)
    return Broom(stores=stores, context=context, clock=calendar)


@pytest.fixture
def calendar() -> Calendar:
    return Calendar()


@pytest.fixture
async def stores(dsn: str) -> AsyncIterator[Stores]:
    """What a process keeps open on the test's own database."""
    async with open_stores(dsn, pool_size=4) as opened:
        yield opened
