"""Variables of the process's settings, for one test."""

from collections.abc import Callable, Iterator

import pytest

from everlong.stores.settings import settings


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Set variables, as a restart of the process with others would."""

    def give(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        settings.cache_clear()

    yield give
    monkeypatch.undo()
    settings.cache_clear()
