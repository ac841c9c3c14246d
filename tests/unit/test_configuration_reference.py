"""docs/configuration.md says what the settings say."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from configuration_reference import reference
from everlong.nodes.context import Context
from everlong.stores.settings import Settings
from markdown_blocks import ROOT, pages

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
VARIABLE = re.compile(r"\bEVERLONG_[A-Z_]*[A-Z]\b(?!_*\.\.\.)")
OF_COMPOSE = {"EVERLONG_IMAGE", "EVERLONG_PORT"}


def test_the_page_of_settings_is_the_settings(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        PAGE.write_text(reference(), "utf-8")
    assert PAGE.read_text("utf-8") == reference(), "the settings changed: make golden"


def test_each_setting_says_what_it_is() -> None:
    assert "| None |" not in reference()


def test_each_setting_of_the_schemas_has_a_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", reference(), re.MULTILINE)
    leaves = [*leaves_of(Context), *leaves_of(Settings)]
    assert len(rows) == len(leaves) - 1  # `user_id` is no setting
    assert sorted(set(rows)) == sorted({one for one in leaves if one != "EVERLONG_USER_ID"})


def leaves_of(model: type[BaseModel]) -> Iterator[str]:
    """Yield the variable of each property of a schema that has no properties of its own."""
    schema = model.model_json_schema()

    def under(part: dict[str, Any], path: tuple[str, ...]) -> Iterator[str]:
        for name, one in part["properties"].items():
            inner = schema["$defs"][one["$ref"].rpartition("/")[2]] if "$ref" in one else one
            if "properties" in inner:
                yield from under(inner, (*path, name))
            else:
                yield name if name.isupper() else "EVERLONG_" + "__".join((*path, name)).upper()

    return under(schema, ())


def test_each_variable_that_a_page_or_a_file_names_is_a_setting() -> None:
    known = set(VARIABLE.findall(reference())) | OF_COMPOSE
    files = [
        *pages(),
        ROOT / ".env.example",
        *ROOT.glob("*compose.yaml"),
        *ROOT.glob("deploy/**/*"),
    ]
    for one in files:
        if one.is_file():
            unknown = set(VARIABLE.findall(one.read_text("utf-8"))) - known
            assert unknown == set(), one.name
