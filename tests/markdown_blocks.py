"""The fenced blocks of the Markdown pages, for the tests that run them."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^( *)```([^`\n]*)\n(.*?)^\1```[ ]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: str
    """The page's path in the repository."""
    line: int
    language: str
    """What stands after the fence; empty for a drawing or an output."""
    text: str


def pages() -> list[Path]:
    """Return every page of the repository that a reader is given."""
    folders = ("docs", "examples", "deploy", ".github")
    return [*ROOT.glob("*.md"), *(page for one in folders for page in (ROOT / one).rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in their order."""
    text, name = page.read_text("utf-8"), page.relative_to(ROOT).as_posix()
    return [
        Block(name, text[: one.start()].count("\n") + 1, one[2], textwrap.dedent(one[3]))
        for one in FENCE.finditer(text)
    ]


def blocks_in(page: Path, language: str) -> list[str]:
    """Return the texts of a page's blocks in a language."""
    return [block.text for block in blocks(page) if block.language == language]
