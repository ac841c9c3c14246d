"""What of MEMORY.md a thread's requests carry (R46): what they began with, and what came since.

A provider's cache holds a prompt from its beginning: where something changes after the system
message, the whole history is paid for again. So what was sent stays as it was and where it was
until the prefix changes anyway, and what is new stands before the message that it came with. Pure.
"""

from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from everlong.nodes.state import Injected
from everlong.nodes.tokens import estimate_text
from everlong.stores.passages import MARK
from everlong.stores.tombstones import Tombstones

LEAST_CACHED_TOKENS = 1_024
"""No provider caches a shorter prompt: after so short a history MEMORY.md is sent as it is now."""


def begun(recalled: dict[str, Any]) -> Injected:
    """Return what the requests of a new prefix carry: MEMORY.md as it was read."""
    return Injected(
        text=str(recalled.get("text", "")),
        keys=sorted({key for _, keys in recalled.get("lines", ()) for key in keys}),
        edited=str(recalled.get("edited", "")),
        later=[],
    )


def folded(told: Injected) -> Injected:
    """Return what was carried, for a new prefix where MEMORY.md cannot be read."""
    texts = [told["text"], *(one["text"] for one in told["later"])]
    text = "\n".join(filter(None, texts))
    return Injected(text=text, keys=told["keys"], edited=told["edited"], later=[])


def carried(
    told: Injected,
    recalled: dict[str, Any],
    messages: Sequence[BaseMessage],
    *,
    new: Collection[str],
    old_tokens: int,
    most_tokens: int,
) -> Injected:
    """Return what a call's requests carry, after `told` in the last call's.

    `new` are the ids of the messages that the call brought, `old_tokens` the size of the others.
    Where a person has changed MEMORY.md since, or all of it takes more than `most_tokens`, they
    carry it as it is now.
    """
    if not recalled:  # it cannot be read
        return told
    ids = {message.id for message in messages}
    is_whole = all(one["before"] in ids for one in told["later"])
    is_kept = (
        is_whole and old_tokens >= LEAST_CACHED_TOKENS and told["edited"] == recalled["edited"]
    )
    if not is_kept or not recalled["text"]:
        return begun(recalled)
    lines = [line for line in recalled["lines"] if _is_new(told, *line)]
    asked = [str(m.id) for m in messages if m.id in new and isinstance(m, HumanMessage)]
    if not lines or not asked:
        return told
    later = [*told["later"], {"before": asked[0], "text": "\n".join(text for text, _ in lines)}]
    keys = sorted({*told["keys"], *(key for _, of_line in lines for key in of_line)})
    found = Injected(text=told["text"], keys=keys, edited=told["edited"], later=later)
    return found if estimate_text(folded(found)["text"]) <= most_tokens else begun(recalled)


def _is_new(told: Injected, text: str, keys: Sequence[str]) -> bool:
    """Tell whether a line says a fact that no request has carried, in whichever words."""
    if keys:
        return not set(keys) <= set(told["keys"])
    stated = text.strip() and not text.lstrip().startswith("#")
    return bool(stated) and text not in folded(told)["text"].split("\n")


def still_known(told: Injected, stones: Tombstones | None) -> Injected:
    """Return what was carried without the lines that say what the user had forgotten."""
    if not stones:
        return told

    def left(text: str) -> str:
        kept = [one for one in text.split("\n") if MARK not in one and not stones.matches(one)]
        return "\n".join(kept)

    later = [one | {"text": text} for one in told["later"] if (text := left(one["text"]))]
    text, keys = left(told["text"]), told["keys"]
    return Injected(text=text, keys=keys, edited=told["edited"], later=later)
