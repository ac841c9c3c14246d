"""Where facts stand on a day's page: counted as it is rendered."""

from hypothesis import given
from hypothesis import strategies as st

from everlong.stores.entries import Entry, Fact, day_lines, line_numbers


def entry(number: int, facts: int) -> Entry:
    key = f"20260308T{number:06d}"
    return Entry(
        key=key,
        kind="flush",
        day="2026-03-08",
        at="2026-03-08T12:00:00Z",
        zone="UTC",
        facts=tuple(Fact("x", key=f"{key}#{n}") for n in range(facts)),
        sources=(),
        thread_id="",
        promoted=False,
    )


@given(st.lists(st.integers(1, 5), max_size=8))
def test_lines_are_counted_as_they_are_rendered(sizes: list[int]) -> None:
    day = [entry(number, size) for number, size in enumerate(sizes)]
    rendered = {
        key: number for number, (_, keys) in enumerate(day_lines(day), start=1) for key in keys
    }
    assert line_numbers([fact.key for fact in one.facts] for one in day) == rendered


def test_an_entry_without_facts_takes_no_line() -> None:
    assert line_numbers([[], ["a"], [], ["b"]]) == {"a": 3, "b": 7}
