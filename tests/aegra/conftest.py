"""Two aegra servers for all tests of this folder; `make test-aegra` sets up what they need."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from aegra_server import DEPLOYMENT, Aegra, aegra, make_config, redis, run_once
from bearer_tokens import AUDIENCE, SECRET, bearer
from fix_postgres import PostgresServer

HERE = Path(__file__).parent
SECONDS = 90
IS_MISSING = find_spec("aegra_api") is None

Connect = Callable[..., LangGraphClient]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip where aegra is not installed: it needs Python 3.12 or newer, and Redis."""
    for item in items:
        if IS_MISSING and HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="needs aegra and Redis: `make test-aegra`"))


@dataclass(frozen=True)
class Pair:
    """Two servers that share a database and a Redis."""

    servers: tuple[Aegra, Aegra]
    dsn: str


@pytest.fixture(scope="session")
def pair(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    """Start both together, on a database that was empty before the deployment's migration."""
    folder = tmp_path_factory.mktemp("aegra")
    config = make_config(folder, slow=f"{HERE.parent / 'slow_graph.py'}:graph")
    name = postgres_server.create()
    cache, cache_url = redis(folder)
    given = {
        "DATABASE_URL": postgres_server.dsn(name),
        "REDIS_URL": cache_url,
        "EVERLONG_AUTH__SECRET": SECRET,
        "EVERLONG_AUTH__AUDIENCE": AUDIENCE,
    }
    first, second = (aegra(folder, one, config, **given) for one in ("first", "second"))
    try:
        run_once(DEPLOYMENT / "migrate.py", config, folder, **given)
        for process in (cache, first.process, second.process):
            process.start()
        first.await_answer()
        second.await_answer()
        yield Pair(servers=(first, second), dsn=postgres_server.dsn(name))
        for process in (first.process, second.process, cache):
            process.stop()
    finally:
        for process in (first.process, second.process, cache):
            process.kill()
        postgres_server.drop(name)


@pytest.fixture
async def connect(pair: Pair) -> AsyncIterator[Connect]:
    """Connect a user to one of the servers: `connect("kim")`, `connect("kim", server=1)`."""
    async with AsyncExitStack() as stack:
        opened: list[LangGraphClient] = []

        def client(user_id: str, server: int = 0) -> LangGraphClient:
            url, headers = pair.servers[server].url, bearer(user_id)
            made = get_client(url=url, api_key=None, headers=headers, timeout=SECONDS)
            opened.append(made)
            return made

        yield client
        for one in opened:
            await stack.enter_async_context(one)
