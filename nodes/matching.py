"""Which of many lines say, tell of, or contradict what another one says. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from everlong.nodes.claims import Claim, claims
from everlong.nodes.grounding import Said, holds, said_in
from everlong.nodes.statements import key_of
from everlong.nodes.subjects import subject_of
from everlong.nodes.utterances import told_terms
from everlong.stores.entries import line_of

COVERS, TOGETHER, ABOUT, SURE = 0.5, 0.7, 0.5, 0.8
"""Shares of a line's words: in one line that says it; in several that do together; in one that is
about the same; in one that it was surely made from."""
LEAST_SHARED = 2


@dataclass(frozen=True)
class Told:
    """A line that states something, as it is held against others."""

    text: str
    keys: tuple[str, ...] = ()
    """Of the facts that it says or comes from."""

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its words."""
        return told_terms(line_of(self.text))

    @cached_property
    def claims(self) -> list[Claim]:
        """Its dates, numbers and identifiers."""
        return claims(self.text)

    @cached_property
    def said(self) -> Said:
        """The same, for asking whether it has what another one states."""
        return said_in([(self.text, None)])

    @cached_property
    def subject(self) -> str:
        """What it gives one value of."""
        return subject_of(line_of(self.text))

    def share_in(self, words: frozenset[str]) -> float:
        """Return how many of its words are among these."""
        return len(self.terms & words) / len(self.terms) if self.terms else 0.0


def is_covered(one: Told, by: Sequence[Told]) -> bool:
    """Tell whether lines say what `one` says, in whatever words."""
    if any(_covers(line, one) for line in by):
        return True
    together = frozenset[str]().union(*(line.terms for line in by))
    return one.share_in(together) >= TOGETHER and all(
        any(holds(line.said, claim) for line in by) for claim in one.claims
    )


def _covers(line: Told, one: Told) -> bool:
    if key_of(one.text) == key_of(line.text):
        return True
    has_claims = all(holds(line.said, claim) for claim in one.claims)
    if one.claims and has_claims and any(isinstance(claim.means, str) for claim in one.claims):
        return True  # an identifier tells it, in any language
    return has_claims and one.share_in(line.terms) >= COVERS


def is_about_the_same(one: Told, other: Told) -> bool:
    """Tell whether two lines may contradict each other."""
    if one.subject and one.subject == other.subject:
        return True
    shared = len(one.terms & other.terms)
    return shared >= LEAST_SHARED and shared >= ABOUT * min(len(one.terms), len(other.terms))


def origins_of(line: Told, material: Sequence[Told], *, most: int = 5) -> tuple[str, ...]:
    """Return the keys of the facts that a line was made from: of those that tell the same."""
    same = [one for one in material if key_of(one.text) == key_of(line.text)]
    if not same:
        scored = [(_kinship(line, one), one) for one in material]
        best = max((score for score, _ in scored), default=0.0)
        near = [(score, one) for score, one in scored if score >= max(COVERS, best * TOGETHER)]
        same = [one for _, one in sorted(near, key=lambda both: -both[0])[:most]]
        if not same and best > 0:
            same = [next(one for score, one in scored if score == best)]
    return tuple(dict.fromkeys(key for one in same for key in one.keys))


def is_said_by(line: Told, material: Iterable[Told]) -> bool:
    """Tell whether a line of the material says nearly the same, so that it is no remark."""
    return any(line.terms and line.share_in(one.terms) >= SURE for one in material)


def _kinship(line: Told, one: Told) -> float:
    """Return how sure it is that a line was made from another: shared words, and identifiers."""
    shared = max(line.share_in(one.terms), one.share_in(line.terms))
    named = any(isinstance(c.means, str) and holds(line.said, c) for c in one.claims)
    return max(shared, COVERS) if named else shared
