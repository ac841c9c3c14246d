"""Whether words of an inner call are in what a client is sent, in whatever mode it streams."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage

from everlong.nodes.transcript import SUMMARY_NAME

OF_THE_STATE = ("invented",)
"""Fields of a receipt in the state that name what is in the summary."""
AROUND_CHARS = 200


def check_quiet(parts: Any, words: Sequence[str]) -> None:
    """Raise AssertionError where one of the words is in what is shown."""
    text = "\n".join(shown(parts))
    for word in words:
        at = text.find(word)
        around = text[max(at - AROUND_CHARS, 0) : at + AROUND_CHARS]
        assert at < 0, f"nothing of an inner call in the stream; got {around!r}"


def shown(part: Any) -> Iterator[str]:
    """Give every text of a part of a stream but what the state says of the summary."""
    if isinstance(part, BaseMessage):
        part = part.model_dump()
    if isinstance(part, Mapping):
        fields = cast("Mapping[str, Any]", part)
        if fields.get("name") != SUMMARY_NAME:
            for name, value in fields.items():
                yield from shown(value if name not in OF_THE_STATE else ())
    elif isinstance(part, list | tuple):
        for value in cast("Sequence[Any]", part):
            yield from shown(value)
    elif isinstance(part, str):
        yield part
