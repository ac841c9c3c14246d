"""Pages of a text: by lines and by characters, so that one long line can be read, too."""

from dataclasses import dataclass

from everlong.stores.characters import safe_end

PAGE_LINES = 1_000
PAGE_CHARS = 20_000


@dataclass(frozen=True, kw_only=True)
class Page:
    """A piece of a text; all pages joined are the text."""

    text: str
    offset: int
    """Characters before the page."""
    line: int
    """The line that the page begins in, from 1."""
    next_offset: int | None
    """Where to go on; None at the end."""
    next_line: int | None
    """The same as a line, where the next page begins one."""
    total_chars: int
    total_lines: int


def page_of(
    text: str,
    *,
    offset: int = 0,
    first_line: int | None = None,
    max_lines: int = PAGE_LINES,
    max_chars: int = PAGE_CHARS,
) -> Page:
    """Return a page of a text that is no file, as `read_page` does.

    Raises:
        ValueError: a negative offset, or a line or a limit below 1.
    """
    refuse_below_least(offset, first_line, max_lines, max_chars)
    start = offset if first_line is None else after_lines(text, first_line - 1)
    return Window(text, 0, 0, len(text), count_lines(text)).page(start, max_lines, max_chars)


@dataclass(frozen=True)
class Window:
    """A stretch of a text, and what lies before and around it.

    It reaches one character beyond the page, if there is one: the page ends between characters.
    """

    text: str
    chars_before: int
    newlines_before: int
    total_chars: int
    total_lines: int

    def page(self, start: int, max_lines: int, max_chars: int) -> Page:
        """Return the page at a character of the whole text."""
        begin = start - self.chars_before
        text = self.text[begin : safe_end(self.text, begin, begin + max_chars)]
        by_lines = after_lines(text, max_lines)
        if by_lines < len(text):
            text = text[:by_lines]
        elif start + len(text) < self.total_chars and "\n" in text:
            text = text[: text.rindex("\n") + 1]
        line = self.newlines_before + self.text.count("\n", 0, begin) + 1
        more = start + len(text) < self.total_chars
        return Page(
            text=text,
            offset=start,
            line=line,
            next_offset=start + len(text) if more else None,
            next_line=line + text.count("\n") if more and text.endswith("\n") else None,
            total_chars=self.total_chars,
            total_lines=self.total_lines,
        )


def after_lines(text: str, lines: int) -> int:
    """Return where the line after so many lines begins; the text's end where there is none."""
    at = 0
    for _ in range(lines):
        at = text.find("\n", at) + 1
        if not at:
            return len(text)
    return at


def count_lines(text: str) -> int:
    """Count lines; an end of line at the very end begins none."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def refuse_below_least(offset: int, line: int | None, max_lines: int, max_chars: int) -> None:
    """Refuse a place or a limit that cannot be.

    Raises:
        ValueError: a negative offset, or a line or a limit below 1.
    """
    if offset < 0 or min(max_lines, max_chars, 1 if line is None else line) < 1:
        got = f"{offset=}, {line=}, {max_lines=}, {max_chars=}"
        msg = f"expected an offset of at least 0, a line and limits of at least 1; got {got}"
        raise ValueError(msg)
