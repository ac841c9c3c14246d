"""What every store can hold: text and JSON-like values without NUL and broken characters.

One rule, so that the request, the state, the ledger and the files show the same text: NUL and a
lone surrogate each become U+FFFD; two surrogates that form a pair become their character.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

REPLACEMENT = "\ufffd"
_FAULTY = re.compile("[\x00\ud800-\udfff]")
_FAULT = re.compile("([\ud800-\udbff])([\udc00-\udfff])|[\x00\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Return the text as stores can hold it; the same object where nothing is wrong."""
    if text.isascii() and "\x00" not in text:  # ten times faster than the search
        return text
    return _FAULT.sub(_mended, text) if _FAULTY.search(text) else text


def clean(value: Any) -> Any:
    """Return a JSON-like value as stores can hold it; the same object where nothing is wrong.

    Texts and keys as in `clean_text`; NaN and infinities become None, tuples lists, and keys that
    are no texts what JSON makes of them. What is not JSON-like is left alone.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return _clean_mapping(cast("Mapping[Any, Any]", value))
    if isinstance(value, list | tuple):
        return _clean_items(cast("list[Any] | tuple[Any, ...]", value))
    return value


def _mended(fault: re.Match[str]) -> str:
    if fault[1] is None:
        return REPLACEMENT
    return fault[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _clean_mapping(mapping: Mapping[Any, Any]) -> Mapping[str, Any]:
    cleaned = {_clean_key(key): clean(value) for key, value in mapping.items()}
    same = isinstance(mapping, dict) and len(cleaned) == len(mapping)
    return mapping if same and _all_same(cleaned.items(), mapping.items()) else cleaned


def _clean_key(key: Any) -> str:
    return clean_text(key) if isinstance(key, str) else json.dumps(key)


def _clean_items(items: list[Any] | tuple[Any, ...]) -> list[Any]:
    cleaned = [clean(item) for item in items]
    return items if isinstance(items, list) and _all_same([cleaned], [items]) else cleaned


def _all_same(cleaned: Iterable[Iterable[Any]], given: Iterable[Iterable[Any]]) -> bool:
    """Tell whether row by row the very same objects are in both."""
    return all(
        new is old
        for new_row, old_row in zip(cleaned, given, strict=True)
        for new, old in zip(new_row, old_row, strict=True)
    )
