"""Where a process's data is: a Postgres that it is told of, else the embedded one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from everlong.stores.embedded import EmbeddedPostgres, default_home
from everlong.stores.settings import settings


@asynccontextmanager
async def open_database(dsn: str | None = None) -> AsyncGenerator[str]:
    """Yield the DSN: `dsn`, else `DATABASE_URL`, else the embedded server's, held meanwhile.

    Raises:
        EmbeddedPostgresError: the embedded server cannot be started.
    """
    given = dsn or settings().database_url
    if given:
        yield given
        return
    server = EmbeddedPostgres(default_home())
    starting = asyncio.ensure_future(asyncio.to_thread(server.start))
    try:
        yield await asyncio.shield(starting)
    finally:
        await asyncio.wait([starting])  # a cancel cannot stop the thread, and must not leave it
        await asyncio.to_thread(server.release)
