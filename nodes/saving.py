"""Save facts that the user states (R44, R48): what `memory_save` does."""

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.store.base import BaseStore

from everlong.nodes.archive import numbered, ranges
from everlong.nodes.attribution import at, heard, sifted
from everlong.nodes.drafts import Draft
from everlong.nodes.fact_sources import Sifted
from everlong.nodes.forget_tool import not_forgotten
from everlong.nodes.news import news
from everlong.nodes.run import Run
from everlong.nodes.transcript import is_summary
from everlong.nodes.utterances import Utterance, utterance
from everlong.stores import ledger, ledger_archive, memory, pages, transcripts
from everlong.stores.amounts import amount
from everlong.stores.entries import Entry, Fact, day_lines, facts_in, line_of
from everlong.stores.turns import alone

MOST_CITED = 20
"""Days of the ledger, and messages of other conversations, that are looked up."""
MOST_LINES = 200
"""Of one day, that one source may name."""
_DAY = re.compile(r"memory/(?P<day>\d{4}-\d{2}-\d{2})\.md#(?P<first>\d+)(?:-(?P<last>\d+))?")
_MESSAGE = re.compile(r"sessions/(?P<thread>[^\n#]{1,800})#(?P<number>\d{1,9})")
_CITED = re.compile(r"[\s([（]*\bsources?:\s*`?(?:memory/|MEMORY\.md|sessions/).*$", re.IGNORECASE)

EMPTY = "Not saved: expected at least one fact; got an empty text."
FORGOTTEN = "Not saved: the user had this forgotten, and does not say it again."
KNOWN = "Already in MEMORY.md, so not saved again:"
DOUBTED = (
    "Kept out of MEMORY.md and listed for a person to review. If it is so, have the user say it, "
    "then save it again:"
)
FOREIGN = "Not saved, since a tool's result says it and not the user:"


async def save(
    run: Run,
    store: BaseStore,
    content: str,
    messages: Sequence[BaseMessage],
    archived: Mapping[str, Any],
) -> str:
    """Add the facts that the user states to the ledger as saved ones; say what became of each.

    `archived` is the channel of that name.
    """
    drafts = [Draft(one.text) for one in facts_in(_CITED.sub("", content))]
    if not drafts:
        return EMPTY
    read = [m for m in messages if not isinstance(m, SystemMessage) and not is_summary(m)]
    said = heard(run, read, await _times(run, messages, archived))
    cited = "\n".join([content, *(str(message.text) for message in reversed(read))])
    beside = [
        *await _remembered(run, store, cited),
        *await _told_elsewhere(run, store, cited, {one.id for one in said}),
    ]
    found = await sifted(run, said, drafts, beside=beside)
    facts = await not_forgotten(store, run.user_id, found.facts, messages)
    if not facts and not found.foreign:
        return FORGOTTEN
    return await _written(run, store, facts, found)


async def _written(run: Run, store: BaseStore, facts: Sequence[Fact], found: Sifted) -> str:
    """Append what neither MEMORY.md nor the review holds, and say what became of each fact."""
    async with alone("ledger", run.user_id, store=store):
        lines = await pages.lines_of(store, run.user_id, pages.DOCUMENT)
        waiting = [fact for _, fact in await memory.review(store, run.user_id)]
        new = news(facts, [*(Fact(line_of(line)) for line, _ in lines), *waiting])
        entry = await _appended(run, store, new) if new else None
    saved = [fact for fact in new if not fact.doubt]
    known = [f"- {fact.text}" for fact in facts if not fact.doubt and fact not in new]
    doubted = [f"- {fact.text} ({fact.doubt})" for fact in facts if fact.doubt]
    parts: list[str] = []
    if saved and entry is not None:
        parts.append(f"Saved {amount(len(saved), 'fact')}. Source: {pages.DAYS}{entry.day}.md")
    for why, listed in ((KNOWN, known), (DOUBTED, doubted), (FOREIGN, [*found.foreign])):
        if listed:
            parts.append("\n".join([why, *listed]))
    return "\n\n".join(parts)


async def _appended(run: Run, store: BaseStore, facts: Sequence[Fact]) -> Entry:
    return await ledger.append(
        store,
        run.user_id,
        "save",
        facts,
        instant=run.instant,
        zone=run.context.time_zone,
        thread_id=run.thread_id,
        sources=list(dict.fromkeys(source for fact in facts for source in fact.sources)),
    )


async def _times(
    run: Run, messages: Sequence[BaseMessage], archived: Mapping[str, Any]
) -> dict[str, str]:
    """Return when the messages of earlier calls were said, by id."""
    ids, through = [message.id for message in messages], archived.get("through")
    if run.archive is None or through not in ids:
        return {}
    times: dict[str, str] = {}
    numbers = numbered(messages[: ids.index(through) + 1], archived)
    for first, last in ranges(numbers.values()):
        with suppress(LookupError):  # the file of a long message is gone
            times |= {
                entry.message_id: entry.at
                for entry in await transcripts.read_between(
                    run.archive, run.user_id, run.thread_id, first, last
                )
            }
    return times


async def _remembered(run: Run, store: BaseStore, cited: str) -> list[Utterance]:
    """Return the lines of MEMORY.md, and those of the ledger that a text cites."""
    found = [
        Utterance(id=key, voice="memory", text=line_of(line))
        for line, keys in await pages.lines_of(store, run.user_id, pages.DOCUMENT)
        for key in keys or ("",)
    ]
    places: dict[str, set[int]] = {}
    for match in _DAY.finditer(cited):
        first = int(match["first"])
        last = min(int(match["last"] or first), first + MOST_LINES)
        places.setdefault(match["day"], set()).update(range(first, last + 1))
    for day, numbers in list(places.items())[:MOST_CITED]:
        entries = await ledger_archive.with_archived(store, run.user_id, day)
        facts = {fact.key: fact for entry in entries for fact in entry.verified}
        found += [
            Utterance(id=key, voice="memory", text=facts[key].text)
            for number, (_, keys) in enumerate(day_lines(entries), start=1)
            for key in keys
            if number in numbers and key in facts
        ]
    return found


async def _told_elsewhere(
    run: Run, store: BaseStore, cited: str, known: Collection[str]
) -> list[Utterance]:
    """Return the user's messages of any conversation that a text cites."""
    places = dict.fromkeys((m["thread"], int(m["number"])) for m in _MESSAGE.finditer(cited))
    found: list[Utterance] = []
    for thread, number in list(places)[:MOST_CITED]:
        entries: list[transcripts.Entry] = []
        with suppress(LookupError, ValueError):  # nothing is there; no thread has such a name
            entries = await transcripts.read_between(store, run.user_id, thread, number, number)
        messages = transcripts.messages_of(entries)
        found += [
            utterance(message, at(run, entry.at))
            for entry, message in zip(entries, messages, strict=True)
            if entry.role == "human" and entry.message_id not in known
        ]
    return found
