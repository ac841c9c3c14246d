"""What the offline model answers to a person, from what the prompt states and nothing else."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from everlong.nodes.cues import OPEN, REVERSE, RULE, SUMMARISE, VERBATIM
from everlong.nodes.digest import digest
from everlong.nodes.digest_leads import was_asked
from everlong.nodes.identifiers import identifiers, missing
from everlong.nodes.offline_cues import (
    ABOUT_USER,
    CONFIRM_ONLY,
    CONFIRMATION,
    FIRST,
    GREETING,
    IDENTITY,
    REMEMBERED,
    REPLY_WITH,
    THANKS,
    USUAL_HEADING,
)
from everlong.nodes.offline_facts import Told, facts_of
from everlong.nodes.offline_inner import is_reference
from everlong.nodes.offline_recall import answers_to, last_said, value_in
from everlong.nodes.offline_statements import Statement, statements_in
from everlong.nodes.offline_terms import keywords
from everlong.nodes.offline_texts import quoted_back, said, told
from everlong.nodes.statements import Language, bare, core, is_question, kind_of, sentences
from everlong.nodes.transcript import is_summary

SUMMARY_TOKENS = 1_000
MOST_LISTED = 20
_HEADINGS = {
    "zh": ("当前目标", "已确认", "产物", "待确认"),
    "en": ("Goal", "Summary", "Artifacts", "Open"),
}
_AND_ASKS = re.compile(
    r"[,，;；]?\s*\b(?:and|as well as)\s+(?=(?:what|which|who|whom|when|where|how|whose)\b)"
    r"|,\s*and\s+(?=(?:is|are|was|were|do|does|did|can|has|have)\b)"
    r"|[，,；;、](?=[^，,；;、]{0,16}(?:什么|多少|哪|谁|几|吗))",
    re.IGNORECASE,
)
_BULLET = re.compile(r"^- ", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """What is said to a person."""

    text: str = ""
    stated: tuple[Statement, ...] = ()
    """The statements that answer; several answers tell theirs together."""
    sought: str = ""
    """The question that nothing in the prompt answers; empty where none is left."""


def answer(
    messages: Sequence[BaseMessage], question: int, tongue: Language, tools: Collection[str]
) -> Answer:
    """Answer the message at the place `question`, from all the messages."""
    text = messages[question].text
    asks = [one for one in sentences(text) if _asks(one)]
    if not asks or (CONFIRM_ONLY.search(text) and not any(map(is_question, asks))):
        return Answer(_acknowledged(text, tongue))
    others = [*messages[:question], *_own_statements(text), *messages[question + 1 :]]
    room = _Room(others, statements_in(others), tongue, tools)
    parts = [room.answer_to(part) for one in asks for part in _parts(one)]
    found = {one.place: one for part in parts for one in part.stated}
    texts = [told(list(found.values()), tongue)] if found else []
    texts += dict.fromkeys(part.text for part in parts if part.text)
    return Answer("\n".join(texts), sought=" ".join(part.sought for part in parts if part.sought))


def _asks(sentence: str) -> bool:
    """Whether a sentence wants more than to be noted: it asks, or tells us to do something now."""
    kind = kind_of(sentence)
    return kind in ("question", "recall") or (kind == "request" and not RULE.search(sentence))


def _parts(ask: str) -> list[str]:
    """Return the questions that one sentence asks; what is to be summed up is one."""
    if kind_of(ask) == "recall" and SUMMARISE.search(ask):
        return [ask]
    return [part for part in _AND_ASKS.split(ask) if part.strip()]


def _acknowledged(text: str, tongue: Language) -> str:
    """Confirm briefly, in the words that were asked for, if any."""
    wanted = REPLY_WITH.search(text)
    word = (wanted["zh"] or wanted["en"]) if wanted else ""
    if word and not CONFIRMATION.fullmatch(word):
        return word
    if all(kind_of(one) == "nothing" for one in sentences(text)):
        if GREETING.search(text):
            return said("hello", tongue)
        if THANKS.search(text):
            return said("welcome", tongue)
    return said("confirmed", tongue)


def _own_statements(text: str) -> list[BaseMessage]:
    """Return what the asking message states beside its questions, such as a pasted text."""
    stated = [one for one in sentences(text) if not _asks(one)]
    return [HumanMessage("\n".join(stated))] if stated else []


@dataclass(frozen=True)
class _Room:
    """What there is to answer from."""

    messages: Sequence[BaseMessage]
    stated: Sequence[Statement]
    tongue: Language
    tools: Collection[str]

    def answer_to(self, ask: str) -> Answer:
        """Answer one sentence."""
        kind = kind_of(ask)
        ways = (
            (self._introduced, IDENTITY.search(bare(ask))),
            (self._wording, VERBATIM.search(ask)),
            (self._about_user, ABOUT_USER.search(ask) or REMEMBERED.search(ask)),
            (self._summary, kind == "recall" and SUMMARISE.search(ask)),
            (self._open_points, OPEN.search(ask)),
            (self._reversed, REVERSE.search(ask)),
            (self._refused, kind == "request"),
        )
        return next((way for way, fits in ways if fits), self._recalled)(ask)

    def _recalled(self, ask: str) -> Answer:
        found = answers_to(core(ask) or ask, self.stated)
        return Answer(stated=tuple(found)) if found else self._nothing(ask)

    def _nothing(self, ask: str) -> Answer:
        remembers = "memory_search" in self.tools or any(map(is_reference, self.messages))
        where = said("places" if remembers else "place", self.tongue)
        return Answer(said("not_found", self.tongue, where=where), sought=ask)

    def _introduced(self, _ask: str) -> Answer:
        return Answer(said("identity", self.tongue))

    def _refused(self, _ask: str) -> Answer:
        return Answer(said("cannot", self.tongue))

    def _reversed(self, ask: str) -> Answer:
        found = answers_to(REVERSE.sub(" ", ask), self.stated)
        if not found and not keywords(REVERSE.sub(" ", ask)):
            found = last_said(self.stated)
        if not found:
            return self._nothing(ask)
        value = value_in(found[0], ask)
        return Answer(said("backwards", self.tongue, value=value, reversed=value[::-1]))

    def _wording(self, ask: str) -> Answer:
        """Quote a message word for word, or say that it has been replaced by a summary."""
        spoken = [one for one in self._spoken() if isinstance(one, HumanMessage)]
        own = [one for one in spoken if not is_summary(one)]
        if FIRST.search(ask):
            meant = own[0] if own and own == spoken else None
        else:
            found = answers_to(VERBATIM.sub(" ", ask), statements_in(own))
            meant = next((one for one in own if found and found[0].text in one.text), None)
        if meant is not None:
            return Answer(quoted_back(meant.text.strip(), self.tongue))
        gone = said("gone", self.tongue)
        kept = said("archive", self.tongue) if "session_search" in self.tools else ""
        return Answer(f"{gone}\n{kept}".strip())

    def _about_user(self, ask: str) -> Answer:
        """List what memory and the conversation tell of the user."""
        users = [one.text for one in self.stated if one.voice in ("user", "summary")]
        if REMEMBERED.search(ask) and users:
            return Answer("\n".join(f"- {text}" for text in dict.fromkeys(users[-MOST_LISTED:])))
        known = [one for one in self.stated if one.voice == "memory"]
        facts = [f"- {line}" for line in dict.fromkeys(one.text for one in known)]
        facts += facts_of([Told(one) for one in users], "\n".join(facts))
        sources = dict.fromkeys(f"Source: {one.source}" for one in known if one.source)
        return Answer("\n".join([*facts, *sources])) if facts else self._nothing(ask)

    def _open_points(self, ask: str) -> Answer:
        """List what is still open after all that was said."""
        usual = self._usual_headings()
        text = digest(self._spoken(), limit_tokens=SUMMARY_TOKENS, headings=usual)
        left = text.partition(f"## {usual[-1]}\n")[2]
        return Answer(left) if left.startswith("- ") else self._nothing(ask)

    def _summary(self, ask: str) -> Answer:
        """Sum up the conversation under headings that the person names, else the usual ones."""
        spoken = self._spoken()
        if not spoken or missing(identifiers(ask), "\n".join(one.text for one in spoken)):
            return self._nothing(ask)
        usual = self._usual_headings()
        named = [found[0] for found in USUAL_HEADING.finditer(ask)]
        headings = tuple(dict.fromkeys([usual[0], *named])) if len(named) > 1 else usual
        text = digest(spoken, limit_tokens=SUMMARY_TOKENS, headings=headings)
        lines = [line for line in text.splitlines() if not was_asked(line)]
        parts = [one for one in "\n".join(lines).split("\n\n") if _BULLET.search(one)]
        return Answer("\n\n".join(parts)) if parts else self._nothing(ask)

    def _usual_headings(self) -> tuple[str, ...]:
        return _HEADINGS["zh" if self.tongue == "zh" else "en"]

    def _spoken(self) -> list[BaseMessage]:
        beside = (SystemMessage,)
        return [m for m in self.messages if not isinstance(m, beside) and not is_reference(m)]
