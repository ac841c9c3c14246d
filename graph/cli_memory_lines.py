"""A page of memory line by line, with where each line comes from."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from langgraph.store.base import BaseStore

from everlong.graph.demo import ROLES
from everlong.graph.wrapping import shortened
from everlong.stores import pages, provenance
from everlong.stores.provenance import Origin, Said

MARGIN = "    "
SAID_CHARS = 200


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A line as it is shown."""

    number: int
    """From 1, as sources cite it."""
    text: str
    keys: tuple[str, ...]
    """Of the facts that it says or comes from."""
    origins: tuple[Origin, ...] | None = None
    """Those facts; None where nobody asked."""


async def lines_of(store: BaseStore, user_id: str, path: str) -> list[Shown]:
    """Return the lines of `MEMORY.md` or `memory/YYYY-MM-DD.md`; none where there is no such."""
    found = await pages.lines_of(store, user_id, path)
    return [
        Shown(number=number, text=text, keys=keys)
        for number, (text, keys) in enumerate(found, start=1)
    ]


async def sourced(store: BaseStore, user_id: str, lines: Sequence[Shown]) -> list[Shown]:
    """Return the lines with the facts that they come from, and what was said."""
    known = provenance.Ledger(store, user_id)
    return [
        Shown(
            number=line.number,
            text=line.text,
            keys=line.keys,
            origins=tuple(await known.origins(line.keys)),
        )
        for line in lines
    ]


def said_of(line: Shown, *, own_page: str) -> Iterator[str]:
    """Yield what there is to say of a line's sources; nothing of a heading."""
    if line.origins is None or not line.text.strip() or line.text.lstrip().startswith("#"):
        return
    if not line.origins:
        yield "source not known"
    for origin in line.origins:
        if not origin.source:
            yield f"{origin.key}: gone from the ledger"
        elif not origin.source.startswith(f"{own_page}#"):
            yield f"Source: {origin.source}"
        elif not origin.said:
            yield "no message is named as its source"
        yield from map(quoted, origin.said)


def quoted(said: Said) -> str:
    """Say where a message is and the beginning of its words."""
    if not said.source:
        return f"message {said.message_id}: not in the transcript, or no longer"
    who = ROLES.get(said.role, said.role)
    return f"Source: {said.source} [{who}, {said.at}] {shortened(said.text, SAID_CHARS)}"


def as_data(line: Shown) -> dict[str, Any]:
    """Return a line as plain data."""
    found: dict[str, Any] = {"number": line.number, "text": line.text, "facts": list(line.keys)}
    if line.origins is not None:
        found["sources"] = [asdict(origin) for origin in line.origins]
    return found
