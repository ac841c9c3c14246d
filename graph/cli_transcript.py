"""What `everlong transcript` does."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.store.base import BaseStore

from everlong.graph.cli_open import opened_store
from everlong.graph.cli_receipts import outcome_of
from everlong.graph.terminal import err, out, put, put_error
from everlong.nodes.transcript import SUMMARY_NAME
from everlong.stores import compactions, transcripts
from everlong.stores.amounts import amount
from everlong.stores.compactions import MESSAGE_IDS
from everlong.stores.transcripts import Entry

ROLES = {"human": "user", "ai": "assistant"}
SHOWN_THREADS = 10
SHOWN_IDS = 10


async def transcript(user_id: str, thread_id: str, *, jsonl: bool, dsn: str | None) -> int:
    """Print a thread's messages, all and whole; 1 where the user has no such thread."""
    async with opened_store(dsn) as store:
        entries = await transcripts.read(store, user_id, thread_id)
        if not entries:
            known = await transcripts.threads(store, user_id)
            put_error(unknown_thread(user_id, thread_id, known))
            return 1
        await _show(store, user_id, entries, jsonl=jsonl)
    return 0


async def originals(
    user_id: str, thread_id: str, ident: str, *, jsonl: bool, dsn: str | None
) -> int:
    """Print what a compaction took out of the history; 1 where it is unknown or took nothing.

    Raises:
        LookupError: more than one id begins so.
    """
    async with opened_store(dsn) as store:
        receipt = await receipt_or_error(store, user_id, thread_id, ident)
        if receipt is None:
            return 1
        entries = await compactions.originals(store, user_id, thread_id, receipt)
        await _show(store, user_id, entries, jsonl=jsonl)
        all_of_thread = await compactions.read(store, user_id, thread_id)
    ids = [str(one) for one in receipt.get(MESSAGE_IDS, ())]
    before = all_of_thread[: [one["id"] for one in all_of_thread].index(receipt["id"])]
    if merged := [one["id"] for one in before if one.get("summary_id") in ids]:
        which = f"the summary of compaction {merged[-1]}, which has originals of its own"
        put(f"It also took up {which}.", style="dim", to=err)
    return _missing(receipt, ids, entries)


def _missing(receipt: Mapping[str, Any], ids: Sequence[str], entries: Sequence[Entry]) -> int:
    """Say how many of the replaced messages were not printed."""
    if not ids:
        put_error(f"compaction {receipt['id']} replaced no message ({outcome_of(receipt)}).")
        return 1
    spoken = [one for one in ids if not one.startswith(SUMMARY_NAME)]
    lost = len(spoken) - len({entry.message_id for entry in entries})
    if lost > 0:
        gone = amount(lost, "message")
        put_error(f"{gone} of {len(spoken)} that it replaced can't be found in the transcript.")
    return int(lost > 0)


def unknown_thread(user_id: str, thread_id: str, known: Sequence[str]) -> str:
    """Say that a user has no such thread, and which ones there are."""
    others = "there is none of any thread"
    if known:
        rest = len(known) - SHOWN_THREADS
        others = f"there is: {', '.join(known[:SHOWN_THREADS])}"
        others += f" and {rest} more" if rest > 0 else ""
    return f"{user_id} has no transcript of a thread {thread_id!r}; {others}."


async def receipt_or_error(
    store: BaseStore, user_id: str, thread_id: str, ident: str
) -> dict[str, Any] | None:
    """Return a compaction's receipt; print which ids there are, and return None, for another id.

    Raises:
        LookupError: more than one id begins so.
    """
    receipt = await compactions.find(store, user_id, thread_id, ident)
    if receipt is None:
        put_error(await _unknown_compaction(store, user_id, thread_id, ident))
    return receipt


async def _unknown_compaction(store: BaseStore, user_id: str, thread_id: str, ident: str) -> str:
    """Say that a thread has no compaction of this id, and which ones there are, newest first."""
    receipts = await compactions.read(store, user_id, thread_id, limit=SHOWN_IDS)
    if not receipts:
        known = await transcripts.threads(store, user_id)
        if thread_id not in known:
            return unknown_thread(user_id, thread_id, known)
        return f"thread {thread_id} of {user_id} was never compacted."
    ids = ", ".join(str(receipt["id"]) for receipt in reversed(receipts))
    newest = f"the newest {SHOWN_IDS} are" if len(receipts) == SHOWN_IDS else "there is"
    return f"expected the id of a compaction of thread {thread_id}; got {ident!r}; {newest}: {ids}."


async def _show(store: BaseStore, user_id: str, entries: Sequence[Entry], *, jsonl: bool) -> None:
    for entry in entries:
        moved = transcripts.moved_to(entry)
        if jsonl:
            line = json.loads(transcripts.to_jsonl([entry]))
            more = (
                {"full_text": await transcripts.full_text(store, user_id, entry)} if moved else {}
            )
            out.file.write(json.dumps(line | more, ensure_ascii=False) + "\n")
            continue
        who = ROLES.get(entry.role, entry.role)
        put(f" {who}, {entry.at}", lead=f"#{entry.number}", lead_style="bold cyan", style="dim")
        put((await transcripts.full_text(store, user_id, entry)).rstrip() + "\n")
