"""What was said, or stands in memory, as facts are held against it (R43, R44). Pure."""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everlong.nodes.cues import QUESTION
from everlong.nodes.grounding import Said, said_in
from everlong.nodes.offline_terms import terms
from everlong.nodes.rendering import render_messages
from everlong.nodes.statements import is_question, kind_of, sentences

SAVE = "memory_save"
Voice = Literal["user", "assistant", "tool", "memory"]
MOST_CHARS = 60_000
"""Of one message, as a flush reads it: head and tail."""
PASSAGE_CHARS = 400
"""Of a tool's result: what stands closer together may say one thing."""
MOST_OF_A_YES = 60
"""Characters of a message that says no more than yes."""
_NOT_TOLD = frozenset({"user", "用户", "用", "户", "assistant"})
_NO_WORD = re.compile(r"^@|\d")
_YES = re.compile(
    r"^\W*(?:(?:yes|yeah|yep|yup|ok|okay|sure|right(?! now)|correct|exactly|agreed|absolutely"
    r"|definitely|of course|sounds good|go ahead|please do|do (?:so|that|it)|let's|that's it)\b"
    r"|好(?![像奇多久])|对(?![不了于我方])|是的|可以|行(?![程李动业])|嗯|没错|就这|同意|确认|当然)",
    re.IGNORECASE,
)
_HEDGE = re.compile(r"\b(?:but|except|instead|rather|change)\b|不过|但|改|换", re.IGNORECASE)
_PROPOSES = re.compile(
    r"\b(?:can|could|shall|should|would) we\b|\b(?:how|what) about\b|\bwhy (?:don't|not)\b"
    r"|, (?:right|ok|okay|correct|\w+n't \w+)\W*$"
    r"|能不能|可不可以|要不要|能否|可以吗|好吗|行吗|好不好|[对是]吧",
    re.IGNORECASE,
)
"""Of a question that says what its speaker wants, or thinks."""
_CLAUSE = re.compile(r"[,;，；—]\s*|\s(?:and|but|so|because)\s|而且|并且|所以", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Utterance:
    """Something that was said, or that memory says."""

    id: str
    """Of the message; of what memory says, the key of the fact."""
    voice: Voice
    text: str
    at: datetime | None = None
    """When it was said, on the user's clock; None: that is not known."""

    @cached_property
    def stated(self) -> str:
        """What it says; of a user's words without what only asks."""
        return _stated(self.text) if self.voice == "user" else self.text

    @cached_property
    def terms(self) -> frozenset[str]:
        """The words that it states."""
        return told_terms(self.stated)

    @cached_property
    def passages(self) -> list[frozenset[str]]:
        """The words of each part of it, each part overlapping the next by half."""
        step = PASSAGE_CHARS // 2
        starts = range(0, max(len(self.text) - step, 1), step)
        return [told_terms(self.text[start : start + PASSAGE_CHARS]) for start in starts]

    @cached_property
    def said(self) -> Said:
        """What it states that can be right or wrong."""
        return said_in([(self.stated, self.at)])

    @property
    def is_yes(self) -> bool:
        """It says yes to what was said before, and little more."""
        if self.voice != "user" or len(self.text) > MOST_OF_A_YES or not _YES.match(self.text):
            return False
        return not _HEDGE.search(self.text) and not any(map(is_question, sentences(self.text)))


def utterance(message: BaseMessage, at: datetime | None) -> Utterance:
    """Return a message as the model reads it; of an assistant its words, not its calls.

    What `memory_save` returns repeats what the assistant wanted saved.
    """
    is_assistant = isinstance(message, AIMessage) or message.name == SAVE
    text = message.text if is_assistant else render_messages([message]).partition("\n")[2]
    if len(text) > MOST_CHARS:
        text = f"{text[: MOST_CHARS // 2]}\n{text[-MOST_CHARS // 2 :]}"
    is_user = isinstance(message, HumanMessage)
    voice: Voice = "user" if is_user else "assistant" if is_assistant else "tool"
    return Utterance(id=str(message.id), voice=voice, text=text, at=at)


def told_terms(text: str) -> frozenset[str]:
    """Return the words of a text that tell something, without numbers and codes."""
    found = terms(text) if len(text) <= PASSAGE_CHARS else terms.__wrapped__(text)
    return frozenset(term for term in found - _NOT_TOLD if not _NO_WORD.search(term))


def _stated(text: str) -> str:
    """Return a text without what only asks; a clause before the question stays."""
    kept: list[str] = []
    for sentence in sentences(text):
        asks = is_question(sentence) and kind_of(sentence) in ("question", "recall")
        if not asks or _PROPOSES.search(sentence):
            kept.append(sentence)
        else:
            clauses = _CLAUSE.split(sentence)
            asking = (n for n, clause in enumerate(clauses) if QUESTION.match(clause))
            kept += clauses[: next(asking, len(clauses) - 1)]
    return "\n".join(kept)
