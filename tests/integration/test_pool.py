"""The pool on a server that goes away for a while, and what is said of one that is not there."""

import asyncio
import time

import psycopg
import pytest

from everlong.stores import postgres
from everlong.stores.diagnosis import DATABASE_ERRORS
from everlong.stores.dsn import DatabaseUnavailableError
from everlong.stores.embedded import EmbeddedPostgres
from everlong.stores.postgres import migrate, open_pool
from fix_postgres import kill_server

SECRET = "geheim-4471"  # noqa: S105 - looked for in what is said


async def ask(pool, seconds):
    async with pool.connection(timeout=seconds) as connection:
        await connection.execute("SELECT 1")


async def test_a_server_is_used_again_soon_however_long_it_was_away(home):
    server = EmbeddedPostgres(home)
    with server as dsn:
        async with open_pool(dsn, size=2) as pool:
            until = time.monotonic() + 8  # waits that double would go on to the 15th second
            kill_server(home)
            while time.monotonic() < until:
                with pytest.raises(DATABASE_ERRORS):
                    await ask(pool, 0.5)
            server.start()
            await ask(pool, 4)


async def test_who_waits_is_served_though_the_first_attempts_were_given_up(home):
    server = EmbeddedPostgres(home)
    with server as dsn:
        async with open_pool(dsn, size=2) as pool:
            kill_server(home)
            waiting = [asyncio.create_task(ask(pool, 15)) for _ in range(3)]
            await asyncio.sleep(postgres.RECONNECT_SECONDS * 2)
            server.start()
            await asyncio.gather(*waiting)


async def test_an_unreachable_server_is_named_with_its_reason_and_without_its_password():
    with pytest.raises(DatabaseUnavailableError) as caught:
        await migrate(f"postgresql://nobody:{SECRET}@127.0.0.1:1/nothing")
    said = str(caught.value)
    assert said.startswith("expected a Postgres at postgresql://nobody@127.0.0.1:1/nothing; got: ")
    assert "Connection refused" in said
    assert "DATABASE_URL" in said
    assert SECRET not in said


async def test_the_reason_is_the_line_that_says_it(dsn):
    unknown = psycopg.conninfo.make_conninfo(dsn, dbname="nothing")
    with pytest.raises(DatabaseUnavailableError, match='database "nothing" does not exist'):
        await migrate(unknown)


async def test_a_dsn_that_cannot_be_read_is_not_repeated():
    with pytest.raises(ValueError, match="expected a DSN") as caught:
        await migrate(f"postgres//kim:{SECRET}@host")
    assert SECRET not in str(caught.value)
