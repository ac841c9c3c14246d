"""All that a prompt states, each statement with who says it and where memory has it from."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everlong.nodes.cues import OURSELVES, OWN_LEAD
from everlong.nodes.digest_leads import lead_of, without_lead
from everlong.nodes.digest_lines import heading_of
from everlong.nodes.offline_inner import is_reference
from everlong.nodes.offline_terms import terms
from everlong.nodes.statements import core, is_question, kind_of, sentences
from everlong.nodes.summary import summary_body
from everlong.nodes.transcript import is_summary

Voice = Literal["user", "summary", "memory", "assistant", "tool", "rules"]
Said = tuple[str, Voice, str]
"""What is said, by whom, and its source."""

MOST_OF_ONE = 2_000
"""Sentences or lines of one message; more is a pasted file, and costs seconds."""

_SOURCE = re.compile(
    r"^\s*(?:[-*]\s*)?(?:Source|来源)\s*[:：]\s*(?P<name>\S.*?)\s*$", re.IGNORECASE
)
_FRAME = re.compile(
    r'^<reference source="(?P<name>[^"]+)"(?P<newer>[^>]*)>\n(?P<body>.*?)\n?</reference>',
    re.DOTALL,
)
_ADDRESSED = re.compile(r"\byou(?:r|rself)?\b|你", re.IGNORECASE)
_SILENT = frozenset({"question", "recall", "asked_back", "running"})
"""Lines of a summary that tell what was asked: no statements."""
_VOICES: dict[str, Voice] = {"": "summary", "answer": "assistant", "call": "tool"}
"""By a line's lead-in; all others tell what the user said."""


@dataclass(frozen=True)
class Statement:
    """Something that a prompt says."""

    text: str
    voice: Voice
    place: int
    """The higher, the newer."""
    source: str = ""
    """Where memory says it is from, such as `memory/2026-10-30.md#3-4`."""
    terms: frozenset[str] = field(default_factory=frozenset[str])


def statements_in(messages: Sequence[BaseMessage]) -> list[Statement]:
    """Return what the messages state, oldest first; no questions, no talk of us about ourselves."""
    said = [one for message in messages for one in _reader_of(message)(message)]
    return [
        Statement(text, voice, place, source, terms(text))
        for place, (text, voice, source) in enumerate(said)
        if text
    ]


def _reader_of(message: BaseMessage) -> Callable[[BaseMessage], Iterable[Said]]:
    if isinstance(message, HumanMessage):
        if is_summary(message):
            return _by_summary
        return _by_reference if is_reference(message) else _by_user
    if isinstance(message, AIMessage):
        return _by_assistant
    return _by_tool if isinstance(message, ToolMessage) else _by_rules


def _by_user(message: BaseMessage) -> list[Said]:
    return [(core(one), "user", "") for one in _read(message.text) if not asks(one)]


def _read(text: str) -> list[str]:
    """Return the sentences of a text; of a very long one, those of its head and tail."""
    found = sentences(text)
    half = MOST_OF_ONE // 2
    return found if len(found) <= MOST_OF_ONE else [*found[:half], *found[-half:]]


def asks(sentence: str) -> bool:
    """Whether a sentence only asks for what was said."""
    return is_question(sentence) or kind_of(sentence) == "recall"


def _by_assistant(message: BaseMessage) -> list[Said]:
    if OURSELVES.search(message.text):
        return []
    said = [one for one in sentences(message.text) if not (is_question(one) or _SOURCE.match(one))]
    told = [one for line in said if (one := _of_line(line))]
    return [(OWN_LEAD.sub("", text), "assistant", "") for text, _, _ in told]


def _by_tool(message: BaseMessage) -> list[Said]:
    voice: Voice = "memory" if (message.name or "").startswith("memory_") else "tool"
    return [(text, voice, source) for text, source in sourced(message.text)]


def _by_rules(message: BaseMessage) -> list[Said]:
    """Return what a system message states; what it tells the assistant to do is no statement."""
    if not isinstance(message, SystemMessage):
        return []
    told = [one for one in sentences(message.text) if kind_of(one) == "fact"]
    return [(core(one), "rules", "") for one in told if not _ADDRESSED.search(one)]


def _by_summary(message: BaseMessage) -> list[Said]:
    lines = summary_body(message).splitlines()
    return [one for line in lines if (one := _of_line(line))]


def _of_line(line: str) -> Said | None:
    """Return what a line of a summary states; None for a heading and for what was only asked."""
    kind = lead_of(line)
    if heading_of(line) or kind in _SILENT:
        return None
    told = core(without_lead(line))
    if kind == "open":
        told += "待确认" if core(line).startswith("待确认") else " (still open)"
    return told, _VOICES.get(kind, "user"), ""


def _by_reference(message: BaseMessage) -> list[Said]:
    """Return the lines of reference material; a source is the frame's name and the line.

    Of newer lines, which stand elsewhere by now, it is the name.
    """
    framed = _FRAME.match(message.text)
    if not framed:
        return [(text, "memory", source) for text, source in sourced(message.text)]
    body = framed["body"].partition("\n\n")[2]
    return [
        (core(one), "memory", framed["name"] + ("" if framed["newer"] else f"#{number}"))
        for number, line in enumerate(body.splitlines(), 1)
        if not heading_of(line)
        for one in sentences(line)
    ]


def sourced(text: str) -> list[tuple[str, str]]:
    """Return the statements of a search's result, each with the `Source:` line that belongs to it.

    That is the next one of the same paragraph, else the last one before, else the next of all. A
    result without any says that nothing was found.
    """
    lines = text.splitlines()[:MOST_OF_ONE]
    marks = {
        place: mark["name"] for place, line in enumerate(lines) if (mark := _SOURCE.match(line))
    }
    found: list[tuple[str, str]] = []
    for place, line in enumerate(lines if marks else ()):
        if place not in marks and line.strip():
            source = _source_of(place, lines, marks)
            found += [(core(one), source) for one in sentences(line) if not is_question(one)]
    return found


def _source_of(place: int, lines: Sequence[str], marks: dict[int, str]) -> str:
    end = next((at for at in range(place, len(lines)) if not lines[at].strip()), len(lines))
    same = [marks[at] for at in marks if place < at < end]
    before = [marks[at] for at in marks if at < place]
    after = [marks[at] for at in marks if at > place]
    return (same[:1] or before[-1:] or after[:1] or [""])[0]
