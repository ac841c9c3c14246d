"""What `everlong memory correct` does: a person's text becomes a version of MEMORY.md."""

import asyncio
import sys
import tempfile
from pathlib import Path

import click
from langgraph.store.base import BaseStore

from everlong.graph.agent import utc_now
from everlong.graph.cli_memory_versions import versions_of
from everlong.graph.cli_open import opened_store
from everlong.graph.cli_settings import context_for
from everlong.graph.terminal import put, put_error
from everlong.nodes.context import Context
from everlong.nodes.tokens import estimate_text
from everlong.stores import corrections, memory, tombstones
from everlong.stores.amounts import amount
from everlong.stores.corrections import Seen
from everlong.stores.documents import Document
from everlong.stores.memory import DocumentChangedError

STDIN = "-"


class NotCorrectedError(Exception):
    """The text was refused; nothing was changed."""


def correct(user_id: str, *, file: str | None, base: str | None, by: str, dsn: str | None) -> int:
    """Replace MEMORY.md by what a file or the editor gives; 1 where that is refused."""
    if file is None and not sys.stdin.isatty():
        put_error("expected --file PATH, or --file - for standard input: here is no terminal.")
        return 1
    context = context_for(user_id, None)
    seen = asyncio.run(_see(user_id, base, dsn))
    text = _edited(seen.text) if file is None else _read(file)
    try:
        return asyncio.run(_write(context, seen, text, by=by, dsn=dsn))
    except NotCorrectedError as refusal:
        kept = f" {_keep(text)}" if file is None else ""
        put_error(f"{refusal}{kept}")
        return 1


async def _see(user_id: str, base: str | None, dsn: str | None) -> Seen:
    """Return MEMORY.md as it is.

    Raises:
        LookupError: there is no version `base`.
    """
    async with opened_store(dsn) as store:
        seen = await corrections.see(store, user_id)
        if base is None:
            return seen
        document = (await versions_of(store, user_id)).find(base)
    return Seen(document=document, saved=seen.saved)


def _edited(text: str) -> str:
    """Return the text as the person's editor leaves it."""
    edited = click.edit(text + "\n", extension=".md", require_save=False)
    return text if edited is None else edited


def _read(file: str) -> str:
    """Return the text of a file, or of standard input.

    Raises:
        ValueError: it is no text.
    """
    given = sys.stdin.read() if file == STDIN else Path(file).read_bytes()
    try:
        return given if isinstance(given, str) else given.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        msg = f"expected {file} to be text in UTF-8; got something else ({error.reason})"
        raise ValueError(msg) from error


def _keep(text: str) -> str:
    """Write an edited text where it can be found again, and say where."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="MEMORY-", suffix=".md", delete=False
    ) as file:
        file.write(text)
    return f"Your text is in {file.name}; --file takes it."


async def _write(context: Context, seen: Seen, text: str, *, by: str, dsn: str | None) -> int:
    """Write a version.

    Raises:
        NotCorrectedError: the text cannot be MEMORY.md, or that has changed meanwhile.
    """
    user_id = str(context.user_id)
    text = corrections.tidy(text)
    if text == corrections.tidy(seen.text):
        put(f"That is what MEMORY.md of {user_id} says; nothing was changed.")
        return 0
    _refuse_empty_or_long(text, context)
    async with opened_store(dsn) as store:
        await _refuse_forgotten(store, user_id, text)
        written = await _written(store, context, seen, text, by=by)
    size = amount(estimate_text(written.text), "token")
    put(f"MEMORY.md of {user_id} is corrected: version {written.version}, {size}.")
    if seen.document is not None:
        put(f"`everlong memory diff --user {user_id}` shows what changed.", style="dim")
    return 0


def _refuse_empty_or_long(text: str, context: Context) -> None:
    if not text:
        msg = (
            "expected a text; got an empty one. `everlong memory clear-document` removes MEMORY.md."
        )
        raise NotCorrectedError(msg)
    most, size = context.memory.document_tokens, _tokens(text)
    if size > most:
        msg = (
            f"expected at most {most:,} tokens (EVERLONG_MEMORY__DOCUMENT_TOKENS); got {size:,}. "
            "Shorten the text; nothing was changed."
        )
        raise NotCorrectedError(msg)


def _tokens(text: str) -> int:
    """Count as a consolidation does, which cuts what is over the limit."""
    return sum(estimate_text(line) + 1 for line in text.splitlines())


async def _refuse_forgotten(store: BaseStore, user_id: str, text: str) -> None:
    stones = await tombstones.load(store, user_id)
    for number, line in enumerate(text.splitlines(), start=1):
        if stones.matches(line):
            msg = (
                f"line {number} says what {user_id} had forgotten: it would be struck out again. "
                "Leave it out; nothing was changed."
            )
            raise NotCorrectedError(msg)


async def _written(
    store: BaseStore, context: Context, seen: Seen, text: str, *, by: str
) -> Document:
    user_id, instant = str(context.user_id), utc_now().isoformat()
    given = {"instant": instant, "zone": context.time_zone, "by": by}
    try:
        return await corrections.correct(store, user_id, seen, text, **given)
    except DocumentChangedError as error:
        found = await memory.read(store, user_id)
        now = f"it is at version {found.version}, by {found.by}" if found else "it was removed"
        msg = (
            f"another run has written MEMORY.md of {user_id} meanwhile ({now}); nothing was "
            "changed. Look at it and correct it again."
        )
        raise NotCorrectedError(msg) from error
