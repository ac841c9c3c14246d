"""What a person wants to know of a database that may be in trouble. Nothing here writes."""

from dataclasses import dataclass

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.postgres import AsyncPostgresStore
from psycopg import sql

from everlong.stores.dsn import DatabaseUnavailableError, unavailable
from everlong.stores.postgres_binaries import EmbeddedPostgresError
from everlong.stores.work import Work
from everlong.stores.work_queue import MOST_LISTED
from everlong.stores.work_table import open_in

DATABASE_ERRORS = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    DatabaseUnavailableError,
    EmbeddedPostgresError,
)
"""What is raised where the database does not answer; the pool's time-out among them."""

STORE_ERROR = psycopg.Error
"""What the database raises, whatever is wrong."""

_TABLES = {
    "checkpoint_migrations": len(AsyncPostgresSaver.MIGRATIONS),
    "store_migrations": len(AsyncPostgresStore.MIGRATIONS),
}


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """How a database that answers is."""

    version: str
    """The server's."""
    read_only: bool
    migrations: int
    """How many it has."""
    wanted: int
    """How many this version of everlong has."""


async def diagnose(dsn: str) -> Diagnosis:
    """Ask a database how it is.

    Raises:
        DatabaseUnavailableError: it does not answer.
    """
    try:
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise unavailable(dsn, error) from error
    async with connection:
        cursor = await connection.execute("SHOW transaction_read_only")
        row = await cursor.fetchone()
        return Diagnosis(
            version=connection.info.parameter_status("server_version") or "",
            read_only=row == ("on",),
            migrations=sum([await _count(connection, table) for table in _TABLES]),
            wanted=sum(_TABLES.values()),
        )


async def _count(connection: psycopg.AsyncConnection, table: str) -> int:
    """Return how many migrations a table knows of; 0 where there is no table."""
    cursor = await connection.execute("SELECT to_regclass(%s)", (table,))
    if await cursor.fetchone() == (None,):
        return 0
    counting = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))
    cursor = await connection.execute(counting)
    row = await cursor.fetchone()
    return int(row[0]) if row else 0


async def open_work(dsn: str) -> list[Work]:
    """Return the memory work that is due or has failed; none where there are no tables yet.

    Raises:
        DatabaseUnavailableError: the database does not answer.
    """
    try:
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise unavailable(dsn, error) from error
    async with connection:
        cursor = await connection.execute("SELECT to_regclass('store')")
        if await cursor.fetchone() == (None,):
            return []
        given = {"prefix": None, "process": None, "limit": MOST_LISTED}
        return await open_in(connection, given)
