"""What the offline model answers to a person, from what the prompt states and nothing else."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from everlong.nodes import offline_cues as cues
from everlong.nodes.digest import digest
from everlong.nodes.identifiers import identifiers, missing
from everlong.nodes.offline_facts import facts_of
from everlong.nodes.offline_inner import is_reference
from everlong.nodes.offline_recall import answers_to, value_in
from everlong.nodes.offline_statements import Statement, Voice, statements_in
from everlong.nodes.statements import Language, bare, core, is_question, kind_of, sentences
from everlong.nodes.transcript import is_summary

SUMMARY_TOKENS = 1_000
_HEADINGS = {
    "zh": ("当前目标", "已确认", "产物", "待确认"),
    "en": ("Goal", "Summary", "Artifacts", "Open"),
}
_SAYS: dict[Voice, tuple[str, str]] = {
    "user": ("你说过：", "You said: "),
    "summary": ("", ""),
    "memory": ("", ""),
    "assistant": ("我之前说过：", "I said earlier: "),
    "tool": ("工具返回：", "A tool returned: "),
    "rules": ("规则说：", "The rules say: "),
}
_TEXTS = {
    "confirmed": ("已确认。", "Confirmed."),
    "hello": (
        "你好。我是 everlong 的离线模型，不用语言模型，只做抽取：我记得住你说的话，也能找回来。",
        "Hello. I am everlong's offline model: without a language model, by extraction alone, "
        "I keep what you tell me and find it again.",
    ),
    "welcome": ("不客气。", "You're welcome."),
    "identity": (
        "我是 everlong 的离线模型：不联网，也不含语言模型，靠抽取工作。我只复述和归纳对话、摘要和记忆里有的内容，"
        "并按要求调用工具。",
        "I am everlong's offline model: no network, no language model; I work by extraction. I repeat "
        "and sum up what the conversation, its summary and memory hold, and call tools when told to.",
    ),
    "place": ("这段对话", "this conversation"),
    "places": ("这段对话和记忆", "this conversation or in memory"),
    "not_found": (
        "{where}里没有找到相关内容。我是 everlong 的离线模型，不用语言模型，只做抽取。",
        "I found nothing about that in {where}. I am everlong's offline model, which works by "
        "extraction, without a language model.",
    ),
    "cannot": (
        "这件事我做不了：我是 everlong 的离线模型，不用语言模型，只做抽取。我能复述、归纳说过的内容，也能按要求调用工具。",
        "I cannot do that: I am everlong's offline model, which works by extraction, without a language "
        "model. I can repeat and sum up what was said, and call a tool when told to.",
    ),
    "gone": (
        "那句话的原文已不在当前的上下文里，只剩摘要。",
        "Its exact wording is no longer in the prompt; only a summary of it is.",
    ),
    "archive": (
        "会话存档里还有原文，可以用 session_search 查。",
        "The archive of this conversation has it word for word; session_search finds it.",
    ),
}
_AND_ASKS = re.compile(
    r"[,，;；]?\s*\b(?:and|as well as)\s+(?=(?:what|which|who|whom|when|where|how|whose)\b)"
    r"|[，,；;、](?=[^，,；;、]{0,16}(?:什么|多少|哪|谁|几|吗))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Answer:
    """What is said to a person."""

    text: str
    sought: str = ""
    """The question that nothing in the prompt answers; empty where none is left."""


def said(name: str, tongue: Language, **values: str) -> str:
    """Return one of our fixed texts, in Chinese or English."""
    return _TEXTS[name][0 if tongue == "zh" else 1].format(**values)


def answer(
    messages: Sequence[BaseMessage], question: int, tongue: Language, tools: Collection[str]
) -> Answer:
    """Answer the message at the place `question`, from all the messages."""
    text = messages[question].text
    asks = [one for one in sentences(text) if _asks(one)]
    if cues.IDENTITY.search(text):
        return Answer(said("identity", tongue))
    if not asks or (cues.CONFIRM_ONLY.search(text) and not any(map(is_question, asks))):
        return Answer(_acknowledged(text, tongue))
    others = [*messages[:question], *_own_statements(messages[question]), *messages[question + 1 :]]
    room = _Room(others, statements_in(others), tongue, tools)
    parts = [room.answer_to(one) for one in asks]
    texts = dict.fromkeys(part.text for part in parts)
    sought = " ".join(part.sought for part in parts if part.sought)
    return Answer("\n".join(texts), sought)


def _asks(sentence: str) -> bool:
    """Whether a sentence wants an answer: it asks, or tells us to do or repeat something."""
    kind = kind_of(sentence)
    if kind == "request":
        return not cues.RULE.search(sentence) or bool(cues.RECALL.match(bare(sentence)))
    return kind == "question" or (kind != "nothing" and bool(cues.RECALL.match(bare(sentence))))


def _acknowledged(text: str, tongue: Language) -> str:
    """Confirm briefly, in the words that were asked for, if any."""
    wanted = cues.REPLY_WITH.search(text)
    word = (wanted["zh"] or wanted["en"]) if wanted else ""
    if word and not cues.CONFIRMATION.fullmatch(word):
        return word
    if all(kind_of(one) == "nothing" for one in sentences(text)):
        if cues.GREETING.search(text):
            return said("hello", tongue)
        if cues.THANKS.search(text):
            return said("welcome", tongue)
    return said("confirmed", tongue)


def _own_statements(message: BaseMessage) -> list[BaseMessage]:
    """Return what the asking message states beside its questions, such as a pasted text."""
    stated = [one for one in sentences(message.text) if not _asks(one)]
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
        if cues.VERBATIM.search(ask):
            return self._wording(ask)
        if cues.ABOUT_USER.search(ask):
            return self._about_user(ask)
        if cues.SUMMARISE.search(ask) and kind_of(ask) == "request":
            return self._summary(ask)
        if cues.REVERSE.search(ask):
            return self._reversed(ask)
        if kind_of(ask) == "request" and not cues.RECALL.match(bare(ask)):
            return Answer(said("cannot", self.tongue))
        return self._recalled(ask)

    def _recalled(self, ask: str) -> Answer:
        parts = [part for part in _AND_ASKS.split(core(ask)) if part.strip()]
        found = [answers_to(part, self.stated) for part in parts]
        chosen = list({one.place: one for each in found for one in each}.values())
        sought = " ".join(part for part, each in zip(parts, found, strict=True) if not each)
        if not chosen:
            return self._nothing(ask)
        text = _told(chosen, self.tongue)
        return Answer(f"{text}\n{self._nothing(sought).text}" if sought else text, sought)

    def _nothing(self, ask: str) -> Answer:
        where = said("places" if "memory_search" in self.tools else "place", self.tongue)
        return Answer(said("not_found", self.tongue, where=where), ask)

    def _reversed(self, ask: str) -> Answer:
        found = answers_to(cues.REVERSE.sub(" ", ask), self.stated)
        if not found:
            return self._nothing(ask)
        value = value_in(found[0], ask)
        backwards = value[::-1]
        if self.tongue == "zh":
            return Answer(f"“{value}”倒过来是“{backwards}”。")
        return Answer(f'"{value}" backwards is "{backwards}".')

    def _wording(self, ask: str) -> Answer:
        """Quote a message word for word, or say that it has been replaced by a summary."""
        spoken = [m for m in self.messages if isinstance(m, HumanMessage) and not is_reference(m)]
        summarised = any(map(is_summary, spoken))
        own = [m for m in spoken if not is_summary(m)]
        if cues.FIRST.search(ask):
            quoted = None if summarised or not own else own[0]
        else:
            found = answers_to(cues.VERBATIM.sub(" ", ask), statements_in(own))
            quoted = next((m for m in own if found and found[0].text in m.text), None)
        if quoted is not None:
            text = quoted.text.strip()
            return Answer(
                f"原文是：“{text}”" if self.tongue == "zh" else f'Word for word: "{text}"'
            )
        gone = said("gone", self.tongue)
        if "session_search" in self.tools:
            gone += (" " if self.tongue != "zh" else "") + said("archive", self.tongue)
        return Answer(gone)

    def _about_user(self, ask: str) -> Answer:
        users = [m.text for m in self.messages if isinstance(m, HumanMessage) and not m.name]
        known = [one for one in self.stated if one.voice == "memory"]
        facts = [f"- {line}" for line in dict.fromkeys(one.text for one in known)]
        facts += facts_of(users, "\n".join(facts))
        sources = list(dict.fromkeys(f"Source: {one.source}" for one in known if one.source))
        return Answer("\n".join([*facts, *sources])) if facts else self._nothing(ask)

    def _summary(self, ask: str) -> Answer:
        """Sum up the conversation under headings that the person names, else the usual ones."""
        spoken = [
            m for m in self.messages if not isinstance(m, SystemMessage) and not is_reference(m)
        ]
        if not spoken or missing(identifiers(ask), "\n".join(m.text for m in spoken)):
            return self._nothing(ask)
        usual = _HEADINGS["zh" if self.tongue == "zh" else "en"]
        named = [found[0] for found in cues.USUAL_HEADING.finditer(ask)]
        headings = tuple(dict.fromkeys([usual[0], *named])) if len(named) > 1 else usual
        text = digest(spoken, limit_tokens=SUMMARY_TOKENS, headings=headings)
        parts = [part for part in text.split("\n\n") if not re.search(r"\n(?:None|无)$", part)]
        return Answer("\n\n".join(parts)) if parts else self._nothing(ask)


def _told(chosen: Sequence[Statement], tongue: Language) -> str:
    """Tell statements, each voice by itself, and name the sources that they have."""
    end, joint = ("。", "；") if tongue == "zh" else (".", "; ")
    texts: dict[str, list[str]] = {}
    for one in chosen:
        texts.setdefault(_SAYS[one.voice][0 if tongue == "zh" else 1], []).append(one.text)
    told = [f"{_opened(lead, joint.join(each))}{end}" for lead, each in texts.items()]
    sources = dict.fromkeys(f"Source: {one.source}" for one in chosen if one.source)
    return "\n".join([" ".join(told) if tongue != "zh" else "".join(told), *sources])


def _opened(lead: str, text: str) -> str:
    """Put a lead-in before a text, so that the text's own words are not repeated as a sentence."""
    first, _, rest = text.partition(" ")
    if not lead:
        return f"{text[:1].upper()}{text[1:]}"
    lower = first.lower() in (
        "my",
        "our",
        "the",
        "we",
        "a",
        "an",
        "please",
        "always",
        "never",
        "it",
    )
    return f"{lead}{first.lower() if lower else first}{' ' if rest else ''}{rest}"
