"""Lines of a rewritten MEMORY.md that speak of the document instead of the person (R44). Pure."""
# ruff: noqa: E501 - an expression that is broken over two lines is harder to read

import re

from everlong.nodes.cues import one_of

_MADE = r"(?:merged?|de-?dup\w*|duplicat\w*|consolidat\w*|ledger|entr(?:y|ies)|document|removed?|omitted|updated?|replaced?|rewritten|tokens?|contradict\w*)"
_HAN_MADE = "(?:合并|去重|重复|整理|账本|条目|文档|删除|更新|替换|精简|令牌|冲突)"
_REMARK = one_of(
    rf"""
    ^(?:sure|certainly|of course|okay|ok|understood|done)[,.!:](?:\s|$)
    ^here(?:'s| is| are) .{{0,60}}(?:document|memory|version|facts|summary|markdown|update)
    ^(?:this|the(?: above| updated| new| whole| final| revised)?) (?:document|file|memory(?:\.md)?|version) (?:was|is|has|now|contains?|reflects?|summari[sz]es|above|below|includes?|stays?|remains?)\b
    ^(?:above|below) is the
    ^(?:last |recently |automatically |newly )?(?:updated|consolidated|generated|revised|rewritten|compiled|modified)(?: on| at| from| by| in|:|$)
    ^(?:consolidation|update|version|change ?log|changes(?: made)?|token count|word count|status)(?: date| time| log| notes?)?\s*[:：]
    ^(?:notes?|remarks?|n\.b\.|p\.s\.|comments?|summary of changes)\s*[:：].*\b{_MADE}\b
    ^\W*no (?:other |further |new )?(?:changes|contradictions|updates|new facts|facts were)\b
    ^(?:i|we)(?:'ve| have)? (?:merged|updated|removed|kept|added|consolidated|rewritten|replaced|combined|left out|dropped|omitted)\b
    ^\W*(?:end of (?:the )?(?:document|memory|file)|end|eof)\W*$
    ^</?(?:document|ledger|memory|markdown)>$
    ^(?:以下|以上|下面)(?:是|为|内容|文档).{{0,16}}(?:文档|记忆|MEMORY|内容|版本|整理)
    ^(?:最后|最近|上次)?(?:更新|整理|修改|生成)(?:于|时间|日期|记录|说明)
    ^(?:本|该|此|这份)(?:文档|文件|记忆)
    ^(?:注|备注|说明|注意)[:：].*{_HAN_MADE}
    ^(?:已|我已|已经)(?:将|把|对)?.{{0,12}}(?:合并|去重|整理|更新|删除|保留|精简)
    ^根据.{{0,12}}(?:账本|日志|记录|条目).{{0,8}}(?:整理|更新|生成|合并)
    ^(?:没有|无)(?:新的?|其他)?(?:变化|变更|更新|冲突|内容)
    ^(?:好的|当然)[，,。！!]
    """
)
_ASIDE = re.compile(
    r"\s*[(（\[](?:[^()（）\[\]]*\b(?:merged|consolidated|de-?duplicated|deduped|from (?:the )?ledger|per (?:the )?ledger"
    r"|ledger entr\w+|according to the ledger|no change|unchanged)\b[^()（）\[\]]*"
    r"|(?:已合并|合并自|来自账本|账本条目|已去重|无变化)[^()（）\[\]]*)[)）\]](?=\s*[.。]?$)",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"^[\s#>*_\-•(（\[]+|[\s*_)）\]]+$")


def is_remark(line: str) -> bool:
    """Tell whether a line speaks of the document's own making."""
    return bool(_REMARK.search(_SIGNS.sub("", line)))


def without_asides(line: str) -> str:
    """Return a line without a bracket at its end that says how the line was made."""
    return _ASIDE.sub("", line)
