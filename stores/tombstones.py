"""What a user had forgotten, known by hashes only: nothing brings it back (R49).

A tombstone holds no word of what it stands for: hashes of its words and codes, salted with whose it
is, and the ids of the messages that it came from. It lies with the user's records. The mark of a
user who was forgotten altogether lies apart from them, under a hash of the id.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchItem, SearchOp

from everlong.stores import passages
from everlong.stores.namespaces import label, space
from everlong.stores.passages import MARK, Says, Signs

Terms = frozenset[str]
KIND = "tombstones"
USERS = ("forgotten_users",)
"""Where the marks are of users who were forgotten, or had something forgotten."""
LIMIT = 10_000
CLOSE_SHARE = 0.5
"""Of its words, what a passage shares that is known to be where a fact came from."""
WORDS_PER_MISS = 5
"""Of so many words one may be missing: others put it in their own."""
MOST_BESIDE_ONE = 4
"""Words of a passage that says a fact of one word; of more, it says something else."""
LONG_CODE_CHARS = 6
"""A shorter code alone says nothing in a text that nobody of the conversation wrote."""


class UserForgottenError(Exception):
    """The user's records were erased; nothing is written for the id."""


@dataclass(frozen=True, kw_only=True)
class Tombstone:
    """What is kept of a fact that was forgotten."""

    key: str
    at: str
    """When it was forgotten: ISO 8601, UTC."""
    words: frozenset[str]
    rare: frozenset[str]
    """Of the words, those that no fact which stays has."""
    codes: frozenset[str]
    """What alone tells the fact."""
    long_codes: frozenset[str]
    sources: frozenset[str]
    """Ids of the messages that said it, and of the answers to them."""
    whole: frozenset[str]
    """Of these, the ones that say it in words of which no passage could be told."""


@dataclass(frozen=True, kw_only=True)
class Tombstones:
    """All that a user had forgotten, as a text is held against it."""

    salt: bytes
    stones: tuple[Tombstone, ...] = ()
    user_forgotten: bool = False

    def __bool__(self) -> bool:
        return bool(self.stones)

    @property
    def digest(self) -> str:
        """Name what is known, so that a thread can tell whether it was held against it."""
        spelled = ",".join(sorted(stone.key for stone in self.stones))
        return hashlib.sha256(spelled.encode()).hexdigest()[:16] if spelled else ""

    def matches(self, text: str) -> bool:
        """Tell whether any passage of a text says what is forgotten."""
        return bool(self) and passages.without(text, self.says) is not text

    def says(self, signs: Signs, within: Signs | None = None) -> bool:
        """Tell it of one passage, or of a part of it."""
        return self._tells(_says, signs, within)

    def says_in_material(self, signs: Signs, within: Signs | None = None) -> bool:
        """Tell it of a passage that nobody of the conversation wrote: a short code is chance."""
        return self._tells(_says_in_material, signs, within)

    def without(self, text: str) -> str:
        """Return a text with what is forgotten struck out; the same text where nothing is."""
        return passages.without(text, self.says) if self else text

    def struck(self, value: Any) -> Any:
        """Return a JSON-like value so; the same object where nothing is forgotten."""
        return passages.struck(value, self.says) if self else value

    def struck_message(self, message: BaseMessage) -> BaseMessage:
        """Return a message so; one that a forgotten fact came from is held against it closely."""
        if not self:
            return message
        ident = message.id or ""
        if any(ident in stone.whole for stone in self.stones) and MARK not in message.text:
            return passages.emptied(message)
        general = self.says_in_material if message.type == "tool" else self.says
        return passages.struck_message(message, self._closely(ident) or general)

    def is_in_message(self, text: str, message_id: str) -> bool:
        """Tell whether any passage of a message says what is forgotten."""
        return passages.without(text, self._closely(message_id) or self.says) is not text

    def _closely(self, message_id: str) -> Says | None:
        """Return how a message is looked at that a forgotten fact came from; None: it is none."""
        near = frozenset(stone.key for stone in self.stones if message_id in stone.sources)

        def tells(stone: Tombstone, words: Terms, codes: Terms) -> bool:
            closely = stone.key in near and _says_closely(stone, words)
            return closely or _says(stone, words, codes)

        def says(signs: Signs, within: Signs | None = None) -> bool:
            return self._tells(tells, signs, within)

        return says if near else None

    def _tells(
        self,
        tells: Callable[[Tombstone, Terms, Terms], bool],
        signs: Signs,
        within: Signs | None,
    ) -> bool:
        words, codes = self._hashed(signs)
        if within is None:
            return any(tells(stone, words, codes) for stone in self.stones)
        whole = self._hashed(within)
        said = [stone for stone in self.stones if tells(stone, *whole)]
        return any(_has_a_part(stone, words, codes) for stone in said)

    def _hashed(self, signs: Signs) -> tuple[Terms, Terms]:
        return hashes(self.salt, signs.words), hashes(self.salt, signs.codes)


def salt_of(user_id: str) -> bytes:
    """Return what a user's hashes are salted with."""
    return hashlib.sha256(f"everlong {label(user_id)}".encode()).digest()


def hashes(salt: bytes, terms: Iterable[str]) -> frozenset[str]:
    """Return the terms' hashes."""
    return frozenset(
        hashlib.blake2b(term.encode("utf-8", "replace"), digest_size=8, key=salt).hexdigest()
        for term in terms
    )


