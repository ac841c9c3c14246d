"""What a person means who wants something forgotten: facts, lines of MEMORY.md, own words (R49)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from everlong.stores import documents, ledger_archive, memory, transcripts
from everlong.stores.entries import Entry, Fact, day_lines, line_of
from everlong.stores.passages import MARK, Signs, sentences, signs_in, told_by
from everlong.stores.sources import SESSIONS, place_of

DOCUMENT = "MEMORY.md"
GENERIC = frozenset(
    (
        *("number", "address", "name", "date", "code", "fact", "detail", "inform", "memori"),
        *("thing", "everyth", "anyth", "forget", "about", "remov", "delet", "eras", "pleas"),
    )
)
"""Words that say which kind of thing is meant, where others say which."""
_GENERIC_HAN = re.compile("号码|地址|名字|事情|忘记|忘掉|删除|请把?|帮我|关于")


@dataclass(frozen=True, kw_only=True)
class Matter:
    """Something that may be meant."""

    text: str
    source: str
    """Where it is, as answers cite it."""
    keys: tuple[str, ...] = ()
    """Of the facts that it says."""
    sources: tuple[str, ...] = ()
    """Ids of the messages that it comes from."""


@dataclass(frozen=True, kw_only=True)
class Meant:
    """What a request to forget came to."""

    matters: tuple[Matter, ...] = ()
    is_certain: bool = False
    """All of them are one thing, and the request names it; else they are candidates."""


async def find(
    store: BaseStore, user_id: str, what: str, said: Sequence[BaseMessage] = ()
) -> tuple[Meant, list[Matter]]:
    """Return what is meant, and everything that is remembered.

    `what` is a `Source:`, a fact's key, or words. Words that nothing remembered has are looked for
    in what the user said: in the transcripts, and in `said`. They are certain there where they
    find a number, an address or the like.
    """
    known = await remembered(store, user_id)
    if named := _named(known, what):
        lines = [*named, *_behind(named, known)]
        return Meant(matters=tuple(lines), is_certain=True), known
    source = what.strip().removeprefix("Source: ")
    if not source.startswith(SESSIONS) and (meant := among(known, what)).matters:
        return meant, known
    own = await _own_words(store, user_id, said)
    if named := [one for one in own if one.source == source]:
        return Meant(matters=tuple(named), is_certain=True), known
    meant = among(own, what, telling=True)
    gives_values = all(told_by(one.text).codes for one in meant.matters)
    return Meant(matters=meant.matters, is_certain=meant.is_certain and gives_values), known


async def remembered(store: BaseStore, user_id: str) -> list[Matter]:
    """Return every line of the ledger, archived or not, and of MEMORY.md."""
    entries = await ledger_archive.with_archived(store, user_id)
    facts = {fact.key: fact for entry in entries for fact in entry.facts}
    by_day: dict[str, list[Entry]] = {}
    for entry in entries:
        by_day.setdefault(entry.day, []).append(entry)
    pages = {f"memory/{day}.md": day_lines(some) for day, some in by_day.items()}
    pages[DOCUMENT] = documents.visible_lines(*await memory.recollect(store, user_id))
    return [
        _matter(path, number, text, keys, facts)
        for path, lines in pages.items()
        for number, (text, keys) in enumerate(lines, start=1)
        if any(map(str.isalnum, text)) and not text.lstrip().startswith("#")
    ]


def among(known: Sequence[Matter], what: str, *, telling: bool = False) -> Meant:
    """Return those that say all that is asked, or else the nearest as candidates.

    `telling`: only those that say more than what is asked.
    """
    asked = told_by(_GENERIC_HAN.sub(" ", what))
    words = (asked.words - GENERIC) or asked.words
    if not words:
        return Meant()
    signs = [signs_in(matter.text) for matter in known]
    hits = [
        at
        for at, each in enumerate(signs)
        if _covers(each, words, asked.codes) and not (telling and _is_asked(known[at], asked))
    ]
    if hits:
        chosen = tuple(known[at] for at in hits)
        return Meant(matters=chosen, is_certain=_are_one(chosen))
    shared = [len(asked.words & each.words) for each in signs]
    most = max(shared, default=0)
    near = [known[at] for at, count in enumerate(shared) if count == most and most > 0]
    return Meant(matters=() if telling else tuple(near))


def _behind(chosen: Sequence[Matter], known: Iterable[Matter]) -> list[Matter]:
    """Return the facts that chosen lines were made from, as far as they say the same."""
    lines = [one for one in chosen if len(one.keys) > 1]
    return [
        one
        for one in known
        if one not in chosen
        and len(one.keys) == 1
        and any(one.keys[0] in line.keys and _say_the_same(line, one) for line in lines)
    ]


def resolved(sources: Iterable[str], facts: dict[str, Fact]) -> set[str]:
    """Return message ids: a source that is a fact's key stands for that fact's own."""
    found: set[str] = set()
    left, seen = list(sources), set[str]()
    while left:
        one = left.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in facts:
            left += facts[one].sources
        else:
            found.add(one)
    return found


def _matter(
    path: str, number: int, text: str, keys: Sequence[str], facts: dict[str, Fact]
) -> Matter:
    own = [facts[key] for key in keys if key in facts]
    said = own[0].text if len(own) == 1 and path != DOCUMENT else line_of(text)
    sources = resolved([one for fact in own for one in fact.sources], facts)
    return Matter(
        text=said, source=f"{path}#{number}", keys=tuple(keys), sources=tuple(sorted(sources))
    )


def _named(known: Sequence[Matter], what: str) -> list[Matter]:
    """Return the lines that a source or a fact's key names."""
    if by_key := [one for one in known if what.strip() in one.keys]:
        return by_key
    place = place_of(what)
    if place.first is None:
        return []
    lines = {f"{place.path}#{n}" for n in range(place.first, (place.last or place.first) + 1)}
    return [one for one in known if one.source in lines]


