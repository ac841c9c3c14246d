"""Forget a fact: its tombstone first, then its erasure wherever it is (R49).

Whatever is interrupted is made up for by forgetting the same again, and by the gate that every
write passes. Nothing that is erased is kept in another place.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from everlong.stores import gate, matters, sweeping, tombstones, transcripts
from everlong.stores.matters import DOCUMENT, Matter
from everlong.stores.passages import signs_in, told_by
from everlong.stores.sweeping import Swept
from everlong.stores.tombstones import Tombstone, Tombstones

Change = Callable[[Any], Any]


@runtime_checkable
class RewritingSaver(Protocol):
    """A checkpointer that can change what its checkpoints hold."""

    async def threads_of(self, user_id: str) -> list[str]:
        """Return the ids of the user's threads."""
        ...

    def rewrite(self, thread_id: str, change: Change) -> Awaitable[int]:
        """Put everything that the thread's checkpoints hold through `change`; return how much."""
        ...


@dataclass(frozen=True, kw_only=True)
class Forgotten:
    """What came of a request to forget."""

    matters: tuple[Matter, ...] = ()
    """What was forgotten; where nothing was, what may be meant."""
    is_done: bool = False
    also: tuple[Matter, ...] = ()
    """What stays and has a code of what was forgotten in it."""
    swept: Swept = field(default_factory=Swept)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a request to forget would do."""

    forgotten: Forgotten
    stones: tuple[Tombstone, ...] = ()
    keys: frozenset[str] = frozenset()
    """Of the facts that go."""


async def plan(
    store: BaseStore, user_id: str, what: str, *, at: str, said: Sequence[BaseMessage] = ()
) -> Plan:
    """Return what would be forgotten, and change nothing.

    `said` are messages that no transcript has yet.

    Raises:
        UserForgottenError: the user was forgotten altogether.
    """
    await gate.known(store, user_id)
    meant, known = await matters.find(store, user_id, what, said)
    if not meant.is_certain:
        return Plan(forgotten=Forgotten(matters=meant.matters))
    chosen = meant.matters
    keys = {key for one in chosen for key in one.keys if not _is_line(one)}
    going = [*chosen, *_only_from(known, keys, beside=chosen)]
    told = [one for one in going if not _is_line(one)] or going
    staying = [one for one in known if one not in going and keys.isdisjoint(one.keys)]
    stones = await _stones(store, user_id, [*told, *_reworded(going, told)], staying, at, said)
    codes = {code for one in told for code in told_by(one.text).codes}
    also = [one for one in staying if not codes.isdisjoint(signs_in(one.text).codes)]
    done = Forgotten(matters=tuple(going), is_done=True, also=tuple(also))
    return Plan(forgotten=done, stones=tuple(stones), keys=frozenset(keys))


async def forget(
    store: BaseStore,
    user_id: str,
    what: str,
    *,
    at: str,
    said: Sequence[BaseMessage] = (),
    saver: object = None,
) -> Forgotten:
    """Forget what is meant, where that is one thing; else return what may be meant.

    `saver` is where the states of the user's threads are; without one that can change what it
    holds, a thread's own next call strikes it out there.

    Raises:
        UserForgottenError: the user was forgotten altogether.
    """
    planned = await plan(store, user_id, what, at=at, said=said)
    return await carry_out(store, user_id, planned, saver=saver)


async def carry_out(
    store: BaseStore, user_id: str, planned: Plan, *, saver: object = None
) -> Forgotten:
    """Do what a plan says."""
    if not planned.forgotten.is_done:
        return planned.forgotten
    await tombstones.put(store, user_id, planned.stones)
    stones = await gate.known(store, user_id)
    swept = await sweeping.sweep(store, user_id, stones, planned.keys)
    if isinstance(saver, RewritingSaver):
        threads = await strike_states(saver, user_id, stones)
        swept = replace(swept, threads=threads)
    return replace(planned.forgotten, swept=swept)


async def strike_states(saver: RewritingSaver, user_id: str, stones: Tombstones) -> int:
    """Strike what is forgotten out of every checkpoint of the user; return in how many threads."""

    def change(value: Any) -> Any:
        if isinstance(value, BaseMessage):
            return stones.struck_message(value)
        return stones.struck(value)

    return sum([await saver.rewrite(one, change) > 0 for one in await saver.threads_of(user_id)])


def _is_line(matter: Matter) -> bool:
    """Tell a line of the consolidated document, which may say several facts."""
    return matter.source.startswith(f"{DOCUMENT}#") and len(matter.keys) != 1


def _only_from(
    known: Iterable[Matter], keys: set[str], *, beside: Sequence[Matter]
) -> list[Matter]:
    """Return the lines that come from nothing but these facts."""
    return [one for one in known if one.keys and set(one.keys) <= keys and one not in beside]


def _reworded(going: Sequence[Matter], told: Sequence[Matter]) -> list[Matter]:
    """Return the document's own words for what goes."""
    return [one for one in going if one not in told and one.keys]


async def _stones(
    store: BaseStore,
    user_id: str,
    going: Sequence[Matter],
    staying: Sequence[Matter],
    at: str,
    said: Sequence[BaseMessage],
) -> list[Tombstone]:
    kept = {one for matter in staying for one in signs_in(matter.text).words}
    ids = {one for matter in going for one in matter.sources}
    heard = await _heard(store, user_id, ids, said)
    made: list[Tombstone] = []
    for matter in going:
        told, own = told_by(matter.text), set(matter.sources)
        echoes = {one.answers for one in heard if one.message_id in own}
        sources = own.union(*echoes)
        stone = tombstones.tombstone(user_id, told, at=at, sources=sources, staying=kept)
        alone = Tombstones(salt=tombstones.salt_of(user_id), stones=(stone,))
        asked = [one for one in heard if one.message_id in own]
        if asked and not any(alone.is_in_message(one.text, one.message_id) for one in asked):
            whole = frozenset(one.message_id for one in asked if one.role == "human")
            stone = replace(stone, whole=whole)
        made.append(stone)
    return list({one.key: one for one in made}.values())


@dataclass(frozen=True, kw_only=True)
class Heard:
    """A message that a fact comes from."""

    message_id: str
    role: str
    text: str
    answers: frozenset[str]
    """Ids of the assistant's messages after it, up to the next user message."""


async def _heard(
    store: BaseStore, user_id: str, ids: set[str], said: Sequence[BaseMessage]
) -> list[Heard]:
    found: dict[str, Heard] = {}
    for thread_id in await transcripts.threads(store, user_id):
        entries = await transcripts.glance(store, user_id, thread_id)
        found |= _among([(one.message_id, one.role, one.text) for one in entries], ids)
    spoken = [(str(one.id), one.type, str(one.text)) for one in said]
    return list((_among(spoken, ids) | found).values())


def _among(spoken: Sequence[tuple[str, str, str]], ids: set[str]) -> dict[str, Heard]:
    found: dict[str, Heard] = {}
    for at, (message_id, role, text) in enumerate(spoken):
        if message_id not in ids:
            continue
        answers: set[str] = set()
        for other, by, _ in spoken[at + 1 :]:
            if by == "human":
                break
            answers |= {other} if by == "ai" else set()
        found[message_id] = Heard(
            message_id=message_id, role=role, text=text, answers=frozenset(answers)
        )
    return found
