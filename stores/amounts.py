"""Spell a number of things."""


def amount(count: int, one: str, many: str = "") -> str:
    """Return `1 fact`, `1,240 facts`; `many` where the plural is not `one` with an `s`."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
