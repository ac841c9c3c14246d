"""What the offline model says in words of its own: Chinese, then English."""
# ruff: noqa: E501 - a sentence stands on one line

from collections.abc import Sequence

from everlong.nodes.offline_statements import Statement, Voice
from everlong.nodes.statements import Language

_TEXTS = {
    "confirmed": ("已确认。", "Confirmed."),
    "welcome": ("不客气。", "You're welcome."),
    "hello": (
        "你好。我是 everlong 的离线模型，不用语言模型，只做抽取：我记得住你说的话，也能找回来。",
        "Hello. I am everlong's offline model: without a language model, by extraction alone, I keep what you tell me and find it again.",
    ),
    "identity": (
        "我是 everlong 的离线模型：不联网，也不含语言模型，靠抽取工作。我只复述和归纳对话、摘要和记忆里有的内容，并按要求调用工具。",
        "I am everlong's offline model: no network, no language model; I work by extraction. I repeat and sum up what the conversation, its summary and memory hold, and call tools when told to.",
    ),
    "place": ("这段对话", "this conversation"),
    "places": ("这段对话和记忆", "this conversation or in memory"),
    "not_found": (
        "{where}里没有找到相关内容。我是 everlong 的离线模型，不用语言模型，只做抽取。",
        "I found nothing about that in {where}. I am everlong's offline model, which works by extraction, without a language model.",
    ),
    "cannot": (
        "这件事我做不了：我是 everlong 的离线模型，不用语言模型，只做抽取。我能复述、归纳说过的内容，也能按要求调用工具。",
        "I cannot do that: I am everlong's offline model, which works by extraction, without a language model. I can repeat and sum up what was said, and call a tool when told to.",
    ),
    "gone": (
        "那句话的原文已不在当前的上下文里，只剩摘要。",
        "Its exact wording is no longer in the prompt; only a summary of it is.",
    ),
    "archive": (
        "会话存档里还有原文，可以用 session_search 查。",
        "The archive of this conversation has it word for word; session_search finds it.",
    ),
    "backwards": ("“{value}”倒过来是“{reversed}”。", '"{value}" backwards is "{reversed}".'),
    "quoted": ("原文是：“{text}”", 'Word for word: "{text}"'),
}
_LEADS: dict[Voice, tuple[str, str]] = {
    "user": ("你说过：", "You said: "),
    "summary": ("", ""),
    "memory": ("记忆里有：", "From memory: "),
    "assistant": ("我之前说过：", "I said earlier: "),
    "tool": ("工具返回：", "A tool returned: "),
    "rules": ("规则说：", "The rules say: "),
}
_PLAIN_STARTS = frozenset({"my", "our", "the", "we", "a", "an", "always", "never", "it", "this"})


def said(name: str, tongue: Language, **values: str) -> str:
    """Return one of our fixed texts; in English where the language is neither of the two."""
    return _TEXTS[name][0 if tongue == "zh" else 1].format(**values)


def quoted_back(text: str, tongue: Language) -> str:
    """Return a message word for word."""
    return said("quoted", tongue, text=text)


def told(chosen: Sequence[Statement], tongue: Language) -> str:
    """Tell statements, those of one voice together, and name the sources that they have."""
    end, joint, gap = ("。", "；", "") if tongue == "zh" else (".", "; ", " ")
    texts: dict[str, list[str]] = {}
    for one in chosen:
        texts.setdefault(_LEADS[one.voice][0 if tongue == "zh" else 1], []).append(one.text)
    spoken = gap.join(_opened(lead, joint.join(each)) + end for lead, each in texts.items())
    sources = dict.fromkeys(f"Source: {one.source}" for one in chosen if one.source)
    return "\n".join([spoken, *sources])


def _opened(lead: str, text: str) -> str:
    """Put a lead-in before a text, so that a sentence of the user is not repeated as it stands."""
    first, gap, rest = text.partition(" ")
    if not lead:
        return f"{text[:1].upper()}{text[1:]}"
    return f"{lead}{first.lower() if first.lower() in _PLAIN_STARTS else first}{gap}{rest}"
