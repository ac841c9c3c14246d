"""Where a text may be cut: between characters as people see them, not inside of one."""

import unicodedata

MOST_STEPS = 64
"""A longer cluster is no character that anyone reads; it may be cut."""
MOST_FLAG_LETTERS = 100_000
_JOINER = "\u200d"
_PLAIN_BELOW = "\u0300"
"""Before this code point only CR and LF belong together."""


def safe_end(text: str, start: int, end: int) -> int:
    """Return `end`, or the last place before it that parts no character of `text`.

    It stays after `start`, so that whoever goes on from there gets on.
    """
    end = min(end, len(text))
    for at in range(end, max(start, end - MOST_STEPS), -1):
        if not _is_inside(text, start, at):
            return at
    return end


def safe_start(text: str, start: int) -> int:
    """Return `start`, or the first place after it that parts no character of `text`."""
    for at in range(start, min(start + MOST_STEPS, len(text))):
        if not _is_inside(text, 0, at):
            return at
    return start


def _is_inside(text: str, start: int, at: int) -> bool:
    """Tell whether a cut at `at` would part a character of the text from `start` on."""
    if not start < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if after < _PLAIN_BELOW:
        return before == "\r" and after == "\n"
    if before == _JOINER or _extends(after):
        return before != "\n"
    if _is_flag_letter(before) and _is_flag_letter(after):
        return _flag_letters_before(text, start, at) % 2 == 1
    return "\u1160" <= after <= "\u11ff" and "\u1100" <= before <= "\u11ff"  # parts of hangul


def _extends(sign: str) -> bool:
    """Tell a sign that changes the one before it: accents, joiners, skin tones, tags."""
    if sign == _JOINER or "\U0001f3fb" <= sign <= "\U0001f3ff":
        return True
    return unicodedata.category(sign) in ("Mn", "Me", "Mc") or "\U000e0020" <= sign <= "\U000e007f"


def _is_flag_letter(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"


def _flag_letters_before(text: str, start: int, at: int) -> int:
    count = 0
    while count < min(at - start, MOST_FLAG_LETTERS) and _is_flag_letter(text[at - 1 - count]):
        count += 1
    return count
