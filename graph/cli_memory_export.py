"""What `everlong memory export` does: all that is remembered of a user, to keep or to read."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore

from everlong.graph.cli_open import opened_store
from everlong.graph.terminal import err, out, put, put_error
from everlong.nodes.errors import InvalidInputError
from everlong.stores import ledger_archive, memory, pages
from everlong.stores.amounts import amount
from everlong.stores.documents import Document
from everlong.stores.entries import Entry, Fact

UNVERIFIED = "unverified.md"
VERSIONS = "versions"


@dataclass(frozen=True, kw_only=True)
class Everything:
    """All that is remembered of a user."""

    user_id: str
    text: str
    """MEMORY.md as anyone reads it."""
    document: Document | None
    versions: Sequence[Document]
    """Oldest first."""
    entries: Sequence[Entry]
    """In the ledger and the archive, oldest first."""
    archived: frozenset[str]
    """Keys of those in the archive."""
    unverified: Sequence[tuple[Entry, Fact]]
    days: dict[str, str]
    """The ledger's days as anyone reads them, by path."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is remembered, and nothing ever was."""
        return not (self.text or self.versions or self.entries)


async def everything(store: BaseStore, user_id: str) -> Everything:
    """Read all that is remembered of a user."""
    archived = await ledger_archive.entries(store, user_id)
    found = await pages.read_all(store, user_id)
    return Everything(
        user_id=user_id,
        text=found.pop(pages.DOCUMENT, ""),
        document=await memory.read(store, user_id),
        versions=list(reversed(await memory.versions(store, user_id))),
        entries=await ledger_archive.with_archived(store, user_id),
        archived=frozenset(entry.key for entry in archived),
        unverified=await memory.review(store, user_id),
        days=found,
    )


async def export(user_id: str, *, target: str | None, markdown: bool, dsn: str | None) -> int:
    """Write all that is remembered to a file, a folder or standard output; 1 where it is nothing.

    Raises:
        InvalidInputError: the folder holds something already.
        OSError: nothing can be written there.
    """
    folder = _empty_folder(target) if markdown and target else None
    async with opened_store(dsn) as store:
        found = await everything(store, user_id)
    if found.is_empty:
        put_error(f"nothing is remembered about {user_id} yet; nothing was written.")
        return 1
    if folder is not None:
        files = dict(as_files(found))
        _write(folder, files)
        put(f"{amount(len(files), 'file')} written to {folder}.", to=err)
        return 0
    lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in as_lines(found)]
    if target is None or target == "-":
        out.file.write("".join(lines))
        return 0
    await asyncio.to_thread(Path(target).write_text, "".join(lines), "utf-8")
    put(f"{amount(len(lines), 'line')} written to {target}.", to=err)
    return 0


def as_lines(found: Everything) -> Iterator[dict[str, Any]]:
    """Yield each thing as plain data; `type` says what it is."""
    if found.text:
        now = found.document.version if found.document else ""
        yield {"type": "document", "user": found.user_id, "version": now, "text": found.text}
    for version in found.versions:
        yield {"type": "version"} | asdict(version)
    for entry in found.entries:
        archived = entry.key in found.archived
        yield {"type": "entry", "archived": archived} | asdict(entry)
    for entry, fact in found.unverified:
        yield {"type": "unverified", "thread_id": entry.thread_id} | asdict(fact)


def as_files(found: Everything) -> Iterator[tuple[str, str]]:
    """Yield path and text of each file of a folder of Markdown."""
    if found.text:
        yield pages.DOCUMENT, found.text
    yield from found.days.items()
    for number, version in enumerate(found.versions, start=1):
        said = f"<!-- {version.version}, {version.written_at}, by {version.by} -->"
        yield f"{VERSIONS}/{number:04d}-{version.version}.md", f"{said}\n\n{version.text}"
    if found.unverified:
        lines = [f"- {fact.text}\n  ({fact.key}: {fact.doubt})" for _, fact in found.unverified]
        yield UNVERIFIED, "\n".join(["# Waiting for a review", "", *lines])


def _empty_folder(target: str) -> Path:
    folder = Path(target)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        msg = f"`--out`: expected a new or an empty folder; got {target!r}, which is not empty."
        raise InvalidInputError(msg)
    return folder


def _write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text.rstrip() + "\n", "utf-8")
