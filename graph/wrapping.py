"""Break text between words as it comes, by the cells that a terminal gives each character."""

import re
from collections.abc import Callable
from typing import Any

from rich.cells import cell_len, set_cell_size

_WIDE = (
    "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6"
    "\U0001f300-\U0001faff\U00020000-\U0003fffd"
)
"""Han, kana, hangul and full-width signs: a line may end after each of them."""
_OPENING = "（《「『【〔“‘"
_CLOSING = "，。、；：？！）》」』】〕”’…％"
_PIECE = re.compile(
    rf"\n|[^\S\n]+|[{_OPENING}]*(?:[{_WIDE}]|[^\s{_WIDE}{_OPENING}][^\s{_WIDE}]*)?[{_CLOSING}]*"
)
_BULLET = re.compile(r"[-*•·→←✓✗]|\d{1,3}[.)]")
_TURNING = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS: dict[int, Any] = {
    code: "\ufffd"
    for code in (*range(0x20), *range(0x7F, 0xA0), *_TURNING)
    if chr(code) not in "\n\t\r"
} | {ord("\t"): "    ", ord("\r"): ""}
"""What would move the cursor, change the terminal or turn text around is shown as no text."""


class Flow:
    """Writes text that comes in parts, in lines of at most `width` cells.

    A word is held back until it is whole; one that is wider than a line is left to the terminal.
    What goes on after a break is indented by `indent`, and as the item that it belongs to.
    """

    def __init__(self, write: Callable[[str], object], *, width: int, indent: str = "") -> None:
        self._write = write
        self._width = width
        self._indent = indent
        self._hang = indent
        self._at = 0
        self._gap = ""
        self._held = ""
        self._inside = False  # a word that is wider than a line, and has begun

    @property
    def is_mid_line(self) -> bool:
        """Whether something stands on the line."""
        return bool(self._at or self._held)

    def feed(self, text: str) -> None:
        """Write what is whole of the text so far."""
        pieces = [one for one in _PIECE.findall(self._held + printable(text)) if one]
        self._held = pieces.pop() if pieces and pieces[-1] != "\n" else ""
        for piece in pieces:
            self._put(piece)
        if len(self._held) > self._width:
            self.end()
            self._inside = True

    def end(self) -> None:
        """Write the rest."""
        held, self._held = self._held, ""
        if held:
            self._put(held)

    def _put(self, piece: str) -> None:
        inside, self._inside = self._inside and not piece.isspace(), False
        if inside:
            self._write(piece)
        elif piece == "\n":
            self._write("\n")
            self._at, self._gap, self._hang = 0, "", self._indent
        elif piece.isspace():
            self._gap += " " * cell_len(piece)
        else:
            self._put_word(piece, cell_len(piece))

    def _put_word(self, word: str, cells: int) -> None:
        begins = not self._at
        if not begins and self._at + len(self._gap) + cells > self._width:
            self._write("\n" + self._hang)
            self._at = len(self._hang)
        else:
            self._write(self._gap)
            self._at += len(self._gap)
        self._write(word)
        self._at += cells
        if begins:
            bullet = _BULLET.fullmatch(word)
            item = self._gap + (" " * (cells + 1) if bullet else "")
            self._hang = max(self._indent, item, key=len)[: self._width // 2]
        self._gap = ""


class Plain:
    """Writes text as it comes, where no terminal needs lines; else like a `Flow`."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self.is_mid_line = False

    def feed(self, text: str) -> None:
        """Write the text."""
        self._write(text)
        self.is_mid_line = not text.endswith("\n")

    def end(self) -> None:
        """Do nothing: nothing is held back."""


def printable(text: str) -> str:
    """Return the text without what steers a terminal."""
    return text.translate(_CONTROLS)


def wrapped(text: str, width: int, indent: str = "") -> str:
    """Return the text in lines of at most `width` cells; `indent` stands before further lines."""
    parts: list[str] = []
    flow = Flow(parts.append, width=max(width, 20), indent=indent)
    flow.feed(text)
    flow.end()
    return "".join(parts)


def shortened(text: str, most_chars: int) -> str:
    """Return a text on one line, and how it goes on where it is longer."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most_chars else f"{line[: most_chars - 1].rstrip()}…"


def fitted(text: str, width: int) -> str:
    """Return a text on one line of at most `width` cells; an ellipsis tells that it goes on."""
    line = " ".join(printable(text).split())
    return line if cell_len(line) <= width else f"{set_cell_size(line, width - 1).rstrip()}…"
