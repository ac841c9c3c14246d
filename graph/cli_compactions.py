"""What `everlong compactions` does."""

from collections.abc import Mapping
from typing import Any

from everlong.graph.cli_open import opened_store
from everlong.graph.cli_receipts import fields_of, row_of
from everlong.graph.cli_tables import put_fields, put_json, put_rows
from everlong.graph.cli_transcript import receipt_or_error, unknown_thread
from everlong.graph.terminal import err, put, put_error
from everlong.stores import compactions, transcripts

Receipt = Mapping[str, Any]


async def show_all(user_id: str, thread_id: str, *, as_json: bool, dsn: str | None) -> int:
    """Print what came of each attempt, newest last; 1 where the user has no such thread."""
    async with opened_store(dsn) as store:
        receipts = await compactions.read(store, user_id, thread_id)
        known = [] if receipts else await transcripts.threads(store, user_id)
    if not receipts and thread_id not in known:
        put_error(unknown_thread(user_id, thread_id, known))
        return 1
    if not receipts:
        put(f"Thread {thread_id} of {user_id} was never compacted.", style="dim", to=err)
    if as_json:
        put_json(receipts)
    elif receipts:
        put_rows([row_of(receipt) for receipt in receipts])
    return 0


async def show_one(
    user_id: str, thread_id: str, ident: str, *, as_json: bool, dsn: str | None
) -> int:
    """Print all that the receipt of one attempt says; 1 where there is none of this id.

    Raises:
        LookupError: more than one id begins so.
    """
    async with opened_store(dsn) as store:
        receipt = await receipt_or_error(store, user_id, thread_id, ident)
        if receipt is None:
            return 1
    if as_json:
        put_json(receipt)
        return 0
    put_fields(fields_of(receipt))
    if receipt.get("transcript"):
        own = f"--user {user_id} --thread {thread_id} --compaction {receipt['id']}"
        put(f"`everlong transcript {own}` prints the originals.", style="dim")
    return 0
