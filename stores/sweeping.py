"""Erase what is forgotten from a user's records: every namespace that there is (R49)."""

import asyncio
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import messages_from_dict
from langgraph.store.base import BaseStore, PutOp, SearchItem

from everlong.stores import files, gate, ledger_archive, transcripts
from everlong.stores.entries import Fact, without_facts
from everlong.stores.files import File
from everlong.stores.namespaces import space, user_space
from everlong.stores.passages import without
from everlong.stores.records import FIRST_LIMIT, all_items, put_all
from everlong.stores.spelling import spelled
from everlong.stores.tombstones import Tombstones
from everlong.stores.word_table import words_of

BY_FACT = frozenset({"ledger", ledger_archive.KIND, "memory"})
LONG_MESSAGES = "transcripts/"
"""Where in the user's files messages lie that are too long for a record."""


@dataclass(frozen=True, kw_only=True)
class Swept:
    """How much was erased."""

    facts: int = 0
    """Of the ledger, archived or not."""
    lines: int = 0
    """Of MEMORY.md and its versions."""
    records: int = 0
    """Messages of transcripts, records of compactions and the like in which it was struck out."""
    files: int = 0
    threads: int = 0
    """Whose checkpoints were changed."""


async def sweep(
    store: BaseStore, user_id: str, stones: Tombstones, keys: Collection[str] = ()
) -> Swept:
    """Erase the facts of these keys and all that says what is forgotten; again is harmless."""
    facts = await _sweep_ledger(store, user_id, stones, keys)
    lines = await _sweep_documents(store, user_id, stones, keys)
    records = 0
    for place in await namespaces_of(store, user_id):
        if place[2] not in BY_FACT | gate.PLAIN:
            records += await _sweep_records(store, place, stones)
    swept = await _sweep_files(store, user_id, stones)
    await update_index(store, user_id)
    return Swept(facts=facts, lines=lines, records=records, files=swept)


async def update_index(store: BaseStore, user_id: str) -> None:
    """Take what has gone out of what a store that ranks by words has indexed of a user."""
    if (words := words_of(store)) is not None:
        await words.update(user_space(user_id))


async def namespaces_of(store: BaseStore, user_id: str) -> list[tuple[str, ...]]:
    """Return every namespace of a user that holds something, whatever kind it is."""
    prefix, limit = user_space(user_id), FIRST_LIMIT
    while len(found := await store.alist_namespaces(prefix=prefix, limit=limit)) == limit:
        limit *= 4
    return [place for place in found if place[:2] == prefix]


async def _sweep_ledger(
    store: BaseStore, user_id: str, stones: Tombstones, keys: Collection[str]
) -> int:
    """Take facts out of their entries; an entry without any goes, with its mark and verdicts."""

    def goes(fact: Fact) -> bool:
        return fact.key in keys or stones.matches(fact.text)

    places = (space(user_id, "ledger", "entries"), space(user_id, ledger_archive.KIND))
    puts: list[PutOp] = []
    gone: list[str] = []
    for place in places:
        for item in await all_items(store, place):
            value, some = without_facts(item.value, goes)
            if not some:
                continue
            gone += [fact.key for fact in some]
            puts.append(PutOp(place, item.key, value, index=["text"]))
            if value is None:
                puts.append(PutOp(space(user_id, "ledger", "consumed"), item.key, None))
    verdicts = space(user_id, "ledger", "verdicts")
    await put_all(store, [*puts, *(PutOp(verdicts, key, None) for key in gone)])
    return len(gone)


async def _sweep_documents(
    store: BaseStore, user_id: str, stones: Tombstones, keys: Collection[str]
) -> int:
    """Take lines out of MEMORY.md and its versions; what else they said is fresh again."""
    puts: list[PutOp] = []
    left: set[str] = set()
    count = 0
    for item in await all_items(store, space(user_id, "memory")):
        texts = str(item.value["text"]).split("\n")
        known = cast("list[list[str]]", item.value.get("origins", []))
        origins = [known[at] if at < len(known) else list[str]() for at in range(len(texts))]
        goes = [
            stones.matches(text) or (len(own) > 0 and set(own) <= set(keys))
            for text, own in zip(texts, origins, strict=True)
        ]
        if not any(goes):
            continue
        count += sum(goes)
        entries = {
            key.rpartition("#")[0]
            for own, going in zip(origins, goes, strict=True)
            for key in own
            if going and key not in keys
        }
        left |= entries
        value = item.value | {
            "text": "\n".join(t for t, going in zip(texts, goes, strict=True) if not going),
            "origins": [own for own, going in zip(origins, goes, strict=True) if not going],
            "consumed": [key for key in item.value["consumed"] if key not in entries],
            "seen": "",
        }
        puts.append(PutOp(item.namespace, item.key, value, index=False))
    await put_all(store, puts)
    if left:
        await ledger_archive.bring_back(store, user_id, keys=left)
        marks = space(user_id, "ledger", "consumed")
        await put_all(store, [PutOp(marks, key, None) for key in left])
    return count


def _index(place: tuple[str, ...], value: Any) -> Any:
    """Return what of a changed record the store embeds, where it does."""
    return transcripts.index_of(value) if value and place[2] == "transcripts" else False


async def _sweep_records(store: BaseStore, place: tuple[str, ...], stones: Tombstones) -> int:
    items = [item for item in await all_items(store, place) if item.namespace == place]
    values = await asyncio.to_thread(_all_without, place[2], items, stones)
    puts = [
        PutOp(place, item.key, value, index=_index(place, value))
        for item, value in zip(items, values, strict=True)
        if value is not item.value
    ]
    await put_all(store, puts)
    return len(puts)


def _all_without(kind: str, items: Sequence[SearchItem], stones: Tombstones) -> list[Any]:
    return [gate.without_forgotten(kind, item.value, stones) for item in items]


async def _sweep_files(store: BaseStore, user_id: str, stones: Tombstones) -> int:
    count = 0
    for file in await files.list_paths(store, user_id):
        text = await files.read_text(store, user_id, file.path)
        if text is None:
            continue
        changed = await asyncio.to_thread(_file_without, file, text, stones)
        if changed is not text:
            await files.write(store, user_id, file.path, changed, origin=file.origin)
            count += 1
    return count


def _file_without(file: File, text: str, stones: Tombstones) -> str:
    if file.path.startswith(LONG_MESSAGES):
        (message,) = messages_from_dict([json.loads(text)])
        changed = stones.struck_message(message)
        return text if changed is message else spelled(changed)
    is_result = bool(file.origin.get("call"))
    return without(text, stones.says_in_material if is_result else stones.says)
