"""One version of MEMORY.md: its lines, where they come from, and what it has taken up. Pure."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from everlong.stores import ledger
from everlong.stores.entries import Entry, Line, iso, moment
from everlong.stores.text import clean, clean_text

BEGINNING = "1970-01-01T00:00:00Z"


@dataclass(frozen=True, kw_only=True)
class Document:
    """One version of a user's MEMORY.md."""

    version: str
    text: str
    watermark: str
    """Instant of the newest entry in it, for people; what is in it, `consumed` and `line` say."""
    consolidated_at: str
    """When entries were last taken up; an edit leaves it."""
    consumed: tuple[str, ...]
    """Keys of the entries that this version took up."""
    line: tuple[str, ...]
    """The versions that its text was made from, as far as entries are marked with them."""
    written_at: str
    by: str
    """Who or what wrote it."""
    origins: tuple[tuple[str, ...], ...] = ()
    """For each line of the text, the keys of the facts that it comes from."""
    edited: str = ""
    """The newest version of its line that a person wrote."""
    seen: str = ""
    """What `ledger.newest` named when this version had taken up all there was; else empty."""

    @property
    def lines(self) -> list[Line]:
        """The lines of the text with where they come from."""
        texts = self.text.split("\n")
        return [
            (text, self.origins[number] if number < len(self.origins) else ())
            for number, text in enumerate(texts)
        ]


def visible_lines(document: Document | None, promoted_fresh: Iterable[Entry]) -> list[Line]:
    """Return the lines of MEMORY.md as anyone reads it: the document, then what was saved since."""
    parts = [_trimmed(document.lines)] if document else []
    parts += [
        [(f"- {fact.text}", (fact.key,)) for fact in entry.verified]
        for entry in promoted_fresh
        if entry.promoted
    ]
    found: list[Line] = []
    for part in filter(None, parts):
        found += [*([("", ())] if found else []), *part]
    return found


def visible_text(document: Document | None, promoted_fresh: Iterable[Entry]) -> str:
    """Return MEMORY.md as anyone reads it: the document, then what was saved since."""
    return "\n".join(line for line, _ in visible_lines(document, promoted_fresh)).strip()


def _trimmed(lines: list[Line]) -> list[Line]:
    """Return lines without the empty ones at both ends."""
    said = [number for number, (text, _) in enumerate(lines) if text.strip()]
    return lines[said[0] : said[-1] + 1] if said else []


def with_origins(
    draft: Document, base: Document | None, origins: Mapping[str, Sequence[str]]
) -> Document:
    """Give each line its origins, by its text."""
    known = dict(base.lines) if base else {}
    known |= {clean_text(line): tuple(keys) for line, keys in origins.items()}
    return replace(draft, origins=tuple(known.get(line, ()) for line in draft.text.split("\n")))


def taken_up(
    known: Iterable[Entry], base: Document | None, consumed: Iterable[Entry]
) -> list[Entry]:
    """Return what the next version takes up: also what `base` did without marking it."""
    counting = (*base.line, base.version) if base else ()
    listed = base.consumed if base else ()
    carried = [one for one in known if one.key in listed and one.consumed_by not in counting]
    return sorted({one.key: one for one in [*carried, *consumed]}.values(), key=_key)


def having_seen(document: Document, newest: str, known: Iterable[Entry]) -> Document:
    """Note the newest entry in a document where no other is left fresh beside it."""
    line = (*document.line, document.version)
    fresh = ledger.not_consumed(known, document.consumed, line)
    return replace(document, seen="" if fresh else newest)


def _key(entry: Entry) -> str:
    return entry.key


def line_of(known: Iterable[Entry], base: Document | None) -> tuple[str, ...]:
    """Return the versions that the next one is made from, as far as entries are marked."""
    marking = {entry.consumed_by for entry in known}
    line = (*base.line, base.version) if base else ()
    return tuple(version for version in line if version in marking)


def watermark_of(base: Document | None, consumed: Iterable[Entry]) -> str:
    """Return the instant of the newest entry that was ever taken up."""
    instants = [base.watermark if base else BEGINNING, *(entry.at for entry in consumed)]
    return max(instants, key=moment)


def consolidated_at(base: Document | None, consumed: Sequence[Entry], instant: str) -> str:
    """Return when entries were last taken up: now, where some are."""
    if consumed:
        return iso(moment(instant))
    return base.consolidated_at if base else BEGINNING


def named(draft: Document, *, after: Document | None) -> Document:
    """Give a version its name: the same text from the same entries after the same version."""
    spelled = json.dumps([after.version if after else "", draft.text, draft.consumed])
    return replace(draft, version=hashlib.sha256(spelled.encode()).hexdigest()[:16])


def value_of(document: Document) -> dict[str, Any]:
    """Return a version as it is stored."""
    return clean(asdict(document))


def document_of(value: dict[str, Any]) -> Document:
    """Return the version that was stored as `value`."""
    lists = {name: tuple(value[name]) for name in ("consumed", "line")}
    origins = tuple(tuple(keys) for keys in value.get("origins", ()))
    fields: dict[str, Any] = value | lists | {"origins": origins}
    return Document(**fields)
