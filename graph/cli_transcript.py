"""What `everlong transcript` does."""

from everlong.graph.cli_open import opened_store
from everlong.graph.terminal import out, put, put_error
from everlong.stores import transcripts
from everlong.stores.transcripts import Entry

ROLES = {"human": "user", "ai": "assistant"}
SHOWN_THREADS = 10


async def transcript(user_id: str, thread_id: str, *, jsonl: bool, dsn: str | None) -> int:
    """Print a thread's messages, all and whole; 1 where the user has no such thread."""
    async with opened_store(dsn) as store:
        entries = await transcripts.read(store, user_id, thread_id)
        known = [] if entries else await transcripts.threads(store, user_id)
    if not entries:
        put_error(f"{user_id} has no transcript of a thread {thread_id!r}; {_others(known)}.")
        return 1
    if jsonl:
        out.file.write(transcripts.to_jsonl(entries))
        return 0
    for entry in entries:
        _show(entry)
    return 0


def _show(entry: Entry) -> None:
    who = ROLES.get(entry.role, entry.role)
    put(f" {who}, {entry.at}", lead=f"#{entry.number}", lead_style="bold cyan", style="dim")
    put(entry.text.rstrip() + "\n")


def _others(known: list[str]) -> str:
    if not known:
        return "there is none of any thread"
    more = f" and {len(known) - SHOWN_THREADS} more" if len(known) > SHOWN_THREADS else ""
    return f"there is: {', '.join(known[:SHOWN_THREADS])}{more}"
