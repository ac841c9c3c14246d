"""Hold facts against what was said, in these messages and before them (R43, R44)."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast
from zoneinfo import ZoneInfo

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from everlong.nodes.drafts import Draft
from everlong.nodes.fact_sources import Hearing, Sifted
from everlong.nodes.run import Run
from everlong.nodes.utterances import Utterance, utterance
from everlong.stores import transcript_search, transcripts

MOST_SEARCHED = 10
"""Facts of one flush or save for whose words the transcript is searched."""
MOST_HITS = 5


def heard(run: Run, messages: Sequence[BaseMessage], times: Mapping[str, str]) -> list[Utterance]:
    """Return messages with when each was said, on the user's clock.

    Those before the call's own were said in an earlier one: when, `times` may know, by id.
    """
    ids = [str(message.id) for message in messages]
    first = ids.index(run.first) if run.first in ids else len(ids)
    now = None if run.first else run.instant
    return [
        utterance(message, at(run, run.instant if place >= first else times.get(ids[place], now)))
        for place, message in enumerate(messages)
    ]


def at(run: Run, instant: str | None) -> datetime | None:
    """Return an instant on the user's clock."""
    zone = ZoneInfo(run.context.time_zone)
    return datetime.fromisoformat(instant).astimezone(zone) if instant else None


async def sifted(
    run: Run,
    messages: Sequence[Utterance],
    drafts: Sequence[Draft],
    *,
    beside: Sequence[Utterance] = (),
) -> Sifted:
    """Return the facts with their sources and doubts, and what is a tool's alone.

    What the messages and `beside` do not bear out is looked for in the rest of the thread.
    """
    # Much text takes a second, which nobody else should have to wait for.
    found = await asyncio.to_thread(Hearing(messages, beside=beside).sifted, drafts)
    if not found.unsure or run.archive is None:
        return found
    known = {one.id for one in (*messages, *beside)}
    earlier = await _earlier(run, found.unsure[:MOST_SEARCHED], known)
    if not earlier:
        return found
    return await asyncio.to_thread(Hearing(messages, beside=[*beside, *earlier]).sifted, drafts)


async def _earlier(run: Run, texts: Sequence[str], known: set[str]) -> list[Utterance]:
    """Return what else the thread says of these texts: users, whom they answered, and tools."""
    store, where = cast("BaseStore", run.archive), (run.user_id, run.thread_id)
    roles: dict[int, str] = {}
    for text in texts:
        hits = await transcript_search.search(
            store, run.user_id, text, thread_id=run.thread_id, limit=MOST_HITS
        )
        roles |= {hit.entry.number: hit.entry.role for hit in hits}
    found: dict[str, Utterance] = {}
    for number, role in sorted(roles.items()):
        last = number + 1 if role == "ai" else number
        entries = await transcripts.read_between(store, *where, number, last)
        if entries and entries[-1].role != "ai":
            for entry, message in zip(entries, transcripts.messages_of(entries), strict=True):
                if entry.message_id not in known:
                    found.setdefault(entry.message_id, utterance(message, at(run, entry.at)))
    return list(found.values())
