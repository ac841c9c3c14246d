"""Which facts of a flush are new: models return the day's other lines along with it, or again.

A line counts as known where MEMORY.md or the ledger has it in nearly the same words, and nothing
since has put another value in its place: who moves to Bergen and back to Oslo has said something
new. Pure.
"""
# ruff: noqa: SIM905 - a text of words is easier to read

import re
from collections.abc import Sequence

from everlong.nodes.statements import key_of
from everlong.stores.entries import Fact

_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_HAN = re.compile(r"[\u3400-\u9fff]")
_SILENT = frozenset(
    "the a an user users i my me we our us is are am was were be has have had that this s to of"
    " their his her its they 用 户 的 了 是 我 们 他 她".split()
)
_DENIAL = re.compile(
    r"\b(?:not|no|never|without|stop(?:s|ped)?|longer|former(?:ly)?|except|unless|only|used to)\b"
    r"|n['’]t\b|[不没无别勿未非仅只]|除了|取消|停止|以前|曾",
    re.IGNORECASE,
)
NEARLY = 0.75
"""Of a known line's words, what a line has at least that says it again."""
MOST_WORDS = 2
"""Of a value that took the place of another: `New York`."""
MOST_HAN = 4


def news(facts: Sequence[Fact], held: Sequence[Fact]) -> list[Fact]:
    """Return the facts that `held`, oldest first, does not hold, and each of them once.

    What was in doubt is new when it is said.
    """
    known = list(held)
    new: list[Fact] = []
    for fact in facts:
        if not _is_known(fact.text, [one.text for one in known if fact.doubt or not one.doubt]):
            new.append(fact)
            known.append(fact)
    return new


def _is_known(text: str, held: Sequence[str]) -> bool:
    for index in range(len(held) - 1, -1, -1):
        if restates(text, held[index]):
            return True
        if _has_other_value(text, held[index]):
            return False
    return False


def restates(text: str, known: str) -> bool:
    """Tell whether a line says again, in nearly the same words, what another one says.

    It may leave a little out, never add anything, and never a `not` more or less.
    """
    if key_of(text) == key_of(known):
        return True
    said, there = _telling(text), _telling(known)
    if not said or len(said) < NEARLY * len(there) or _denied(text) != _denied(known):
        return False
    rest = iter(there)
    return all(token in rest for token in said)


def _telling(text: str) -> list[str]:
    """Return the words of a line that tell something, in order; `likes` is `like`."""
    tokens = (token for token in _tokens(text) if token not in _SILENT)
    return [token[:-1] if len(token) > 3 and token.endswith("s") else token for token in tokens]  # noqa: PLR2004 - not `bus`


def _denied(text: str) -> int:
    return len(_DENIAL.findall(text))


def _has_other_value(text: str, other: str) -> bool:
    """Tell whether two lines are the same but for one value."""
    one, two = _tokens(text), _tokens(other)
    shortest = min(len(one), len(two))
    before = next((n for n in range(shortest) if one[n] != two[n]), shortest)
    rest = shortest - before
    after = next((n for n in range(rest) if one[-1 - n] != two[-1 - n]), rest)
    values = [tokens[before : len(tokens) - after] for tokens in (one, two)]
    return before > 0 and all(values) and all(_is_value(value) for value in values)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.casefold())


def _is_value(tokens: Sequence[str]) -> bool:
    han = sum(bool(_HAN.match(token)) for token in tokens)
    return han <= MOST_HAN and len(tokens) - han <= MOST_WORDS
