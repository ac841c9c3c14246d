"""The state of a run of the graph `memory`: what it is asked, and what came of it."""

from dataclasses import dataclass
from typing import Literal

from typing_extensions import TypedDict

Wish = Literal["due", "now", "no"]


@dataclass(frozen=True, kw_only=True)
class MemoryInput:
    """What a caller sends; nothing is fine."""

    consolidate: Wish = "due"
    """Rewrite MEMORY.md where that is due, now, or not at all. Without fresh entries: not."""
    retry_failed: bool = False
    """Also try again what has failed for good."""


@dataclass(frozen=True, kw_only=True)
class MemoryState(MemoryInput):
    """What a run keeps."""

    done: int = 0
    """Records that this run has done."""
    facts: int = 0
    """Lines that it wrote to the ledger."""
    waiting: int = 0
    """Records that are left: tried again later, or in somebody else's hands."""
    failed: int = 0
    """Records that have failed for good."""
    consolidated: bool = False
    """MEMORY.md was rewritten."""
    problem: str = ""
    """The newest reason why something was not done; empty: all was."""


class MemoryUpdate(TypedDict, total=False):
    """What a node of this graph writes."""

    done: int
    facts: int
    waiting: int
    failed: int
    consolidated: bool
    problem: str
