"""Where each fact comes from, and whether it may be believed (R43, R44). Pure.

A model's marks are hints: what the messages say decides. The user's own words make a fact, and what
an assistant says where the user answers yes; what only a tool's result says makes none, whatever it
tells the model to remember.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise

from everlong.nodes.claims import Claim, claims
from everlong.nodes.drafts import Draft
from everlong.nodes.grounding import Said, holds, said_in
from everlong.nodes.periods import Period
from everlong.nodes.relative_days import dated, relative_words
from everlong.nodes.utterances import Utterance, told_terms
from everlong.stores.entries import Fact

SUPPORTS, CLEARLY, BARELY, FOREIGN, SURELY = 0.33, 0.5, 0.33, 0.6, 0.8
"""Shares of a fact's words and numbers: from which on a message may be its source; surely is; up to
which the user has not said it; from which on a tool has; has for sure."""
MORE = 0.2
"""Of a fact's words, what a tool says more than the user, where the fact is the tool's."""
MOST_UNSURE = 3
"""The newest messages of the user that a fact is said to come from which none of them tells."""


@dataclass(frozen=True)
class Sifted:
    """What came of drafts."""

    facts: tuple[Fact, ...]
    unsure: tuple[str, ...]
    """Texts of those that are doubted, or that no message bears out."""
    foreign: tuple[str, ...]
    """Those that only a tool's result says."""


class _Told:
    """A fact as it is held against what was said."""

    def __init__(self, text: str) -> None:
        self.words = told_terms(text)
        self.claims = claims(text)
        # Every message says the day on which it was said.
        self.own = [c for c in self.claims if not isinstance(c.means, tuple | Period)]

        self._held: dict[int, int] = {}

    def share_in(self, one: Utterance) -> float:
        """Return how much of the fact a message says."""
        return self.share(one.terms, one.said)

    def share(self, words: frozenset[str], said: Said) -> float:
        """Return how much of the fact there is in words and numbers."""
        whole = len(self.words) + len(self.own)
        return (len(self.words & words) + self._held_by(said)) / whole if whole else 0.0

    def is_touched_by(self, one: Utterance) -> bool:
        """Tell whether a message has any word of the fact, or any number."""
        return bool(self.words & one.terms) or self._held_by(one.said) > 0

    def _held_by(self, said: Said) -> int:
        if id(said) not in self._held:
            self._held[id(said)] = sum(holds(said, claim) for claim in self.own)
        return self._held[id(said)]


