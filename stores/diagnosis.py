"""What a person wants to know of a database that may be in trouble. Nothing here writes."""

from dataclasses import dataclass

import psycopg
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.postgres import AsyncPostgresStore
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from everlong.stores.postgres import DatabaseUnavailableError
from everlong.stores.postgres_binaries import EmbeddedPostgresError

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


def place_of(dsn: str) -> str:
    """Return where a DSN points, without its secrets.

    Raises:
        ValueError: it cannot be read; the text does not repeat it.
    """
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        msg = (
            "expected a DSN such as postgresql://kim@localhost:5432/everlong; got a text that is "
            "none. Check `--dsn` or DATABASE_URL."
        )
        raise ValueError(msg) from None
    who = f"{parts['user']}@" if "user" in parts else ""
    host = parts.get("host", "localhost")
    return f"postgresql://{who}{host}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


def reason_of(error: BaseException) -> str:
    """Return what a database error says, without the advice that follows in further lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__


async def diagnose(dsn: str) -> Diagnosis:
    """Ask a database how it is.

    Raises:
        DatabaseUnavailableError: it does not answer.
    """
    try:
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        msg = (
            f"expected a Postgres at {place_of(dsn)}; got: {reason_of(error)}. Check that it runs "
            "and that the DSN is right, or name none for the embedded one."
        )
        raise DatabaseUnavailableError(msg) from error
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
