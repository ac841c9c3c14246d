"""What may be told of a database: where it is, without secrets, and why it does not answer."""

import psycopg
from psycopg.conninfo import conninfo_to_dict


class DatabaseUnavailableError(ConnectionError):
    """Postgres cannot be reached."""


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


def unavailable(dsn: str, error: Exception) -> DatabaseUnavailableError:
    """Return the error that names the database, the reason and what to do.

    Raises:
        ValueError: the DSN cannot be read.
    """
    msg = (
        f"expected a Postgres at {place_of(dsn)}; got: {reason_of(error)}. Check that it runs and "
        "that DATABASE_URL is right, or leave DATABASE_URL unset for the embedded one."
    )
    return DatabaseUnavailableError(msg)
