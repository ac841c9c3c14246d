"""MEMORY.md: one document per user, its versions, and which ledger entries are in it (R41, R42).

What is consumed goes by entry. An entry is in the document where the document lists its key, or
where a version of the document's line, one that its text was made from, has marked it. So of two
consolidations at once the later stands, and what only the other one took up is fresh again; the
same holds, after a version was restored, for what newer ones had taken up.

Where each line comes from goes by the keys of facts. A fact that is doubted is in no document, and
is shown beside none.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from langgraph.store.base import BaseStore, PutOp

from everlong.stores import documents, ledger, ledger_archive
from everlong.stores.documents import Document
from everlong.stores.entries import Entry, Fact, iso, moment
from everlong.stores.namespaces import space
from everlong.stores.records import all_items, put_all
from everlong.stores.text import clean_text
from everlong.stores.turns import alone

KEY = "MEMORY.md"
BY_CODE = "consolidation"
"""Who wrote a version that no person did."""


class DocumentChangedError(Exception):
    """Another run wrote MEMORY.md after this one had read it; nothing was written."""


async def read(store: BaseStore, user_id: str) -> Document | None:
    """Return the user's document; None where there is none."""
    item = await store.aget(space(user_id, "memory"), KEY)
    return documents.document_of(item.value) if item else None


async def write(  # noqa: PLR0913 - what a version says
    store: BaseStore,
    user_id: str,
    *,
    text: str,
    base: Document | None,
    consumed: Sequence[Entry],
    instant: str,
    by: str,
    origins: Mapping[str, Sequence[str]] | None = None,
    also: Sequence[PutOp] = (),
) -> Document:
    """Replace `base`, from which the text was made, and mark the entries that it took up.

    `origins` holds, for lines of the text, the keys of the facts that they come from; a line
    without any keeps those that it has in `base`. `also` is written with it.

    The document is put first: after a crash its entries count as consumed though unmarked, and
    the next write marks them. The same again is harmless.

    Raises:
        DocumentChangedError: `base` is no longer the document.
    """
    newest = await ledger.newest(store, user_id)
    known = await ledger.entries(store, user_id)
    taken = documents.taken_up(known, base, consumed)
    draft = Document(
        version="",
        text=clean_text(text),
        watermark=documents.watermark_of(base, consumed),
        consolidated_at=documents.consolidated_at(base, consumed, instant),
        consumed=tuple(entry.key for entry in taken),
        line=documents.line_of(known, base),
        written_at=_after(base, instant),
        by=clean_text(by),
    )
    document = documents.named(documents.with_origins(draft, base, origins or {}), after=base)
    document = documents.having_seen(document, newest, known)
    by_person = document.version if by != BY_CODE else ""
    document = replace(document, edited=by_person or (base.edited if base else ""))
    async with alone("memory", user_id, store=store):
        document = await _standing(store, user_id, base, document)
        await put_all(store, [*_puts(user_id, document, taken), *also])
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
    old, now = documents.document_of(item.value), iso(moment(instant))
    in_old = {*old.line, old.version}
    bring_back = partial(ledger_archive.bring_back, unless_in=in_old, unless_before=old.written_at)
    await _own_archived(store, user_id)
    await bring_back(store, user_id)
    newest = await ledger.newest(store, user_id)
    known = await ledger.entries(store, user_id)
    taken = documents.taken_up(known, old, ())
    keys = tuple(entry.key for entry in taken)
    draft = replace(old, consumed=keys, line=documents.line_of(known, old), consolidated_at=now)
    async with alone("memory", user_id, store=store):
        base = await read(store, user_id)
        draft = replace(draft, written_at=_after(base, instant), by=clean_text(by))
        document = documents.having_seen(documents.named(draft, after=base), newest, known)
        document = replace(document, edited=document.version)
        await put_all(store, _puts(user_id, document, taken))
    await bring_back(store, user_id)  # what was just being archived, too
    return document


async def versions(store: BaseStore, user_id: str) -> list[Document]:
    """Return all versions that were ever written, newest first, the present one included."""
    found = await all_items(store, space(user_id, "memory", "versions"))
    known = [documents.document_of(item.value) for item in found]
    return sorted(known, key=lambda document: moment(document.written_at), reverse=True)


async def clear(store: BaseStore, user_id: str) -> None:
    """Delete the document; versions and ledger stay, and the whole ledger is fresh again.

    Also what was in the archive, which goes back to the ledger: first, so that a crash loses none.
    """
    await _own_archived(store, user_id)
    await ledger_archive.bring_back(store, user_id)
    await store.adelete(space(user_id, "memory"), KEY)
    await ledger_archive.bring_back(store, user_id)


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


async def has_fresh(store: BaseStore, user_id: str) -> bool:
    """Tell whether `fresh_entries` has any; where nothing was added since, without reading them."""
    document, newest = await asyncio.gather(read(store, user_id), ledger.newest(store, user_id))
    if newest == (document.seen if document else ""):
        return False
    return bool(await fresh_entries(store, user_id))


async def review(store: BaseStore, user_id: str) -> list[tuple[Entry, Fact]]:
    """Return the facts that are doubted and not yet judged, oldest first.

    `ledger.confirm` and `ledger.reject` take their keys.
    """
    known = await ledger.entries(store, user_id)
    return [(entry, fact) for entry in known for fact in entry.doubtful]


async def _own_archived(store: BaseStore, user_id: str) -> None:
    """Have the document's line name what took up all that is archived, before that comes back.

    Else, after a crash between, old entries that the document has would count as new.
    """
    archived = {entry.consumed_by for entry in await ledger_archive.entries(store, user_id)}
    async with alone("memory", user_id, store=store):
        document = await read(store, user_id)
        if document is not None and archived - {*document.line, document.version}:
            line = (*document.line, *sorted(archived.difference(document.line)))
            value = documents.value_of(replace(document, line=line))
            await put_all(store, [PutOp(space(user_id, "memory"), KEY, value, index=["text"])])


def _after(base: Document | None, instant: str) -> str:
    """Return when a version is written: after its base, whatever its writer's clock says."""
    when = moment(instant)
    if base is not None:
        when = max(when, moment(base.written_at) + timedelta(microseconds=1))
    return iso(when)


async def _standing(
    store: BaseStore, user_id: str, base: Document | None, document: Document
) -> Document:
    """Return what to write: a version that is there already stays as it was first written.

    Whoever has begun from it goes by its time.
    """
    current = await read(store, user_id)
    expected = base.version if base else None
    found = current.version if current else None
    if current is not None and found == document.version:
        return current
    if found != expected:
        msg = f"expected MEMORY.md at version {expected!r}; got {found!r}. Read it and try again."
        raise DocumentChangedError(msg)
    return document


def _puts(user_id: str, document: Document, taken: Iterable[Entry]) -> list[PutOp]:
    value = documents.value_of(document)
    return [
        PutOp(space(user_id, "memory"), KEY, value, index=False),
        PutOp(space(user_id, "memory", "versions"), document.version, value, index=False),
        *ledger.mark_consumed(user_id, taken, document.version),
    ]
