import pytest
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore


@pytest.fixture
def store() -> BaseStore:
    """Return an empty store; every record of a user has to work on it."""
    return InMemoryStore()