def _covers(signs: Signs, words: frozenset[str], codes: frozenset[str]) -> bool:
    return words <= signs.words or not codes.isdisjoint(signs.codes)


def _is_asked(matter: Matter, asked: Signs) -> bool:
    """Tell words that say no more than the request, such as the request itself."""
    return not (told_by(matter.text).words - asked.words - GENERIC) or MARK in matter.text


def _are_one(matters: Sequence[Matter]) -> bool:
    """Tell whether all say one thing: each has a code, the words or the facts of another."""
    groups = list(range(len(matters)))
    for at, one in enumerate(matters):
        for other in range(at):
            shared = not set(one.keys).isdisjoint(matters[other].keys)
            if shared or _say_the_same(one, matters[other]):
                old, new = groups[at], groups[other]
                groups = [new if group == old else group for group in groups]
    return len(set(groups)) == 1


def _say_the_same(one: Matter, other: Matter) -> bool:
    told, known = told_by(one.text), told_by(other.text)
    share_codes = not told.codes.isdisjoint(known.codes)
    return share_codes or told.words <= known.words or known.words <= told.words


async def _own_words(store: BaseStore, user_id: str, said: Sequence[BaseMessage]) -> list[Matter]:
    """Return the user's sentences, with where they are."""
    found: list[Matter] = []
    for thread_id in await transcripts.threads(store, user_id):
        for entry in await transcripts.glance(store, user_id, thread_id):
            if entry.role == "human":
                source = f"{SESSIONS}{thread_id}#{entry.number}"
                found += _sentences(entry.text, source, entry.message_id)
    known = {one for matter in found for one in matter.sources}
    for message in said:
        if message.type == "human" and message.id not in known and not message.name:
            found += _sentences(str(message.text), "this conversation", str(message.id))
    return found


def _sentences(text: str, source: str, message_id: str) -> list[Matter]:
    return [
        Matter(text=one, source=source, sources=(message_id,))
        for one in sentences(text)
        if not one.rstrip().endswith(("?", "？"))
    ]
