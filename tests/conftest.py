"""What every test may use: databases, an OpenAI-compatible server, stores, golden files."""

import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from conversation import Conversation
from everlong.nodes import budget
from everlong.nodes.context import Context
from everlong.stores.postgres import open_stores

pytest_plugins = [
    "fix_postgres",
    "fix_openai",
    "fix_server",
    "fix_settings",
    "fix_users",
    "fix_sweeping",
]

hypothesis_settings.register_profile(
    "everlong",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
hypothesis_settings.register_profile("thorough", hypothesis_settings.get_profile("everlong"))
hypothesis_settings.load_profile(os.environ.get("TEST_PROFILE", "everlong"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Rewrite the golden files.")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Hold a text against the golden file of a name."""

    def check(name: str, text: str) -> None:
        path = Path(__file__).parent / "golden" / name
        if request.config.getoption("--update-golden"):
            path.write_text(text.rstrip() + "\n", "utf-8")
        assert text.rstrip() + "\n" == path.read_text("utf-8"), f"{name} changed: make golden"

    return check


@pytest.fixture(autouse=True)
def every_warning_is_new() -> None:
    """Let each test see the warnings that a process gives once."""
    budget._warn_once.cache_clear()


@dataclass(frozen=True)
class Backend:
    """A checkpointer and a store."""

    saver: BaseCheckpointSaver[Any]
    store: BaseStore


@pytest.fixture(params=["memory", "postgres"])
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[Backend]:
    """Plain in-memory stores, and the real ones on Postgres."""
    if request.param == "memory":
        yield Backend(InMemorySaver(), InMemoryStore())
        return
    kept = getattr(request.module, "CHECKPOINTS_KEPT", None)
    async with open_stores(request.getfixturevalue("dsn"), pool_size=4, kept=kept) as stores:
        yield Backend(stores.saver, stores.store)


@pytest.fixture
def converse(backend: Backend) -> Callable[..., Conversation]:
    """Begin a conversation: `converse(model=..., tools=..., compaction=...)`."""

    def begin(
        *, tools: Any = (), thread_id: str = "thread-1", clock: Any = None, **context: Any
    ) -> Conversation:
        given = {"user_id": "kim", "memory": {"enabled": False}} | context
        more = {"clock": clock} if clock else {}
        return Conversation(
            saver=backend.saver,
            store=backend.store,
            context=Context.model_validate(given),
            tools=tools,
            thread_id=thread_id,
            **more,
        )

    return begin
