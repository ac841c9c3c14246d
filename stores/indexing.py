"""What the word index holds: facts, and messages with what was moved out of them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from langgraph.store.base import BaseStore

from everlong.stores import files, transcripts
from everlong.stores.entries import entry_of, shown
from everlong.stores.lexical import CUT
from everlong.stores.namespaces import ROOT, raw, user_space
from everlong.stores.word_table import words_of

MOST_CHARS = 2_000_000
"""Of one text; of a longer one the beginning is indexed, and `CUT` says so."""


async def texts_of(
    store: BaseStore, namespace: tuple[str, ...], values: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return what of a namespace's items is indexed; `lexical.BLOCK_OF` says which are."""
    if namespace[2] != "transcripts":
        return [shown(fact) for value in values for fact in entry_of(dict(value)).facts]
    user_id = raw(namespace[1])
    texts: list[str] = []
    for value in values:
        texts += await _said(store, user_id, transcripts.entry_of("", dict(value)))
    return [part for text in texts for part in (text[:MOST_CHARS], CUT * (len(text) > MOST_CHARS))]


async def update(store: BaseStore, user_id: str | None = None) -> int:
    """Index now what the next search would have to, of a user or of all; return how many blocks."""
    words = words_of(store)
    if words is None:
        return 0
    return await words.update((ROOT,) if user_id is None else user_space(user_id))


async def _said(store: BaseStore, user_id: str, entry: transcripts.Entry) -> list[str]:
    """Return what a message says, and what was moved out of it, as far as it is there."""
    with suppress(LookupError):
        entry = await transcripts.whole(store, user_id, entry)
    moved = None
    if path := transcripts.moved_to(entry):
        with suppress(ValueError):  # whoever sent the message may have made the path up
            moved = await files.read_page(
                store, user_id, path, max_lines=MOST_CHARS, max_chars=MOST_CHARS
            )
    if moved is None:
        return [entry.text]
    return [entry.text, moved.text, *([CUT] if moved.next_offset is not None else [])]
