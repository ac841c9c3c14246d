"""Passages of a text that say a certain thing: found by words and codes, and struck out.

What is looked for need not be known: whoever looks is asked with the words and the codes of one
passage at a time. A code (a number, an address, an order) is one in all its spellings.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Protocol, cast

from langchain_core.messages import BaseMessage

from everlong.stores.lexicon import WIDE, terms_of

MARK = "[forgotten]"
"""What stands where a passage was."""
PIECE_CHARS = 400
MOST_JOINED = 5
LEAST_CODE_CHARS = 4
THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
NOT_SAID = frozenset({"id", "ids", "type", "name", "path", "tool_call_id", "tool_use_id", "index"})
"""Fields that hold no words of anybody's; of what a call is given, and in JSON, all do."""
GIVEN = frozenset({"args", "input", "arguments", "artifact"})
NOTHING: frozenset[str] = frozenset()

_SIGN = rf"[^\W_{WIDE}]"
_TOKEN = re.compile(rf"{_SIGN}+")
_CODE = re.compile(rf"{_SIGN}+(?:[-_./:@#+&]+{_SIGN}+)*")
_GROUPS = re.compile(
    r"\+\d{1,3}(?:[ -]?\(?\d{1,5}\)?){2,6}|\(\d{2,5}\) ?\d{2,5}(?:[ -]\d{2,5}){0,4}"
    r"|(?<!\d)\d{2,5}(?:[ -]\d{2,5}){2,5}(?!\d)"
)
_JOINT = re.compile(r"[-_./:@#+&() ]{1,2}")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2})?(?:t\d.*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    r"|\d{1,2}:\d{2}(?::\d{2})?|(?:19|20)\d{2}"
)
_LEADING_DATE = re.compile(r"^\W*\d{4}-\d{2}-\d{2}\W*")
_ROUND = re.compile(r"\d{1,3}0{3,}")
_UNSAID = frozenset("的是了我你您他她它们")
_NOT_TOLD = frozenset({"user", "用户", "户的"})
_SENTENCE_END = re.compile(r"(\n+|(?<=[。！？!?；…])|(?<=[.;])\s+)")
_CLAUSE_END = re.compile(
    r"(\s*[，、：；]\s*|[,;:]\s+|\s+[-–—]+\s+|\s+(?:and|but)\s+|以及|并且|而且)", re.IGNORECASE
)
_SPACE = re.compile(r"(\s+)")


@dataclass(frozen=True)
class Signs:
    """What a passage is known by."""

    words: frozenset[str]
    """Stems, pairs of Han signs, and all codes."""
    codes: frozenset[str]
    """What has a digit or is an address, without the signs in between."""


class Says(Protocol):
    """Tells of a passage whether it says what is looked for."""

    def __call__(self, signs: Signs, within: Signs | None = None) -> bool:
        """Tell it of a passage; of a part, whether it has anything of what `within` says."""
        ...


def told_by(fact: str) -> Signs:
    """Return what tells a fact: its words, and the codes that hardly anything else shares.

    A date tells when, not what: it is a word, no code; one at the beginning is neither.
    """
    folded = _LEADING_DATE.sub("", _folded(fact))
    codes = list(_codes(folded))
    for code, _ in codes:
        folded = folded.replace(code, " ")
    joined = {_joined(code) for code, _ in codes}
    rare = {_joined(code) for code, is_date in codes if not is_date}
    words = {word for word in terms_of(folded) if _tells(word)}
    return Signs(frozenset(words | joined), frozenset(filter(_is_rare, rare)))


