"""What the offline model answers to everlong's own requests: summary, facts, consolidation."""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from everlong.nodes.digest import DEFAULT_HEADINGS, digest
from everlong.nodes.digest_lines import heading_of, section_of
from everlong.nodes.offline_consolidation import consolidated
from everlong.nodes.offline_cues import USUAL_HEADING
from everlong.nodes.offline_facts import Told, facts_of
from everlong.nodes.rendering import ABOVE
from everlong.nodes.tokens import estimate_messages
from everlong.nodes.transcript import SUMMARY_NAME

NO_REPLY = "NO_REPLY"
LEAST_TOKENS, MOST_TOKENS, SHARE = 700, 4_000, 20
"""Room of a summary: one twentieth of the conversation, within these bounds."""
HEADING_CHARS = 24

_BLOCK = re.compile(
    r"^\[(?P<who>user|assistant(?! calls)|earlier summary|tool(?= )|assistant calls)"
    r"(?: (?P<number>\d+)(?:, (?P<day>\d{4}-\d{2}-\d{2}))?(?=[\] ]))?"
    r"(?: (?P<name>[^\]\n]*))?\](?P<args>[^\n]*)$",
    re.MULTILINE,
)
_LISTED = re.compile(
    r"^\s*(?:\d{1,2}[.、)]|[一二三四五六]、|[-*])\s*[“\"「]?(?P<name>[^“”\"「」:：。.，,]+)"
)
_NOW = re.compile(r"It is now (\d{4}-\d{2}-\d{2})")
_LIMIT = re.compile(
    r"(?:under|below|at most|within|不超过|少于|最多)\s*(\d[\d,]*)\s*(?:个)?\s*tokens?",
    re.IGNORECASE,
)


def inner_answer(messages: Sequence[BaseMessage]) -> str | None:
    """Return the answer to a request of everlong's own; None where a person is speaking."""
    last = messages[-1] if messages else None
    if not isinstance(last, HumanMessage):
        return None
    text = last.text
    document, ledger = _within("document", text), _within("ledger", text)
    if document is not None and ledger is not None:
        return consolidated(document, ledger, limit_tokens=_limit(text))
    conversation = _within("conversation", text)
    if conversation is None:
        return _summary(_spoken(messages[:-1]), text) if ABOVE in text else None
    told = text.replace(conversation, "", 1)
    if NO_REPLY in told:
        now = _NOW.search(told)
        users = [m for m in parsed(conversation) if isinstance(m, HumanMessage) and not m.name]
        told_by = [Told(m.text, m.id or "", str(m.additional_kwargs.get("day", ""))) for m in users]
        remembered = _within("remembered", told) or ""
        return "\n".join(facts_of(told_by, remembered, today=now[1] if now else "")) or NO_REPLY
    return _summary(parsed(conversation), told)


def _within(tag: str, text: str) -> str | None:
    """Return what stands between the first opening and the last closing line of a tag."""
    found = re.search(rf"^<{tag}>\n(.*)\n?^</{tag}>", text, re.DOTALL | re.MULTILINE)
    return found[1] if found else None


def _limit(told: str) -> int:
    found = _LIMIT.search(told)
    return int(found[1].replace(",", "")) if found else MOST_TOKENS


def _spoken(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [m for m in messages if not isinstance(m, SystemMessage) and not is_reference(m)]


def is_reference(message: BaseMessage) -> bool:
    """Whether a message is material beside the conversation, such as MEMORY.md."""
    name = message.name or ""
    return isinstance(message, HumanMessage) and name.startswith("__") and name != SUMMARY_NAME


def _summary(messages: Sequence[BaseMessage], told: str) -> str:
    limit = max(LEAST_TOKENS, min(MOST_TOKENS, estimate_messages(messages) // SHARE))
    if named := _LIMIT.search(told):
        limit = min(limit, int(named[1].replace(",", "")))
    return digest(messages, limit_tokens=limit, headings=headings_in(told))


def headings_in(told: str) -> tuple[str, ...]:
    """Return the headings that instructions ask for; the usual four where they name none."""
    lines = told.splitlines()
    marked = [name for line in lines if (name := heading_of(line))]
    listed = [
        found["name"].strip()
        for line in lines
        if (found := _LISTED.match(line)) and len(found["name"]) <= HEADING_CHARS
    ]
    plain = [name for line in lines if USUAL_HEADING.fullmatch(name := line.strip(" :："))]
    named = [found[0] for found in USUAL_HEADING.finditer(told)]
    for names in (marked, [name for name in listed if section_of(name)], plain, named):
        if len(unique := tuple(dict.fromkeys(names))) > 1:
            return unique
    return DEFAULT_HEADINGS


def parsed(conversation: str) -> list[BaseMessage]:
    """Read a rendered conversation back into messages."""
    found: list[BaseMessage] = []
    blocks = list(_BLOCK.finditer(conversation))
    ends = [*(block.start() for block in blocks[1:]), len(conversation)]
    for block, end in zip(blocks, ends, strict=False):
        text = conversation[block.end() : end].strip()
        if block["who"] == "user":
            found.append(_spoken_by_user(text, block))
        elif block["who"] == "earlier summary":
            found.append(HumanMessage(text, name=SUMMARY_NAME))
        elif block["who"] == "assistant":
            found.append(AIMessage(text))
        elif block["who"] == "assistant calls":
            found.append(_call(block["name"] or "", block["args"], len(found)))
        else:
            found.append(_result((block["name"] or "").strip(), text, found))
    return found


def _spoken_by_user(text: str, block: re.Match[str]) -> HumanMessage:
    return HumanMessage(text, id=block["number"], additional_kwargs={"day": block["day"] or ""})


def _call(name: str, written: str, place: int) -> AIMessage:
    try:
        read = json.loads(written)
    except ValueError:
        read = written.strip()
    args = cast("dict[str, Any]", read) if isinstance(read, dict) else {"": read}
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"c{place}"}])


def _result(name: str, text: str, before: Sequence[BaseMessage]) -> ToolMessage:
    """Return a result that answers the oldest open call of this tool."""
    answered = {m.tool_call_id for m in before if isinstance(m, ToolMessage)}
    calls = [call for m in before if isinstance(m, AIMessage) for call in m.tool_calls]
    ids = [str(c["id"]) for c in calls if c["name"] == name and c["id"] not in answered]
    return ToolMessage(text, name=name, tool_call_id=ids[0] if ids else f"r{len(before)}")
