"""One `langgraph dev` for the whole run, and conversations with it."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from fix_postgres import PostgresServer
from http_thread import HttpThread
from langgraph_server import LangGraphServer, make_project

Begin = Callable[..., Coroutine[Any, Any, HttpThread]]


@pytest.fixture(scope="session")
def server_dsn(postgres_server: PostgresServer, migrated_template: str) -> Iterator[str]:
    """Yield the DSN of the database that the server keeps its threads in."""
    name = postgres_server.create(migrated_template)
    yield postgres_server.dsn(name)
    postgres_server.drop(name)


@pytest.fixture(scope="session")
def server_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("server"), slow="./tests/slow_graph.py:graph")


@pytest.fixture(scope="session")
def langgraph_server(server_folder: Path, server_dsn: str) -> Iterator[LangGraphServer]:
    """Run one server for all tests; none of them may block its event loop."""
    with LangGraphServer(server_folder, DATABASE_URL=server_dsn, EVERLONG_POOL_SIZE="5") as server:
        yield server
    assert "BlockingError" not in server.log_text()


@pytest.fixture
async def http_client(langgraph_server: LangGraphServer) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=langgraph_server.url, api_key=None) as client:
        yield client


@pytest.fixture
def begin(http_client: LangGraphClient) -> Begin:
    """Begin threads of users who are new, with the settings that are given."""

    async def begin_thread(graph: str = "slow", **context: Any) -> HttpThread:
        given = {"user_id": f"kim-{uuid4().hex[:6]}@example.com", "memory": {"enabled": False}}
        return await HttpThread.new(http_client, given | context, graph)

    return begin_thread
