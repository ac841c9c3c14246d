"""MEMORY.md: one document per user, its versions, and which ledger entries are in it (R41, R42).

What is consumed goes by entry. An entry is in the document where the document lists its key, or
where a version of the document's line, one that its text was made from, has marked it. So of two
consolidations at once the later stands, and what only the other one took up is fresh again; the
same holds, after a version was restored, for what newer ones had taken up.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from langgraph.store.base import BaseStore, PutOp

from everlong.stores import ledger
from everlong.stores.ledger import Entry, iso, moment
from everlong.stores.namespaces import space
from everlong.stores.records import all_items, put_all
from everlong.stores.text import clean, clean_text

BEGINNING = "1970-01-01T00:00:00Z"
KEY = "MEMORY.md"


class DocumentChangedError(Exception):
    """Another run wrote MEMORY.md after this one had read it; nothing was written."""


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


async def read(store: BaseStore, user_id: str) -> Document | None:
    """Return the user's document; None where there is none."""
    item = await store.aget(space(user_id, "memory"), KEY)
    return _document(item.value) if item else None


async def write(  # noqa: PLR0913 - what a version says
    store: BaseStore,
    user_id: str,
    *,
    text: str,
    base: Document | None,
    consumed: Sequence[Entry],
    instant: str,
    by: str,
) -> Document:
    """Replace `base`, from which the text was made, and mark the entries that it took up.

    The document is put first: after a crash its entries count as consumed though unmarked, and
    the next write marks them. The same again is harmless.

    Raises:
        DocumentChangedError: `base` is no longer the document.
    """
    known = await ledger.entries(store, user_id)
    taken = _taken(known, base, consumed)
    draft = Document(
        version="",
        text=clean_text(text),
        watermark=_watermark(base, consumed),
        consolidated_at=_consolidated_at(base, consumed, instant),
        consumed=tuple(entry.key for entry in taken),
        line=_line(known, base),
        written_at=iso(moment(instant)),
        by=clean_text(by),
    )
    document = _named(draft, after=base)
    await _refuse_changed(store, user_id, base, document)
    await put_all(store, _puts(user_id, document, taken))
    return document


async def restore(
    store: BaseStore, user_id: str, version: str, *, instant: str, by: str
) -> Document:
    """Write an earlier version again, as a new one; the gap to the next consolidation begins anew.

    Raises:
        ValueError: there is no such version.
    """
    item = await store.aget(space(user_id, "memory", "versions"), version)
    if item is None:
        known_versions = [document.version for document in await versions(store, user_id)]
        msg = f"`version`: expected one of {known_versions}; got {version!r}"
        raise ValueError(msg)
    old, now = _document(item.value), iso(moment(instant))
    known = await ledger.entries(store, user_id)
    taken = _taken(known, old, ())
    keys = tuple(entry.key for entry in taken)
    draft = replace(old, consumed=keys, line=_line(known, old), consolidated_at=now)
    draft = replace(draft, written_at=now, by=clean_text(by))
    document = _named(draft, after=await read(store, user_id))
    await put_all(store, _puts(user_id, document, taken))
    return document


async def versions(store: BaseStore, user_id: str) -> list[Document]:
    """Return all versions that were ever written, newest first, the present one included."""
    found = await all_items(store, space(user_id, "memory", "versions"))
    documents = [_document(item.value) for item in found]
    return sorted(documents, key=lambda document: moment(document.written_at), reverse=True)


async def clear(store: BaseStore, user_id: str) -> None:
    """Delete the document; versions and ledger stay, and the whole ledger is fresh again."""
    await store.adelete(space(user_id, "memory"), KEY)


async def recollect(store: BaseStore, user_id: str) -> tuple[Document | None, list[Entry]]:
    """Return the document and the saved entries that are not in it, in one round trip."""
    document, saved = await asyncio.gather(read(store, user_id), ledger.saved(store, user_id))
    if document is None:
        return None, saved
    line = (*document.line, document.version)
    return document, ledger.not_consumed(saved, document.consumed, line)


async def fresh_entries(store: BaseStore, user_id: str) -> list[Entry]:
    """Return the ledger entries that are not in the document, oldest first; without one, all."""
    document = await read(store, user_id)
    if document is None:
        return await ledger.fresh(store, user_id, line=())
    line = (*document.line, document.version)
    return await ledger.fresh(store, user_id, consumed_in=document.consumed, line=line)


def visible_text(document: Document | None, promoted_fresh: Iterable[Entry]) -> str:
    """Return MEMORY.md as anyone reads it: the document, then what was saved since."""
    texts = [document.text] if document else []
    texts += [entry.text for entry in promoted_fresh if entry.promoted]
    return "\n\n".join(text.strip() for text in texts if text.strip())


async def _refuse_changed(
    store: BaseStore, user_id: str, base: Document | None, document: Document
) -> None:
    current = await read(store, user_id)
    expected = base.version if base else None
    found = current.version if current else None
    if found not in (expected, document.version):
        msg = f"expected MEMORY.md at version {expected!r}; got {found!r}. Read it and try again."
        raise DocumentChangedError(msg)


def _taken(known: Iterable[Entry], base: Document | None, consumed: Iterable[Entry]) -> list[Entry]:
    """Return what the next version takes up: also what `base` did without marking it."""
    counting = (*base.line, base.version) if base else ()
    listed = base.consumed if base else ()
    carried = [one for one in known if one.key in listed and one.consumed_by not in counting]
    return sorted({one.key: one for one in [*carried, *consumed]}.values(), key=_key)


def _key(entry: Entry) -> str:
    return entry.key


def _line(known: Iterable[Entry], base: Document | None) -> tuple[str, ...]:
    marking = {entry.consumed_by for entry in known}
    line = (*base.line, base.version) if base else ()
    return tuple(version for version in line if version in marking)


def _watermark(base: Document | None, consumed: Iterable[Entry]) -> str:
    instants = [base.watermark if base else BEGINNING, *(entry.at for entry in consumed)]
    return max(instants, key=moment)


def _consolidated_at(base: Document | None, consumed: Sequence[Entry], instant: str) -> str:
    if consumed:
        return iso(moment(instant))
    return base.consolidated_at if base else BEGINNING


def _named(draft: Document, *, after: Document | None) -> Document:
    """Give a version its name: the same text from the same entries after the same version."""
    spelled = json.dumps([after.version if after else "", draft.text, draft.consumed])
    return replace(draft, version=hashlib.sha256(spelled.encode()).hexdigest()[:16])


def _puts(user_id: str, document: Document, taken: Iterable[Entry]) -> list[PutOp]:
    value = clean(asdict(document))
    return [
        PutOp(space(user_id, "memory"), KEY, value, index=["text"]),
        PutOp(space(user_id, "memory", "versions"), document.version, value, index=False),
        *ledger.mark_consumed(user_id, taken, document.version),
    ]


def _document(value: dict[str, Any]) -> Document:
    lists = {"consumed": tuple(value["consumed"]), "line": tuple(value["line"])}
    fields: dict[str, Any] = value | lists
    return Document(**fields)
