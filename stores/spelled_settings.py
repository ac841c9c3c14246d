"""Settings that a variable of the environment spells as one text: lists of names, and objects."""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast


def names_in(value: Any) -> Any:
    """Return the names in a text, parted by commas; another value as it is."""
    if not isinstance(value, str):
        return value
    return tuple(name for one in value.split(",") if (name := one.strip()))


def object_in(alone: str = "") -> Callable[[Any], Any]:
    """Return what reads an object from JSON; a number stands for one under the name `alone`."""

    def read(value: Any) -> Any:
        found: Any = value
        if isinstance(value, str):
            try:
                found = json.loads(value)
            except ValueError as error:
                msg = f"expected a number or a JSON object; {error}"
                raise ValueError(msg) from error
        if alone and isinstance(found, int | float) and not isinstance(found, bool):
            return {alone: found}
        return cast("Any", found)

    return read


def zero_or_at_least(least: int) -> Callable[[Mapping[str, int]], Mapping[str, int]]:
    """Return what refuses numbers in between."""

    def check(value: Mapping[str, int]) -> Mapping[str, int]:
        wrong = {name: number for name, number in value.items() if number and number < least}
        if wrong:
            msg = f"expected 0 or at least {least:,}; got {wrong}"
            raise ValueError(msg)
        return value

    return check