class Hearing:
    """What facts are held against: the messages that drafts are marked with, and what is beside.

    `beside` was said before, in order, or stands in memory.
    """

    def __init__(self, messages: Sequence[Utterance], *, beside: Sequence[Utterance] = ()) -> None:
        self._marked = messages
        everything = [*beside, *messages]
        self._tools = [h for h in everything if h.voice == "tool"]
        self._users = [h for h in everything if h.voice == "user"]
        self._newest = [h for h in self._users if h.stated][-MOST_UNSURE:]
        self._spoken = [h for h in everything if h.voice != "tool" and h.text.strip()]
        talk = [h for h in self._spoken if h.voice != "memory"]
        self._agreed_by = {
            one.id: answer
            for one, answer in pairwise(talk)
            if one.voice == "assistant" and answer.is_yes
        }

    def _counts(self, one: Utterance) -> bool:
        """Tell whether it is the user's: own words, what they agreed to, what is remembered."""
        return one.voice in ("user", "memory") or one.id in self._agreed_by

    @cached_property
    def _said(self) -> Said:
        return said_in((h.text, h.at) for h in self._spoken if self._counts(h))

    @cached_property
    def _by_assistant(self) -> Said:
        return said_in((h.text, h.at) for h in self._spoken if h.voice == "assistant")

    @cached_property
    def _by_tools(self) -> Said:
        return said_in((h.text, h.at) for h in self._tools)

    def sifted(self, drafts: Iterable[Draft]) -> Sifted:
        """Return the facts with their sources and doubts, without those of a tool alone."""
        facts: list[Fact] = []
        unsure: list[str] = []
        foreign: list[str] = []
        for draft in drafts:
            told = _Told(draft.text)
            if self._is_foreign(draft, told):
                foreign.append(draft.text)
                continue
            sources = self._sources(draft, told)
            facts.append(fact := self._fact(draft, told, sources))
            if fact.doubt or not sources:
                unsure.append(draft.text)
        return Sifted(tuple(facts), tuple(unsure), tuple(foreign))

    def _fact(self, draft: Draft, told: _Told, sources: Sequence[Utterance]) -> Fact:
        words = relative_words(draft.text)
        day = self._day(words, sources)
        text = dated(draft.text, day)
        told = told if text == draft.text else _Told(text)
        doubt = self._doubt_of_claims(told) or self._doubt_of_sources(told, sources)
        if words and day is None:
            doubt = f"on which day {words[0]!r} was said is not known"
        ids = (one.id for one in sources or self._newest)
        return Fact(text, tuple(dict.fromkeys(filter(None, ids))), doubt)

    def _doubt_of_claims(self, told: _Told) -> str:
        unsaid = [claim for claim in told.claims if not holds(self._said, claim)]
        if by_tools := [claim for claim in unsaid if self._is_a_tool_s(claim)]:
            return f"{_listed(by_tools)} stands in a tool's result only"
        if by_assistant := [claim for claim in unsaid if holds(self._by_assistant, claim)]:
            return f"only the assistant said {_listed(by_assistant)}"
        return f"{_listed(unsaid)} was never said" if unsaid else ""

    def _doubt_of_sources(self, told: _Told, sources: Sequence[Utterance]) -> str:
        if not sources and (self._tools or not self._newest):
            return "no message of the user says so"
        if sources and not any(map(self._counts, sources)):
            return "only the assistant said so"
        by_user, by_tool = self._shares(told)
        if by_tool >= SURELY and by_tool >= by_user + MORE:
            return "a tool's result says so, rather than the user"
        return ""

    def _is_foreign(self, draft: Draft, told: _Told) -> bool:
        """Tell whether only a tool's result says this."""
        if not self._tools:
            return False
        by_user, by_tool = self._shares(told)
        if by_user >= BARELY:
            return False
        marked = [self._marked[number - 1] for number in draft.numbers]
        unsaid = [claim for claim in told.claims if not holds(self._said, claim)]
        by_marks = bool(marked) and all(one.voice == "tool" for one in marked)
        return by_marks or by_tool >= FOREIGN or any(map(self._is_a_tool_s, unsaid))

    def _is_a_tool_s(self, claim: Claim) -> bool:
        return bool(self._tools) and holds(self._by_tools, claim)

    def _shares(self, told: _Told) -> tuple[float, float]:
        """Return how much of a fact the user has said at once, and how much a tool."""
        by_user = max(map(told.share_in, filter(self._counts, self._spoken)), default=0.0)
        passages = [words for one in self._tools for words in one.passages]
        by_tool = max((told.share(words, self._by_tools) for words in passages), default=0.0)
        return by_user, by_tool

    def _sources(self, draft: Draft, told: _Told) -> list[Utterance]:
        """Return the marked messages that bear the fact out; else those that do so best."""
        marked = [self._marked[number - 1] for number in draft.numbers]
        marked = [one for one in marked if one.voice != "tool" and one.stated]
        found = [one for one in marked if told.is_touched_by(one)]
        if not found:
            found = self._best(told, CLEARLY if marked else SUPPORTS) or marked
        found += [self._agreed_by[one.id] for one in found if one.id in self._agreed_by]
        if found and not any(map(self._counts, found)):
            found += [one for one in self._users if told.share_in(one) >= CLEARLY]
        return found

    def _best(self, told: _Told, least: float) -> list[Utterance]:
        """Return what says most of it; the user's own goes before what echoes it."""
        shares = [(told.share_in(one), one) for one in self._spoken]
        if any(share >= least and self._counts(one) for share, one in shares):
            shares = [(share, one) for share, one in shares if self._counts(one)]
        most = max((share for share, _ in shares), default=0)
        return [one for share, one in shares if share >= max(least, FOREIGN * most)]

    def _day(self, words: Sequence[str], sources: Sequence[Utterance]) -> date | None:
        """Return the day on which the words for days of a fact were said; None: it is not known."""
        days = {h.at and h.at.date() for h in sources if h.voice != "memory"}
        if len(days) != 1:
            folded = [word.casefold() for word in words]
            holding = [h for h in self._spoken if any(word in h.text.casefold() for word in folded)]
            days = {h.at and h.at.date() for h in holding}
        return days.pop() if len(days) == 1 else None


def _listed(stated: Sequence[Claim]) -> str:
    return ", ".join(dict.fromkeys(claim.written for claim in stated))
