"""Find, among all that a prompt states, what answers a question."""

import re
from collections.abc import Sequence

from everlong.nodes import offline_cues as cues
from everlong.nodes.identifiers import identifiers
from everlong.nodes.offline_cues import PRONOUN
from everlong.nodes.offline_statements import Statement, Voice
from everlong.nodes.offline_terms import Weights, keywords, terms
from everlong.nodes.statements import key_of, kind_of
from everlong.nodes.subjects import subject_of

LEAST_SHARE = 0.45
"""Of what a question asks about; less is no answer."""
MOST_ANSWERS = 8
LIKE_ALL, LIKE_BEST = 0.6, 0.95
"""What of the best score a further statement needs, when all is asked, and else."""
_TRUST: dict[Voice, float] = {
    "user": 0.1,
    "summary": 0.1,
    "memory": 0.06,
    "tool": 0.04,
    "assistant": 0.0,
    "rules": 0.0,
}
_STEPS = 20
"""Scores are compared in so many steps: of near ones, the newest statement goes first."""
_CLAUSE = re.compile(r"[，；]|[,;]\s")
_GIVES = re.compile(r"\s(?:is|are|was|=)\s|[是为：:=]")


def answers_to(question: str, stated: Sequence[Statement]) -> list[Statement]:
    """Return the statements that answer a question, best first; none where nothing is near it."""
    asked = terms(question)
    if not asked:
        meant = PRONOUN.search(question) or kind_of(question) == "recall"
        return last_said(stated) if meant else []
    weights = Weights(question, (one.terms for one in stated))
    scores = {one.place: weights.share(asked, one.terms) for one in stated}
    near = [one for one in stated if scores[one.place] >= LEAST_SHARE]
    ranked = sorted(near, key=lambda one: (-_rank(one, scores[one.place], question), -one.place))
    return _chosen(ranked, question, asked, scores) if ranked else []


def last_said(stated: Sequence[Statement]) -> list[Statement]:
    """Return what `it` means: what was said last, by us or else by the user."""
    spoken = [one for one in stated if one.voice in ("assistant", "user", "summary")]
    ours = [one for one in spoken[-1:] if one.voice == "assistant"]
    exact = [one for one in spoken if one.voice != "assistant" and identifiers(one.text)]
    return ours or exact[-1:] or spoken[-1:]


def _rank(one: Statement, score: float, question: str) -> int:
    """Return a statement's rank; near ones are equal, so that the newest of them goes first."""
    exact = cues.WHEN.search(question) or cues.HOW_MUCH.search(question)
    fits = 0.05 if exact and re.search(r"\d", one.text) else 0.0
    first = next(iter(keywords(one.text)), "")
    first = first if first.isascii() else first[:2]
    about = 0.1 if first and terms(first) <= terms(question) else 0.0
    return round((score + _TRUST[one.voice] + fits + about) * _STEPS)


def _chosen(
    ranked: Sequence[Statement], question: str, asked: frozenset[str], scores: dict[int, float]
) -> list[Statement]:
    """Take the best, then what speaks of what is still missing, or of the same as well."""
    best = ranked[0]
    taken, covered = [best], asked & best.terms
    least = scores[best.place] * (LIKE_ALL if cues.WANTS_ALL.search(question) else LIKE_BEST)
    single = bool(cues.SINGLE.search(question)) and not cues.WANTS_ALL.search(question)
    for one in ranked[1:]:
        adds = bool((asked & one.terms) - covered)
        alike = scores[one.place] >= least and not single and one.voice != "assistant"
        if (adds or alike) and not _repeats(one, taken) and len(taken) < MOST_ANSWERS:
            taken.append(one)
            covered |= asked & one.terms
    return taken


def _repeats(one: Statement, taken: Sequence[Statement]) -> bool:
    """Whether a statement says what was taken already, or gives an older value of it."""
    key, subject = key_of(one.text), subject_of(one.text)
    return any(
        key in key_of(other.text)
        or key_of(other.text) in key
        or (subject != "" and subject == subject_of(other.text))
        for other in taken
    )


def value_in(one: Statement, question: str) -> str:
    """Return the value that a statement gives to what a question asks about.

    The first exact name or number after the words of the question, else what `is` stands before.
    """
    asked = [word for word in keywords(question) if word in one.text]
    after = max((one.text.find(word) + len(word) for word in asked), default=0)
    exact = identifiers(one.text)
    if exact:
        return next((name for name in exact if one.text.find(name) >= after), exact[0])
    rest = _CLAUSE.split(_GIVES.split(one.text, maxsplit=1)[-1])[0].strip(" 。.\"'“”")
    return rest.split()[-1] if rest.isascii() and rest else rest
