"""docs/configuration.md says what the settings say."""

from pathlib import Path

import pytest

from configuration_reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_of_settings_is_the_settings(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(reference(), "utf-8")
    assert PAGE.read_text("utf-8") == reference(), "the settings changed: make golden"


def test_each_setting_says_what_it_is() -> None:
    assert "| None |" not in reference()
