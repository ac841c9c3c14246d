"""One `langgraph dev` that knows its users, and what each of them asks of it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from bearer_tokens import AUDIENCE, SECRET, bearer
from fix_postgres import PostgresServer
from http_thread import said
from langgraph_server import LangGraphServer, make_project

SECRET_WORD = "PLUM-77"  # noqa: S105 - what kim says
QUIET_MEMORY = {"memory": {"enabled": False}}


@dataclass(frozen=True, kw_only=True)
class Asker:
    """A user, as their requests reach the server; without an id, nobody."""

    server: LangGraphServer
    user_id: str = ""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        own = bearer(self.user_id) if self.user_id else {}
        return httpx.request(
            method, f"{self.server.url}{path}", json=body, headers=own | headers, timeout=60
        )

    def get(self, method: str, path: str, body: Any = None) -> Any:
        """Return what the server answers; anything but success fails."""
        answer = self.ask(method, path, body)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:300]}"
        return answer.json()

    def thread(self, *texts: str, **context: Any) -> str:
        """Begin a thread in which the user says this, and return its id."""
        thread_id = self.get("POST", "/threads", {})["thread_id"]
        for text in texts:
            came = self.get("POST", f"/threads/{thread_id}/runs/wait", run(text, **context))
            assert "__error__" not in came, came
        return thread_id

    def everything(self, thread_id: str) -> Any:
        """Return all that the server shows of a thread."""
        return [
            self.get("GET", f"/threads/{thread_id}"),
            self.get("POST", f"/threads/{thread_id}/history", {"limit": 50}),
            self.get("GET", f"/threads/{thread_id}/runs"),
        ]


def run(text: str = "Hello.", **context: Any) -> dict[str, Any]:
    """Return the body of a run in which the user says this."""
    return {"assistant_id": "slow", "input": said(text), "context": QUIET_MEMORY | context}


def command(method: str, **params: Any) -> dict[str, Any]:
    """Return a command of the protocol over sockets."""
    return {"id": 1, "method": method, "params": params}


def filled(given: Any, ids: dict[str, str]) -> Any:
    """Return the body or path with these ids in their places."""
    if isinstance(given, str):
        return given.format(**ids) if "{" in given else given
    if isinstance(given, dict):
        return {name: filled(value, ids) for name, value in given.items()}
    return [filled(one, ids) for one in given] if isinstance(given, list) else given


@dataclass(frozen=True, kw_only=True)
class UsersServer:
    """The server, and what was there before it knew its users."""

    server: LangGraphServer
    dsn: str
    old_thread: str
    """Of kim, who was then taken at her word."""


@pytest.fixture(scope="session")
def users_server(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresServer,
    migrated_template: str,
) -> Iterator[UsersServer]:
    name = postgres_server.create(migrated_template)
    folder = make_project(tmp_path_factory.mktemp("users"), slow="./tests/slow_graph.py:graph")
    database = {"DATABASE_URL": postgres_server.dsn(name), "EVERLONG_POOL_SIZE": "5"}
    with LangGraphServer(folder, **database) as before:
        old = Asker(server=before).thread("My code is OLD-1.", user_id="kim")
    known = {"EVERLONG_AUTH__SECRET": SECRET, "EVERLONG_AUTH__AUDIENCE": AUDIENCE}
    often = {"CRON_SCHEDULER_SLEEP_TIME": "1"}
    with LangGraphServer(folder, **database, **known, **often) as server:
        yield UsersServer(server=server, dsn=database["DATABASE_URL"], old_thread=old)
    assert "BlockingError" not in server.log_text()
    postgres_server.drop(name)


@pytest.fixture(scope="session")
def kims(users_server: UsersServer) -> tuple[Asker, dict[str, str]]:
    """A thread of kim's, its run and its newest checkpoint."""
    kim = Asker(server=users_server.server, user_id="kim-of-the-plum")
    thread_id = kim.thread(f"My code is {SECRET_WORD}.")
    (only,) = kim.get("GET", f"/threads/{thread_id}/runs")
    checkpoint = kim.get("GET", f"/threads/{thread_id}/state")["checkpoint"]["checkpoint_id"]
    return kim, {"thread": thread_id, "run": only["run_id"], "checkpoint": checkpoint}


@pytest.fixture
def user(users_server: UsersServer) -> Callable[[str], Asker]:
    """Return a user who is new; `user("")` is nobody."""

    def named(name: str) -> Asker:
        user_id = f"{name}-{uuid4().hex[:6]}@example.com" if name else ""
        return Asker(server=users_server.server, user_id=user_id)

    return named
