"""Whom a run believes on a server that knows its users."""

from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.runtime import Runtime, ServerInfo

from everlong.nodes.context import user_of
from everlong.nodes.errors import MissingUserError
from everlong.stores.settings import settings

ANONYMOUS: Any = SimpleNamespace(identity="anonymous", is_authenticated=False)


@pytest.fixture
def known_users(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVERLONG_AUTH__SECRET", "a secret of thirty-two bytes for tests")
    monkeypatch.setenv("EVERLONG_AUTH__AUDIENCE", "everlong")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def runtime(user: Any) -> Runtime[Any]:
    server = ServerInfo(assistant_id="", graph_id="", user=user)
    return Runtime(context={"user_id": "kim"}, server_info=server)


@pytest.mark.usefixtures("known_users")
def test_a_server_that_has_lost_its_rules_makes_nobody_of_a_claim():
    with pytest.raises(MissingUserError):
        user_of(runtime(ANONYMOUS))


def test_without_users_the_claim_counts():
    assert user_of(runtime(ANONYMOUS)) == "kim"
