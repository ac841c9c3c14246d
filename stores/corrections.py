"""MEMORY.md as a person wants it: their text is a version, and what they add a fact (R63)."""

from collections.abc import Sequence
from dataclasses import dataclass

from langgraph.store.base import BaseStore, PutOp

from everlong.stores import documents, ledger, ledger_archive, memory
from everlong.stores.documents import Document
from everlong.stores.entries import Entry, facts_in, line_of, moment, zone_of
from everlong.stores.memory import DocumentChangedError
from everlong.stores.namespaces import space
from everlong.stores.text import clean_text


@dataclass(frozen=True, kw_only=True)
class Seen:
    """MEMORY.md as a person had it before them."""

    document: Document | None
    saved: Sequence[Entry]
    """What was saved since, and is shown with it."""

    @property
    def text(self) -> str:
        """All of it."""
        return documents.visible_text(self.document, self.saved)


async def see(store: BaseStore, user_id: str) -> Seen:
    """Return MEMORY.md as anyone reads it."""
    document, saved = await memory.recollect(store, user_id)
    return Seen(document=document, saved=saved)


async def correct(  # noqa: PLR0913 - whose, what, when, by whom
    store: BaseStore, user_id: str, seen: Seen, text: str, *, instant: str, zone: str, by: str
) -> Document:
    """Replace what was seen by a text; everything that was seen counts as taken up.

    Lines that are new go to the ledger, too, so that a MEMORY.md that is rebuilt has them again;
    facts of which no line is left stay in the ledger, marked as corrected, and never come back.

    Raises:
        DocumentChangedError: another run wrote MEMORY.md meanwhile; nothing was changed.
    """
    text = tidy(text)
    added = await _added(store, user_id, seen, text, instant=instant, zone=zone)
    try:
        return await memory.write(
            store,
            user_id,
            text=text,
            base=seen.document,
            consumed=[*seen.saved, *added],
            instant=instant,
            by=by,
            origins=_origins(text, [*seen.saved, *added]),
            also=await _taken_out(store, user_id, seen, text, instant=instant, zone=zone),
        )
    except DocumentChangedError:
        place = space(user_id, "ledger", "entries")
        await store.abatch([PutOp(place, entry.key, None) for entry in added])
        raise


def tidy(text: str) -> str:
    """Return a text as it is kept: without blanks at the ends of lines, nor empty lines around."""
    return "\n".join(clean_text(line).rstrip() for line in text.strip().splitlines())


async def _added(
    store: BaseStore, user_id: str, seen: Seen, text: str, *, instant: str, zone: str
) -> list[Entry]:
    """Add the lines that are new to the ledger."""
    known = {line_of(line) for line in seen.text.splitlines()}
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    facts = [fact for fact in facts_in("\n".join(lines)) if fact.text not in known]
    if not facts:
        return []
    added = await ledger.append(
        store, user_id, "save", facts, instant=instant, zone=zone, thread_id="", sources=[]
    )
    return [added]


async def _taken_out(
    store: BaseStore, user_id: str, seen: Seen, text: str, *, instant: str, zone: str
) -> list[PutOp]:
    """Return the marks of the facts that a line said or came from, and none does any more."""
    kept = set(text.splitlines())
    lines = documents.visible_lines(seen.document, seen.saved)
    standing = {key for line, keys in lines if line.rstrip() in kept for key in keys}
    gone = {key for line, keys in lines if line.rstrip() not in kept for key in keys} - standing
    found = [
        (await ledger_archive.entry(store, user_id, key.rpartition("#")[0]), key)
        for key in sorted(gone)
    ]
    known = [(entry, key) for entry, key in found if entry is not None]
    day = moment(instant).astimezone(zone_of(zone)).date().isoformat()
    return ledger.mark_corrected(user_id, known, day)


def _origins(text: str, entries: Sequence[Entry]) -> dict[str, list[str]]:
    """Return for the lines that say a fact of these entries its key."""
    keys = {fact.text: fact.key for entry in entries for fact in entry.facts}
    said = {line: line_of(line) for line in text.splitlines()}
    return {line: [keys[one]] for line, one in said.items() if one in keys}
