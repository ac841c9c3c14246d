"""What the system prompt says of the tools that are on (R46): when to search, cite and save."""

from collections.abc import Collection

RECALL = (
    "Before you answer about earlier work, decisions, dates, people or preferences that are not "
    "in front of you, search with {tools}. Cite what you found as it is given, "
    "`Source: <path>#<line>`; where nothing was found, say so."
)
SAVE = (
    "When the user states something lasting (an agreement, a preference, a standing instruction), "
    "save it with memory_save."
)
FORGET = "When the user wants something forgotten, erase it with memory_forget."
ARCHIVE = (
    "The exact words of this conversation, also of the part that a summary replaced, are in the "
    "archive: {tools}."
)
STORED = (
    "A text that was too long to keep is stored under the path that stands in its place: {tools}."
)
READ_STORED = "read_stored"
"""`read_file`, where the caller has a tool of that name."""


def guidance(tools: Collection[str]) -> str:
    """Return the guidance for the tools that are on, naming no other."""
    parts = [
        (RECALL, ("memory_search", "memory_get")),
        (SAVE, ("memory_save",)),
        (FORGET, ("memory_forget",)),
        (ARCHIVE, ("session_search", "session_history")),
        (STORED, (READ_STORED if READ_STORED in tools else "read_file",)),
    ]
    lines: list[str] = []
    for text, named in parts:
        on = [name for name in named if name in tools]
        if on:
            lines.append(text.format(tools=" and ".join(on)))
    return "\n".join(lines)
