"""The OpenAI-compatible server of a test."""

from collections.abc import Iterator

import pytest

from openai_server import OpenAIServer


@pytest.fixture
def openai_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """Run a server for one test, where the models named `openai:...` go."""
    with OpenAIServer() as server:
        monkeypatch.delenv("OPENAI_API_BASE", raising=False)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", server.key)
        yield server
