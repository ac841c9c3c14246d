"""How the offline model brings a ledger's lines into MEMORY.md, by code."""

import re
from collections.abc import Iterator

from everlong.nodes.offline_terms import terms
from everlong.nodes.statements import bare, key_of, language
from everlong.nodes.subjects import subject_of, undated
from everlong.nodes.tokens import estimate_text

_NOTHING = re.compile(r"\((?:empty|nothing yet|none)\)|（空）|NO_REPLY", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6}\s")
_ITEM = re.compile(r"^\s*[-*•]\s+")
_UNVERIFIED = re.compile(r"[\[(（](?:unverified|未核实)\b[^\])）]*[\])）]", re.IGNORECASE)
FACTS = {"en": "Facts", "zh": "事实"}
LEAST_SHARED = 2
"""Terms that a line shares with those under a heading, from which on it belongs there."""


def consolidated(document: str, ledger: str, *, limit_tokens: int) -> str:
    """Return the document with the ledger's lines in it, within the limit; the oldest go first.

    Of two lines that say the same the fuller one stays; of two values of one thing, the newer.
    """
    lines: list[str] = []
    for line in document.strip().splitlines():
        if not _NOTHING.fullmatch(line.strip()):
            _enter(line.rstrip(), lines, len(lines))
    fresh = [f"- {said}" for said in _ledger_lines(ledger)]
    for fact in fresh:
        _enter(fact, lines, _place_for(fact, lines))
    return _fitted(lines, fresh, limit_tokens)


def _ledger_lines(ledger: str) -> Iterator[str]:
    for line in ledger.splitlines():
        said = bare(line)
        if said and not (
            _HEADING.match(line) or _UNVERIFIED.search(said) or _NOTHING.fullmatch(said)
        ):
            yield said


def _enter(line: str, lines: list[str], place: int) -> None:
    """Put a line at its place, or over the one that it repeats, tells more of, or replaces."""
    for old in range(len(lines)) if _ITEM.match(line) else ():
        if _ITEM.match(lines[old]) and (better := _better(lines[old], line)):
            lines[old] = better
            return
    lines.insert(place, line)


def _better(old: str, new: str) -> str:
    """Return which of two lines about one thing stays; empty where they are about two."""
    older, newer = key_of(undated(bare(old))), key_of(undated(bare(new)))
    if older in newer or newer in older:
        return new if len(newer) >= len(older) else old
    subject = subject_of(bare(old))
    return new if subject and subject == subject_of(bare(new)) else ""


def _place_for(fact: str, lines: list[str]) -> int:
    """Return the end of the section that shares most with a fact; a section for facts else."""
    about = terms(fact)
    best, most = -1, LEAST_SHARED - 1
    for place, line in enumerate(lines):
        if not _HEADING.match(line):
            continue
        end = _end_of_section(lines, place)
        shared = len(about & terms(" ".join(lines[place:end])))
        if shared > most:
            best, most = end, shared
    if best < 0 and not any(bare(line) in FACTS.values() for line in lines):
        tongue = "zh" if language(fact) == "zh" else "en"
        lines += [*([""] if lines else []), f"## {FACTS[tongue]}", ""]
    if best < 0:
        heading = next(place for place, line in enumerate(lines) if bare(line) in FACTS.values())
        best = _end_of_section(lines, heading)
    return best


def _end_of_section(lines: list[str], heading: int) -> int:
    """Return the place after a section's last line that is not empty, its heading included."""
    end = heading + 1
    while end < len(lines) and not _HEADING.match(lines[end]):
        end += 1
    while end > heading + 2 and not lines[end - 1].strip():
        end -= 1
    return end


def _fitted(lines: list[str], fresh: list[str], limit_tokens: int) -> str:
    """Drop lines until the limit holds: old ones from the top, then the ledger's, oldest first."""
    facts = [line for line in lines if _ITEM.match(line)]
    order = [one for one in facts if one not in fresh] + [one for one in fresh if one in facts]
    dropped: set[str] = set()
    over = sum(estimate_text(f"{line}\n") for line in lines) - limit_tokens
    for line in order:
        if over <= 0 and estimate_text(_joined(lines, dropped)) <= limit_tokens:
            break
        dropped.add(line)
        over -= estimate_text(f"{line}\n")
    return _joined(lines, dropped)


def _joined(lines: list[str], dropped: set[str]) -> str:
    """Return the document without dropped lines and without headings that stand over nothing."""
    left = [line for line in lines if line not in dropped]
    kept: list[str] = []
    for line in reversed(left):
        empty = not any(one.strip() and not _HEADING.match(one) for one in _section(kept))
        if not (_HEADING.match(line) and not line.startswith("# ") and empty):
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(reversed(kept))).strip()


def _section(reversed_lines: list[str]) -> list[str]:
    """Return the lines after a heading up to the next one, of a document that is read backwards."""
    found: list[str] = []
    for line in reversed(reversed_lines):
        if _HEADING.match(line):
            break
        found.append(line)
    return found
