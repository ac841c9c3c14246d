"""What a statement is about, where it gives one value: a newer one then replaces an older one."""

import re

from everlong.nodes.statements import core, key_of

_ATTRIBUTE = (
    r"(?:number|name|codes?|codeword|word|port|address|phone|telephone|e-?mail|dates?|deadline|version"
    r"|budget|price|limit|owner|status|time|location|password|id|size|language|currency|command|class"
    r"|folder|directory|path|colou?r|branch|database|host|url|unit|theme|zone|model|count|total|rate"
    r"|room|desk|badge|manager|seat|flight|hotel|birthday)"
)
_VALUE = re.compile(
    r"^(?:(?:the|our|my|your|a|an|user's|the user's) )?"
    rf"(?P<of>(?:[\w'/.-]+ ){{0,4}}{_ATTRIBUTE})(?P<for> (?:for|of) (?:[\w'-]+ ?){{1,3}}?)?"
    r"\s*(?:is now|are now|is|are|was"
    r"|(?:has |was )?(?:been )?(?:changed|moved|set|extended) to|[:=：])\s+(?P<value>\S.*)$",
    re.IGNORECASE,
)
_HAN_ATTRIBUTE = (
    r"(?:[号码名口价类语]|名称|名字|地址|电话|手机|邮箱|日期|时间|版本|命令|价格|金额|负责人|预算"
    r"|目录|路径|货币|单位|格式|状态|截止|期限|人数|数量|分支|环境|方案|颜色|航班|酒店|座位|工位|生日)"
)
_HAN_VALUE = re.compile(
    r"^(?:把|将)?(?:我们?的?|咱们的?|用户的?|公司的?)?"
    rf"(?P<of>[^，。：:、\s“「]{{0,10}}{_HAN_ATTRIBUTE})"
    r"\s*(?:现在|目前|已经?|暂|统一)?"
    r"(?:是|为|改为|改成|改到|变更为|变成|换成|定为|定在|[:：=])\s*(?P<value>\S.*)$"
)
_HOME = re.compile(
    r"^(?:(?P<who>[A-Z][\w-]*(?:'ve)?|we|he|she|user|the user)(?:'s)? )?"
    r"(?:have |has |am |is )?(?:now )?"
    r"(?:lives?|living|based|moved|relocated) (?:in|to|at) (?P<value>\S.*)$",
)
_HAN_HOME = re.compile(
    r"^(?:我们?|用户)?(?:现在|目前|已经?)?"
    r"(?:家?住在|搬到了?|搬去了?|搬家到了?|定居在?)(?P<value>\S.*)$"
)
_MORE = re.compile(r"[，；]|[,;]\s|\sand\s")
"""A statement that goes on after its value says more than one thing."""
_USER = frozenset({"", "i", "we", "user", "theuser"})
_DATED = re.compile(
    r"^\(?\d{4}-\d{2}-\d{2}\)?[:,]?\s+|^(?:as of|since|on) \d{4}-\d{2}-\d{2},?\s+", re.IGNORECASE
)


def subject_of(statement: str) -> str:
    """Return what a statement gives one value of, as a key; empty where it might be one of many.

    `my badge number is 5512` and `The badge number is now 7781` are about `badgenumber`;
    `lives in Oslo` and `moved to Bergen` are about a home; `I like tea` is about nothing.
    """
    said = undated(core(statement))
    if home := _HOME.match(said):
        who = key_of((home["who"] or "").removesuffix("'ve"))
        return "home" if who in _USER else f"home:{who}"
    if _HAN_HOME.match(said):
        return "home"
    found = _VALUE.match(said) or _HAN_VALUE.match(said)
    if not found or _MORE.search(found["value"]):
        return ""
    extra = found.groupdict().get("for") or ""
    return key_of(found["of"]) + (f":{key_of(extra)}" if extra else "")


def undated(statement: str) -> str:
    """Return a statement without the ISO date that it begins with."""
    return _DATED.sub("", statement)
