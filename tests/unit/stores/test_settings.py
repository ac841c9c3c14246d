"""What the environment says of a run's settings."""

import pytest
from langgraph.runtime import Runtime

from everlong.nodes.context import Context, context_of
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.sections import Section
from everlong.stores.settings import environment


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch):
    """Set variables, in their order, and let the next reader see them."""

    def give(**variables: str) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        environment.cache_clear()

    yield give
    environment.cache_clear()


def test_two_underscores_part_a_section_from_its_field(given):
    given(EVERLONG_COMPACTION__PRUNE__ENABLED="false", EVERLONG_TIME_ZONE="Asia/Shanghai")
    assert environment() == {
        "compaction": {"prune": {"enabled": "false"}},
        "time_zone": "Asia/Shanghai",
    }
    assert not Context().compaction.prune.enabled


@pytest.mark.parametrize(
    ("section", "field"),
    [
        ("EVERLONG_COMPACTION", "EVERLONG_COMPACTION__TRIGGER_MESSAGES"),
        ("EVERLONG_COMPACTION__PRUNE", "EVERLONG_COMPACTION__PRUNE__ENABLED"),
        ("EVERLONG_COMPACTION", "EVERLONG_COMPACTION__PRUNE__ENABLED"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_section_that_has_a_value_and_fields_names_both(given, section, field, turned):
    both = {section: "5", field: "1"}
    given(**dict(reversed(both.items())) if turned else both)
    said = f"expected {section} or {field}; got both \\({section}='5'\\); unset the first"
    with pytest.raises(ValueError, match=said):
        environment()
    with pytest.raises(InvalidInputError, match=said):
        context_of(Runtime(context={"user_id": "kim"}))


def test_a_list_is_written_with_commas_between(given):
    given(EVERLONG_EVICTION__EXEMPT_TOOLS="read_file, lookup,")
    assert Context().eviction.exempt_tools == ("read_file", "lookup")


def _spelled(value):
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _variables(section, path=()):
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from _variables(value, (*path, name))
        elif value not in (None, ""):
            yield "EVERLONG_" + "__".join((*path, name)).upper(), _spelled(value)


def test_every_setting_of_a_run_can_be_given_as_text(given):
    usual = Context()
    given(**dict(_variables(usual)))
    assert Context() == usual
