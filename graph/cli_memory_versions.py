"""What `everlong memory history`, `diff` and `restore` do."""

import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.store.base import BaseStore

from everlong.graph.agent import utc_now
from everlong.graph.cli_open import opened_store
from everlong.graph.cli_tables import put_json, put_rows
from everlong.graph.terminal import err, put, put_error
from everlong.nodes.tokens import estimate_text
from everlong.stores import memory
from everlong.stores.amounts import amount
from everlong.stores.documents import Document

COLOURS = {"+": "green", "-": "red", "@": "cyan"}
SHOWN_IDS = 10


@dataclass(frozen=True, kw_only=True)
class Versions:
    """All versions of a user's MEMORY.md, newest first."""

    user_id: str
    all: Sequence[Document]
    present: str
    """Id of the one that is the document now; empty where it was removed."""

    def find(self, ident: str) -> Document:
        """Return the version of this id, or the only one whose id begins so.

        Raises:
            LookupError: there is none, or more than one.
        """
        exact = [one for one in self.all if one.version == ident]
        found = exact or [one for one in self.all if ident and one.version.startswith(ident)]
        if len(found) == 1:
            return found[0]
        ids = ", ".join(one.version for one in (found or self.all)[:SHOWN_IDS])
        rest = len(found or self.all) - SHOWN_IDS
        more = f" and {rest} more" if rest > 0 else ""
        what = "more of the version's id" if found else f"a version of MEMORY.md of {self.user_id}"
        msg = f"expected {what}; got {ident!r}; there is: {ids or 'none'}{more}."
        raise LookupError(msg)


async def versions_of(store: BaseStore, user_id: str) -> Versions:
    """Return all versions of a user's MEMORY.md."""
    present = await memory.read(store, user_id)
    found = await memory.versions(store, user_id)
    return Versions(user_id=user_id, all=found, present=present.version if present else "")


async def history(user_id: str, *, as_json: bool, dsn: str | None) -> int:
    """Print the versions of MEMORY.md, newest last; 1 where there is none."""
    async with opened_store(dsn) as store:
        known = await versions_of(store, user_id)
    oldest_first = list(reversed(known.all))
    if as_json:
        put_json([_as_data(one, known.present) for one in oldest_first])
    elif oldest_first:
        put_rows([_row(one, known.present) for one in oldest_first])
        if not known.present:
            put("MEMORY.md was removed; none of these is in force.", style="dim", to=err)
    return 0 if oldest_first else _never_written(user_id)


async def diff(user_id: str, first: str | None, second: str | None, *, dsn: str | None) -> int:
    """Print what changed between two versions, else in the last one; 1 where there is none.

    Raises:
        LookupError: there is no such version, or more than one.
    """
    async with opened_store(dsn) as store:
        known = await versions_of(store, user_id)
    if not known.all:
        return _never_written(user_id)
    new = known.find(second) if second else known.all[0]
    if first:
        old: Document | None = known.find(first)
    else:
        old = known.all[1] if len(known.all) > 1 else None
    lines = unified(old, new)
    for line in lines:
        put(line, style=COLOURS.get(line[:1], ""))
    if not lines:
        put(f"{_named(old)} and {_named(new)} say the same.", style="dim", to=err)
    return 0


def unified(old: Document | None, new: Document) -> Sequence[str]:
    """Return the lines of a unified diff; none where both say the same."""
    before = old.text.splitlines() if old else []
    after = new.text.splitlines()
    return list(difflib.unified_diff(before, after, _named(old), _named(new), lineterm=""))


async def restore(user_id: str, ident: str, *, yes: bool, by: str, dsn: str | None) -> int:
    """Write an earlier version again, as a new one; 1 where the person does not want it.

    Raises:
        LookupError: there is no such version, or more than one.
    """
    async with opened_store(dsn) as store:
        known = await versions_of(store, user_id)
        if not known.all:
            return _never_written(user_id)
        old = known.find(ident)
        if old.version == known.present:
            put(f"Version {old.version} is the one in force; nothing was changed.")
            return 0
        question = f"Write the version of {old.written_at} (by {old.by}, {_size(old)}) again?"
        if not (yes or agreed(question)):
            put("Nothing was changed.")
            return 1
        instant = utc_now().isoformat()
        written = await memory.restore(store, user_id, old.version, instant=instant, by=by)
        fresh = await memory.fresh_entries(store, user_id)
    put(f"MEMORY.md of {user_id} says again what it said at {old.written_at}: {written.version}.")
    if fresh:
        taken = amount(len(fresh), "ledger entry", "ledger entries")
        put(f"The next consolidation takes up {taken} anew that it lacks.", style="dim")
    return 0


def agreed(question: str) -> bool:
    """Ask a person; no where nobody can be asked.

    Only `y` and `yes` are a yes.
    """
    if not sys.stdin.isatty():
        put_error("expected --yes, since there is no terminal to ask in.")
        return False
    put(f"{question} [y/N] ", to=err)
    try:
        return input().strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _never_written(user_id: str) -> int:
    write = f"`everlong consolidate --user {user_id}` writes it"
    put_error(f"MEMORY.md of {user_id} was never written; {write}.")
    return 1


def _named(document: Document | None) -> str:
    if document is None:
        return "(nothing)"
    return f"{document.version}, {document.written_at}, by {document.by}"


def _size(document: Document) -> str:
    lines = amount(len(document.text.splitlines()), "line")
    return f"{lines}, {amount(estimate_text(document.text), 'token')}"


def _row(document: Document, present: str) -> dict[str, str]:
    return {
        "id": document.version,
        "when": document.written_at,
        "by": document.by,
        "size": _size(document),
        "state": "in force" if document.version == present else "earlier",
        "from": _entries(document),
    }


def _entries(document: Document) -> str:
    """Say which entries a version took up: how many, and of which days."""
    if not document.consumed:
        return "no entries"
    days = sorted({f"{key[:4]}-{key[4:6]}-{key[6:8]}" for key in document.consumed})
    span = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return f"{amount(len(document.consumed), 'entry', 'entries')}, {span}"


def _as_data(document: Document, present: str) -> dict[str, Any]:
    return {
        "version": document.version,
        "written_at": document.written_at,
        "by": document.by,
        "entries": list(document.consumed),
        "watermark": document.watermark,
        "tokens": estimate_text(document.text),
        "in_force": document.version == present,
        "text": document.text,
    }