def signs_in(text: str) -> Signs:
    """Return everything that a passage could be known by, codes in every spelling."""
    folded = _folded(text)
    codes = frozenset(_joins(folded))
    return Signs(frozenset(terms_of(folded)) | codes, codes)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that say something."""
    return [one.strip() for one in _pieces(text) if any(map(str.isalnum, one))]


def without(text: str, says: Says) -> str:
    """Return the text with each passage struck out that says it; the same text where none does.

    A passage is a sentence, less the clauses that have nothing of it; what is JSON stays JSON.
    """
    if text[:1] in ("{", "[") and (read := _json(text)) is not None:
        changed = struck(read, says, skipped=NOTHING)
        return text if changed is read else json.dumps(changed, ensure_ascii=False)
    pieces = _pieces(text)
    changed = [_without(piece, says) for piece in pieces]
    return text if changed == pieces else "".join(changed)


def struck(value: Any, says: Says, *, skipped: frozenset[str] = NOT_SAID) -> Any:
    """Return a value, JSON-like or with messages in it, with what says it struck out of its texts.

    The same object where nothing does. A number may say it only where no field is `skipped`.
    """
    if isinstance(value, str):
        return without(value, says)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return MARK if not skipped and says(signs_in(str(value))) else value
    if isinstance(value, BaseMessage):
        return struck_message(value, says)
    if isinstance(value, dict):
        return _struck_fields(cast("dict[Any, Any]", value), says, skipped)
    if isinstance(value, list | tuple):
        return _struck_items(cast("Sequence[Any]", value), says, skipped)
    return _struck_object(value, says, skipped)


def struck_message(message: BaseMessage, says: Says) -> BaseMessage:
    """Return a message with what says it struck out of its text, calls and attachments."""
    names = ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs", "artifact")
    given = {name: getattr(message, name) for name in names if hasattr(message, name)}
    changed = _struck_fields(given, says, NOT_SAID)
    new = {name: each for name, each in changed.items() if each is not given[name]}
    return message.model_copy(update=new) if new else message


def emptied(message: BaseMessage) -> BaseMessage:
    """Return a message with all that it says struck out."""
    return message.model_copy(update={"content": MARK})


def _struck_fields(given: dict[Any, Any], says: Says, skipped: frozenset[str]) -> dict[Any, Any]:
    changed = {
        name: each
        if name in skipped
        else struck(each, says, skipped=NOTHING if name in GIVEN else skipped)
        for name, each in given.items()
    }
    return given if all(changed[name] is given[name] for name in given) else changed


def _struck_object(value: Any, says: Says, skipped: frozenset[str]) -> Any:
    if not is_dataclass(value) or isinstance(value, type):
        return value
    given = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
    changed = _struck_fields(given, says, skipped)
    return value if changed is given else replace(value, **changed)


def _struck_items(items: Sequence[Any], says: Says, skipped: frozenset[str]) -> Any:
    """Strike in a list; a text of which nothing is left goes, and so does a thought."""
    changed = [struck(each, says, skipped=skipped) for each in items]
    if all(new is old for new, old in zip(changed, items, strict=True)):
        return items
    kept = [
        new
        for new, old in zip(changed, items, strict=True)
        if new is old or not (new == MARK or _is_thought(old))
    ]
    return tuple(kept) if isinstance(items, tuple) else kept


def _is_thought(block: Any) -> bool:
    """Tell a block that its provider signed: changed, it would be refused."""
    return isinstance(block, dict) and cast("dict[str, Any]", block).get("type") in THOUGHTS


def _without(piece: str, says: Says) -> str:
    said = piece.strip()
    if not said or said == MARK or not says(whole := signs_in(piece)):
        return piece
    clauses = _CLAUSE_END.split(piece)  # every other one is what parts them
    changed = [MARK if says(signs_in(clause), whole) else clause for clause in clauses]
    left = [one for one in changed[::2] if one != MARK and any(map(str.isalnum, one))]
    if left and changed != clauses:
        return "".join(changed)
    lead, tail = piece[: len(piece) - len(piece.lstrip())], piece[len(piece.rstrip()) :]
    bullet = re.match(r"[-*•]\s+", said)
    return f"{lead}{bullet[0] if bullet else ''}{MARK}{tail}"


def _pieces(text: str) -> list[str]:
    """Part a text into sentences and what is between them; a long one into parts of it."""
    found: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        found += [sentence] if len(sentence) <= PIECE_CHARS else _parts(sentence)
    return found


def _parts(sentence: str) -> list[str]:
    found = [""]
    for clause in _CLAUSE_END.split(sentence):
        for word in [clause] if len(clause) <= PIECE_CHARS else _SPACE.split(clause):
            if len(found[-1]) + len(word) > PIECE_CHARS:
                found.append("")
            found[-1] += word
    return found


def _codes(folded: str) -> Iterator[tuple[str, bool]]:
    """Yield the codes of a folded text as they are written, and whether each is a date."""
    for groups in _GROUPS.finditer(folded):
        if not _DATE.fullmatch(groups[0]):
            yield groups[0], False
    rest = _GROUPS.sub(lambda found: found[0] if _DATE.fullmatch(found[0]) else " ", folded)
    for code in _CODE.finditer(rest):
        if "@" in code[0] or any(map(str.isdigit, code[0])):
            yield code[0], bool(_DATE.fullmatch(code[0]))


def _joins(folded: str) -> Iterator[str]:
    """Yield what neighbouring tokens with a digit or an `@` are together, up to five of them."""
    tokens = list(_TOKEN.finditer(folded))
    for at, first in enumerate(tokens):
        end, joined, coded = first.end(), first[0], any(map(str.isdigit, first[0]))
        if coded:
            yield joined
        for token in tokens[at + 1 : at + MOST_JOINED]:
            between = folded[end : token.start()]
            if not _JOINT.fullmatch(between):
                break
            end, joined = token.end(), joined + token[0]
            coded = coded or "@" in between or any(map(str.isdigit, token[0]))
            if coded:
                yield joined


def _joined(code: str) -> str:
    return "".join(_TOKEN.findall(code))


def _is_rare(code: str) -> bool:
    return len(code) >= LEAST_CODE_CHARS and not _ROUND.fullmatch(code)


def _tells(word: str) -> bool:
    """Tell a word that says something of a fact; a single Han sign does not."""
    is_wide = bool(re.match(f"[{WIDE}]", word))
    if is_wide and (len(word) == 1 or not _UNSAID.isdisjoint(word)):
        return False
    return word not in _NOT_TOLD


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


def _json(text: str) -> Any:
    try:
        read: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("Any", read) if isinstance(read, dict | list) else None
