"""The summary message: how a summary is framed, and what it carries over (R14, R19)."""

import hashlib
import re
from collections.abc import Iterable, Sequence

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.identifiers import identifiers, missing
from everlong.nodes.tokens import estimate_text
from everlong.nodes.transcript import SUMMARY_NAME, is_summary

HEADER = "Here is a summary of the conversation to date:"
CARRIED = "Also named in that part of the conversation, word for word:"
ARCHIVE = "in the archive of this conversation"
SHORT_SUMMARY_TOKENS = 1_000
PASSES = 3
_LEFT = re.compile(r"\n+\((\d+) more (?:is|are) [^\n]{1,120}\)\Z")
"""The line that stands for what the list has no room for."""


def carried_over(replaced: Sequence[BaseMessage], text: str) -> list[str]:
    """Identifiers that users and tools stated in `replaced` and that `text` lacks (R19).

    Newest and most often used first; those of an earlier summary's list are among them.
    """
    seen: dict[str, list[int]] = {}
    for index, message in enumerate(replaced):
        found = [*summary_carried(message)] if is_summary(message) else []
        if isinstance(message, HumanMessage | ToolMessage):
            found += identifiers(summary_body(message) if is_summary(message) else message.text)
        for identifier in found:
            seen.setdefault(identifier, []).append(index)
    ranked = sorted(seen, key=lambda name: (seen[name][-1], len(seen[name])), reverse=True)
    return missing(ranked, text)


def summary_message(
    text: str,
    carried: Sequence[str],
    *,
    most_tokens: int,
    left: int = 0,
    where: str = ARCHIVE,
) -> HumanMessage:
    """Frame a summary, with as many carried-over identifiers as `most_tokens` holds.

    The others, and `left` of earlier lists, are counted, and `where` says how they are found.
    """
    whole = text.strip().removeprefix(HEADER).replace(CARRIED, CARRIED.rstrip(":") + ".").strip()
    listed = _fitting(carried, most_tokens)
    parts = [HEADER, "", whole]
    if len(listed) < len(carried):
        listed = _fitting(carried, most_tokens - estimate_text(_left_line(len(carried), where)))
    if listed:
        parts += ["", CARRIED, *listed]
    if more := left + len(carried) - len(listed):
        parts += ([] if listed else [""]) + [_left_line(more, where)]
    content = "\n".join(parts)
    digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:32]
    return HumanMessage(content, name=SUMMARY_NAME, id=f"{SUMMARY_NAME}:{digest}")


def _fitting(carried: Sequence[str], most_tokens: int) -> list[str]:
    """Return the identifiers that fit, in their order; one that is too long keeps no other out.

    A list costs less than its lines one by one, so what is left over is given out again.
    """
    listed: dict[str, None] = {}
    for _ in range(PASSES):
        room = most_tokens - _list_tokens(listed)
        for name in (name for name in carried if name not in listed):
            if room <= 1:
                break
            if (size := estimate_text(name) + 1) <= room:
                listed[name] = None
                room -= size
    while listed and _list_tokens(listed) > most_tokens:
        listed.popitem()
    return [name for name in carried if name in listed]


def _list_tokens(listed: Iterable[str]) -> int:
    return estimate_text("\n".join([CARRIED, *listed]))


def _left_line(count: int, where: str) -> str:
    return f"({count} more {'is' if count == 1 else 'are'} {where}.)"


def summary_body(message: BaseMessage) -> str:
    """Return a summary message's own text, without frame and list."""
    body = _LEFT.sub("", message.text.removeprefix(HEADER))
    return body.split(f"\n\n{CARRIED}\n", 1)[0].strip()


def summary_carried(message: BaseMessage) -> list[str]:
    """Return the identifiers that a summary message lists."""
    _, _, listed = _LEFT.sub("", message.text).partition(f"\n\n{CARRIED}\n")
    return [line for line in listed.splitlines() if line]


def summary_left(message: BaseMessage) -> int:
    """Return how many identifiers a summary message leaves to the archive."""
    found = _LEFT.search(message.text)
    return int(found[1]) if found else 0
