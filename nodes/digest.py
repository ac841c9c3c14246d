"""The extractive digest that stands in where no summary can be had (R20)."""

import json
from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.nodes import cues
from everlong.nodes.digest_leads import lead, lead_of, returned
from everlong.nodes.digest_lines import (
    EXACT,
    OPEN,
    STATED,
    TALK,
    Item,
    carried,
    fitted,
    is_exact,
    settled,
    shortened,
)
from everlong.nodes.statements import (
    Language,
    bare,
    core,
    is_question,
    kind_of,
    language,
    open_points,
    sentences,
)
from everlong.nodes.summary import summary_body
from everlong.nodes.transcript import is_summary

__all__ = ["DEFAULT_HEADINGS", "digest", "sentences"]

DEFAULT_HEADINGS = ("SESSION INTENT", "SUMMARY", "ARTIFACTS", "NEXT STEPS")
HEAD_SENTENCES, TAIL_SENTENCES = 16, 8
"""Read of one message; what lies between, in a longer one, is material and no statement."""
ANSWER_SENTENCES = 6
CALL_CHARS = 120
_WEIGHTS = {"question": TALK, "recall": TALK, "goal": OPEN, "remember": EXACT}


def digest(
    messages: Sequence[BaseMessage],
    *,
    limit_tokens: int,
    headings: Sequence[str] = DEFAULT_HEADINGS,
) -> str:
    """Return what `messages` state, decide and leave open, under the headings, in so many tokens.

    An earlier summary's lines go on under their headings. What weighs least goes first when there
    is no room, oldest first. The same messages always give the same text.
    """
    tongue = _tongue(messages)
    items: list[Item] = []
    asked = False
    for message in messages:
        if is_summary(message):
            items += carried(summary_body(message), headings)
        elif isinstance(message, HumanMessage):
            stated = _stated(message.text)
            items += [item for one in stated for item in _user_items(one, tongue)]
            asked = bool(stated) and kind_of(stated[-1]) == "question"
        elif isinstance(message, AIMessage):
            items += _assistant_items(message.text, tongue, asked=asked)
    items += [*_call_items(messages, tongue), *_unfinished(messages, tongue)]
    return fitted(settled(items), headings, tongue, limit_tokens)


def _tongue(messages: Sequence[BaseMessage]) -> Language:
    """Return the language of the user, else of what there is."""
    users = [m for m in messages if isinstance(m, HumanMessage) and not is_summary(m)]
    return language("\n".join(m.text[:2_000] for m in users or messages))


def _stated(text: str) -> list[str]:
    found = sentences(text)
    if len(found) <= HEAD_SENTENCES + TAIL_SENTENCES:
        return found
    return [*found[:HEAD_SENTENCES], *found[-TAIL_SENTENCES:]]


def _user_items(sentence: str, tongue: Language) -> list[Item]:
    """Return a user's sentence as one line, or as one for each point that it leaves open."""
    kind, said = kind_of(sentence), core(sentence)
    if kind == "nothing":
        return []
    if kind == "open":
        return [Item("open", lead("open", tongue) + point, OPEN) for point in open_points(sentence)]
    section = "goal" if kind in ("question", "recall", "request", "goal") else "said"
    weight = _WEIGHTS.get(kind, EXACT if is_exact(said) else STATED)
    said = bare(sentence).rstrip("?？ ") if kind == "question" else said
    return [Item(section, lead(kind, tongue) + shortened(said), weight)]


def _assistant_items(text: str, tongue: Language, *, asked: bool) -> list[Item]:
    """Return what an assistant settles: decisions, exact values, and how an answer begins."""
    found: list[Item] = []
    for sentence in () if cues.OURSELVES.search(text) else _stated(text):
        said = cues.OWN_LEAD.sub("", core(sentence))
        if not said or _is_restated(sentence):
            continue
        exact = is_exact(said)
        telling = exact or cues.DECIDED.search(said) or (asked and not found)
        if telling and not is_question(sentence):
            found.append(Item("said", lead("answer", tongue) + shortened(said), int(exact)))
    return found[:ANSWER_SENTENCES]


def _is_restated(sentence: str) -> bool:
    """Whether an assistant's sentence is a heading, or a line of a digest that it repeats."""
    return sentence.startswith("#") or (sentence.startswith("-") and lead_of(sentence) != "")


def _call_items(messages: Sequence[BaseMessage], tongue: Language) -> list[Item]:
    """Return the tool calls and how their results begin, quoted as what a tool returned."""
    results = {m.tool_call_id: m for m in messages if isinstance(m, ToolMessage)}
    found: list[Item] = []
    for call in (call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls):
        result = results.get(str(call["id"]))
        if result is None:
            continue
        begins = next(iter(sentences(result.text[:2_000])), "")[:CALL_CHARS]
        called = lead("call", tongue) + _call(call["name"], call["args"])
        line = called + returned(begins, tongue, failed=result.status == "error")
        found.append(Item("artifacts", line, int(is_exact(line))))
    return found


def _call(name: str, args: object) -> str:
    written = json.dumps(args, ensure_ascii=False, default=str)
    return f"{name} {written if len(written) <= CALL_CHARS else written[:CALL_CHARS] + '…'}"


def _unfinished(messages: Sequence[BaseMessage], tongue: Language) -> list[Item]:
    """Return what waits: calls without a result, and the assistant's last question."""
    answered = {m.tool_call_id for m in messages if isinstance(m, ToolMessage)}
    open_calls = [
        _call(call["name"], call["args"])
        for m in messages
        if isinstance(m, AIMessage)
        for call in m.tool_calls
        if call["id"] not in answered
    ]
    found = [Item("open", lead("running", tongue) + call, OPEN) for call in open_calls]
    spoken = [m for m in messages if m.text.strip() and not isinstance(m, ToolMessage)]
    last = spoken[-1] if spoken else None
    if isinstance(last, AIMessage):
        asked = [one for one in _stated(last.text) if is_question(one) and not _is_restated(one)]
        found += [
            Item("open", lead("asked_back", tongue) + shortened(bare(one)), OPEN)
            for one in asked[-1:]
        ]
    return found
