"""How a digest's lines begin, so that they report what was said and are not taken for it."""

import re

from everlong.nodes.statements import Language, bare

LEADS: dict[str, dict[Language, str]] = {
    "question": {"zh": "用户问：", "en": "The user asked: ", "": "User asks: "},
    "recall": {"zh": "用户想知道：", "en": "The user asked to hear: ", "": "User asks to hear: "},
    "request": {"zh": "用户要求：", "en": "The user wants: ", "": "User wants: "},
    "goal": {"zh": "用户的目标：", "en": "The user's aim: ", "": "User's aim: "},
    "remember": {"zh": "用户要求记住：", "en": "The user asked to remember: ", "": "To remember: "},
    "confirmed": {"zh": "用户已确认：", "en": "The user confirmed: ", "": "Confirmed: "},
    "fact": {"zh": "用户说明：", "en": "The user said: ", "": "User: "},
    "open": {"zh": "待确认：", "en": "Still open: ", "": "Open: "},
    "answer": {"zh": "助手说：", "en": "The assistant said: ", "": "Assistant: "},
    "call": {"zh": "调用工具 ", "en": "Tool called: ", "": "Tool: "},
    "asked_back": {"zh": "助手在等答复：", "en": "The assistant asked: ", "": "Assistant asks: "},
    "running": {"zh": "尚无结果：", "en": "No result yet: ", "": "No result: "},
}


def _leads(*names: str) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(each) for name in names for each in LEADS[name].values()))


_ANY = _leads(*LEADS)
ASKED, TALKED = _leads("question", "recall"), _leads("answer", "call")
PASSING = _leads("asked_back", "running")
"""Lines that the next message has overtaken."""


def lead(kind: str, tongue: Language) -> str:
    """Return what goes before a line of this kind, so that it reports the words."""
    return LEADS[kind][tongue]


def without_lead(line: str) -> str:
    """Return a line of a digest without bullet and lead-in."""
    return _ANY.sub("", bare(line), count=1) if _ANY.match(bare(line)) else bare(line)


def lead_of(line: str) -> str:
    """Return the kind of the lead-in that a line of a digest has, such as `open`; empty: none."""
    found = (name for name, leads in LEADS.items() if bare(line).startswith(tuple(leads.values())))
    return next(found, "")


def was_asked(line: str) -> bool:
    """Whether a line of a digest only tells what somebody asked."""
    return bool(ASKED.match(bare(line)))


def returned(begins: str, tongue: Language, *, failed: bool) -> str:
    """Return how a tool's result begins, quoted; nothing where it is empty."""
    if not begins:
        return ""
    if tongue == "zh":
        return f"，{'失败' if failed else '返回'}：“{begins}”"
    return f'; it {"failed" if failed else "returned"}: "{begins}"'