def tombstone(
    user_id: str,
    signs: Signs,
    *,
    at: str,
    sources: Iterable[str],
    whole: Iterable[str] = (),
    staying: Collection[str] = (),
) -> Tombstone:
    """Return the tombstone of a fact; `staying` are the words and codes of facts that stay."""
    salt, codes = salt_of(user_id), signs.codes.difference(staying)
    words = hashes(salt, signs.words)
    spelled = "".join([*sorted(words), *sorted(sources)])
    return Tombstone(
        key=hashlib.sha256(spelled.encode("utf-8", "replace")).hexdigest()[:24],
        at=at,
        words=words,
        rare=hashes(salt, signs.words.difference(staying)),
        codes=hashes(salt, codes),
        long_codes=hashes(salt, (code for code in codes if len(code) >= LONG_CODE_CHARS)),
        sources=frozenset(sources),
        whole=frozenset(whole),
    )


async def load(store: BaseStore, user_id: str) -> Tombstones:
    """Return what the user had forgotten; one look by key, where that is nothing."""
    salt, marks = salt_of(user_id), [GetOp(USERS, key) for key in _marks(user_id)]
    everything, something = await store.abatch(marks)
    items = await _items(store, user_id) if something is not None else []
    stones = tuple(_read(item.key, item.value) for item in items)
    return Tombstones(salt=salt, stones=stones, user_forgotten=everything is not None)


async def put(store: BaseStore, user_id: str, stones: Sequence[Tombstone]) -> None:
    """Keep tombstones; the same again is harmless."""
    place, (_, something) = space(user_id, KIND), _marks(user_id)
    puts = [PutOp(place, one.key, _value(one), index=False) for one in stones]
    await store.abatch([*puts, PutOp(USERS, something, {}, index=False)])


async def lift(store: BaseStore, user_id: str, texts: Iterable[str]) -> int:
    """Take back the tombstones that keep these texts out; return how many."""
    known = await load(store, user_id)
    keys = [
        stone.key
        for stone in known.stones
        if any(Tombstones(salt=known.salt, stones=(stone,)).matches(text) for text in texts)
    ]
    if keys:
        await store.abatch([PutOp(space(user_id, KIND), key, None) for key in keys])
    return len(keys)


async def mark_user(store: BaseStore, user_id: str, *, at: str) -> None:
    """Note that nothing may be written for a user any more."""
    everything, something = _marks(user_id)
    mark = PutOp(USERS, everything, {"at": at}, index=False)
    await store.abatch([mark, PutOp(USERS, something, None)])


async def user_is_marked(store: BaseStore, user_id: str) -> bool:
    """Tell whether the user was forgotten."""
    (found,) = await store.abatch([GetOp(USERS, _marks(user_id)[0])])
    return found is not None


async def allow_user(store: BaseStore, user_id: str) -> None:
    """Let the id be written again."""
    await store.abatch([PutOp(USERS, _marks(user_id)[0], None)])


async def _items(store: BaseStore, user_id: str) -> list[SearchItem]:
    limit = LIMIT
    while True:
        (found,) = await store.abatch([SearchOp(space(user_id, KIND), limit=limit)])
        items = cast("list[SearchItem]", found or [])
        if len(items) < limit:
            return items
        limit *= 4


def _says(stone: Tombstone, words: Terms, codes: Terms) -> bool:
    """Tell whether a passage has a code of its own, or all of its words but a few."""
    if not stone.codes.isdisjoint(codes):
        return True
    if len(stone.words) == 1:
        return stone.words <= words and len(words) <= MOST_BESIDE_ONE
    missing = len(stone.words - words)
    return bool(stone.words) and missing <= len(stone.words) // WORDS_PER_MISS


def _says_in_material(stone: Tombstone, words: Terms, codes: Terms) -> bool:
    return _says(stone, words, frozenset()) or not stone.long_codes.isdisjoint(codes)


def _has_a_part(stone: Tombstone, words: Terms, codes: Terms) -> bool:
    """Tell whether a part of a passage has a code or a word of the fact that no other fact has."""
    return not (stone.rare.isdisjoint(words) and stone.codes.isdisjoint(codes))


def _says_closely(stone: Tombstone, words: Terms) -> bool:
    """Tell it of a passage that is known to be where the fact came from."""
    shared = stone.words & words
    return not stone.rare.isdisjoint(words) and len(shared) >= CLOSE_SHARE * len(stone.words)


def _marks(user_id: str) -> tuple[str, str]:
    """Return the keys of the marks that all of a user is forgotten, and that something is."""
    digest = hashlib.sha256(b"everlong user " + label(user_id).encode()).hexdigest()[:32]
    return f"{digest}-all", f"{digest}-some"


def _value(stone: Tombstone) -> dict[str, Any]:
    names = ("words", "rare", "codes", "long_codes", "sources", "whole")
    return {"at": stone.at} | {name: sorted(getattr(stone, name)) for name in names}


def _read(key: str, value: Mapping[str, Any]) -> Tombstone:
    lists = {name: frozenset(each) for name, each in value.items() if name != "at"}
    return Tombstone(key=key, at=str(value["at"]), **lists)
