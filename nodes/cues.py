"""Words that tell what a sentence does, in English and Chinese; one expression a line."""
# ruff: noqa: E501 - an expression that is broken over two lines is harder to read

import re


def one_of(expressions: str, *, whole: bool = False) -> re.Pattern[str]:
    """Compile a list of expressions, one a line; `whole` ties them to the text's beginning."""
    lines = "|".join(line.strip() for line in expressions.strip().splitlines())
    return re.compile(f"^(?:{lines})" if whole else f"(?:{lines})", re.IGNORECASE)


FILLER = one_of(
    r"""
    (?:(?:please|so|and|but|then|now|just) )*(?:do not|don't|dont|never|without|no need to) (?:call|us|run|invok)(?:e|ing)?(?: (?:any|a|the|your))? ?(?:tools?|functions?)?(?: at all| calls?)?
    (?:(?:please|so|and) )*no tools?(?: please)?
    (?:please )?(?:do not|don't|dont|no need to) (?:explain|elaborate|comment|answer|reply)(?: .{1,30})?
    (?:(?:please|so|and|but) )*(?:just|only|simply|please) (?:confirm|acknowledge|reply|say|answer|respond)(?: (?:it|this|that|ok|okay|yes|only|please|confirmed|(?:with|by) .{1,30}|["'“].{1,20}["'”]))*
    (?:reply|answer|respond|say|confirm)(?: only| just| with| that| it)*(?: (?:ok|okay|yes|confirmed|received|(?:a )?confirmation|["'“].{1,20}["'”]))?(?: only| please)*
    confirmed|nothing (?:else|more)|no (?:explanation|comments?|more)|that's all|for now
    (?:hi|hello|hey|good (?:morning|afternoon|evening))(?: there| everyone| again)?|bye|goodbye|(?:nice|pleased|glad) to meet you|(?:you're )?welcome
    (?:many )?thanks(?: a lot| again)?|thank you(?: very much)?|please
    ok|okay|yes|yeah|no|sure|great|good|fine|perfect|got it|right|noted|understood|oh|well|also
    continue|go (?:on|ahead)|next|proceed|by the way|btw
    (?:请|你|您|先|就|那|都)*(?:只需?要?|仅需?|单独)(?:回复|回答|答复|说|确认).{0,12}
    (?:请|你|您|先|就)*(?:回复|回答|答复)?.{0,4}(?:即可|就行|就好)
    (?:请|你|您|先|就)*(?:回复|回答|答复)(?:确认|收到|好的).{0,4}|(?:收到|看到)后?请?(?:回复|回答|确认).{0,6}
    (?:请|你|您|先|就)*(?:不要|别|不用|无需|不必|勿)(?:再|去)?(?:调用|使用|用)(?:任何|其他)?(?:工具|函数).{0,6}
    (?:请|你|您|先|就)*(?:不要|别|不用|无需|不必)(?:解释|展开|回答|多说|回复).{0,8}
    (?:你|您|大家|早上|下午|晚上)好[啊呀]?|再见|不客气|很高兴认识.{0,3}|辛苦了|(?:谢谢|多谢|感谢).{0,8}
    好的?[吧啊]?|嗯|哦|行|可以|是的?|对了?|继续.{0,2}|下一步|收到|明白了?|了解|知道了|没问题
    顺便(?:说一下|提一下|说)?|另外|还有|已?(?:确认|记住|记录|收到|知悉)了?
    """
)
"""A clause of manners, or on how to answer; for `fullmatch`."""

POLITE = one_of(
    r"""
    (?:(?:please|kindly|(?:could|can|would|will) you(?: please)?|by the way|also|and|so|oh|well|actually|sorry|wait)\b[,\s]*)+
    (?:请问?|麻烦你?|劳烦|顺便|另外|然后|那么|以及)+[，\s]*
    """,
    whole=True,
)
REMEMBER = one_of(
    r"""
    (?:please |also |and |always )*(?:remember|keep in mind|bear in mind|don't forget|do not forget)\b(?: of)?(?: that| this| the following)?[:,]?\s*
    (?:please |also |and )*(?:take note|note|for the record)\b(?: of| that)?(?: this| the following)?[:,]?\s*
    (?:请|麻烦|帮我|帮忙|你|您|先|务必|一定要|也|再)*(?:记住|记一下|记下来?|记好|牢记|记得|谨记|备注)(?:了|一下|这个|以下)?[:：，\s]*
    """,
    whole=True,
)
CONFIRMED = one_of(
    r"""
    (?:confirmed|decided|decision|agreed|final|resolved)\s*[:：]\s*
    (?:(?:现?已|均已)?(?:确认|确定|决定)|定了|敲定|结论|最终)\s*[:：，]\s*
    """,
    whole=True,
)
NOTE = one_of(
    r"""
    (?:note|fyi|update|info|correction|notice)\s*[:：]\s*
    (?:说明|注意|补充|备注|更正|更新|提醒)\s*[:：]\s*
    """,
    whole=True,
)
OPEN = one_of(
    r"""
    待(?:确认|定|办|补充?|讨论|处理|核实|完成|解决|明确|回复)
    (?:未|没有?|尚未|还没有?)(?:确认|定|确定|完成|解决|明确|敲定)|尚未
    \bto be (?:confirmed|decided|determined|done|discussed|defined|clarified)\b
    \b(?:tbd|tbc|todo|pending|undecided|unresolved|unconfirmed|outstanding)\b
    \b(?:is|are|remains?|still|left) (?:still )?open\b|\bopen (?:question|point|item)s?\b
    \bstill (?:need|have|miss)|\bnot (?:yet )?(?:confirmed|decided|done|known|settled)\b(?: yet)?
    """
)
OPEN_MARK = re.compile(
    r"[（(]?\s{0,2}(?:(?:目前|现在|仍然?|还|都|均|is|are|remains?|still|yet|as)\s{0,2}){0,4}"
    rf"{OPEN.pattern}\s*[)）]?",
    re.IGNORECASE,
)
QUESTION = one_of(
    r"""
    ^(?:and |so |but |then )?(?:what|which|who|whom|whose|when|where|why|how)\b(?!ever)
    ^(?:is|are|was|were|do|does|did|has|have|should|may) (?:it|there|the|this|that|my|our|your|you|i|we|he|she|they|any)\b
    ^(?:can|could|will|would) (?:it|there|the|this|that|my|our|i|we|he|she|they|any)\b
    (?:吗|呢)$|(?:什么|多少|哪[个里些位种天年家]|哪儿|是谁|谁的|几[点号个天]|怎么样?|如何|为何|是否|是不是|有没有).{0,12}$
    """
)
ASKS_POLITELY = one_of(
    r"""
    (?:could|can|would|will) you\b
    能否|可否|(?:你|您)?(?:能|可以)(?:帮|给|替|不能)
    """,
    whole=True,
)
REQUEST = one_of(
    r"""
    (?:please|kindly|let's)\b|(?:could|can|would|will) you\b
    (?:write|create|make|add|remove|delete|rename|fix|show|tell|give|find|look|edit|move|copy|convert)\b
    (?:compute|calculate|translate|explain|describe|send|open|read|run|compare|summari[sz]e|sum|recap)\b
    (?:generate|draw|prepare|tidy|clean|install|deploy|stop|save|store|load|print|extract|sort|count)\b
    (?:repeat|recall|remind|say|spell|put|implement|refactor|analy[sz]e|help|let|suggest|recommend)\b
    (?:propose|choose|pick|buy|schedule|forget|ignore|try|do|reverse|rewrite|ask|answer|merge|verify)\b
    (?:order|plan|test|build|book|check|change|update|review|report|set|call|start|use|draft|search|list|name|format)\b(?!(?: \S+){0,4}? (?:is|are|was|were|has|have|will|=)\b|[^:："{]{0,30}[:：])
    请|帮我|麻烦|帮忙|给我|替我|再|接着|总结|写|翻译|列出|告诉我|解释|查一?下|查询|搜索
    把.{1,30}(?:说|写|改|翻译|整理|列|念|读)|创建|删除|检查|运行|优化|实现|修复|分析|比较|计算|打开|读取
    生成|重复|复述|整理|介绍
    """,
    whole=True,
)
ORDER = one_of(r"(?:now|then|next|first|finally|also|and|but|so)\b[,\s]*", whole=True)
"""A word that only says when."""

GOAL = one_of(
    r"""
    (?:i|we)(?:'d| would|'m| am|'re| are)? (?:want|need|like to|wish|plan|have to|must|try|trying|going to|looking)\b
    (?:the |our |my )?(?:task|goal|aim|objective)\b
    (?:我们?|咱们?)?(?:今天|现在)?(?:要(?!求)|想要?|需要|打算|计划|希望|准备)
    (?:本次|我们?的)?(?:任务|目标|需求)
    """,
    whole=True,
)
DECIDED = one_of(
    r"""
    \b(?:confirm|decid|done|complet|finish|fixed|created|renamed|wrote|written|updated|changed|added|removed)
    \b(?:saved|found|built|deployed|installed|result|agreed|chose|chosen|recommend|because)
    已(?!确认$|记住)|确认|决定|完成|改为|结果|创建|修复|发现|更新|写好|建议|因为|选择
    """
)
"""An assistant's sentence that settles something."""
OPEN_HEADING = one_of(
    r"""
    next|\bopen\b|to.?do|pending|remaining|unresolved|unconfirmed|outstanding|follow.?up|missing
    待|下一步|后续|未|遗留|问题
    """
)
ARTIFACTS_HEADING = one_of(
    r"""
    artifact|artefact|files?\b|resources?|outputs?\b|records?\b|identifiers?|references?\b
    产物|文件|资源|产出|编号|标识|资料
    """
)
SAID_HEADING = one_of(
    r"""
    summary|confirm|decision|decided|facts?\b|done\b|progress|finding|context|background|key|state|what
    确认|摘要|总结|结论|决定|决策|进展|完成|事实|背景|要点|关键|信息|内容|偏好|约定|已知
    """
)
GOAL_HEADING = one_of(
    r"""
    intent|goal|\baim|objective|task|request|purpose|want
    目标|任务|意图|需求|目的
    """
)
OURSELVES = one_of(r"everlong(?:'s offline model| 的离线模型)")
"""A sentence of the offline model about itself."""

SUMMARISE = one_of(
    r"""
    summar[iy]|condense|sum up|recap|compact
    总结|概括|归纳|梳理|汇总|摘要|压缩
    """
)
RECALL = one_of(
    r"""
    (?:please |now |so |then |and )*(?:tell|remind|show|give|repeat|recall|list|name|say|state|spell|answer|recap)\b
    (?:could|can|would|will) you (?:please )?(?:tell|remind|show|give|repeat|recall|list|name|say|state|spell)\b
    (?:and )?(?:the|my|our) [\w' -]{1,40}?(?: once(?: more)?| again|,? please)\b
    (?:请|麻烦|帮我|你|您|先)*(?:再|告诉|列出|重复|复述|回忆|说出|说说|说一|报一|回答|提醒我|给我(?:看|说))|[^，,]{1,16}[，,](?:请|你)?(?:提醒我|告诉我|再说).{0,6}$
    (?:请|帮我|麻烦|再|先|简单|简要|大致|详细)*(?:总结|概括|归纳|梳理|汇总)|.{1,20}(?:给|发|告诉)我(?:一下|看看|看下)?[吧。]?$
    (?:请|再|你)*(?:倒|反)(?:过来|着|序)(?:说|念|读|写|拼)|把.{1,30}(?:说|念|读|列|报)
    """,
    whole=True,
)
REVERSE = one_of(
    r"\b(?:backwards?|in reverse|reverse[ds]?)\b|(?:倒|反)(?:过来|着|序)(?:说|念|读|写|拼)?|倒序|逆序"
)
VERBATIM = one_of(
    r"""
    \bexact(?:ly)? (?:\w+ ){0,2}(?:words?|wording|sentences?|text|messages?|quote)|\b(?:my|the) exact\b|\bword for word\b|\bverbatim\b|\bliterally said\b
    原文|原话|原句|逐字|一字不差|一模一样的话
    """
)
OWN_LEAD = one_of(
    r"""
    (?:you said|i said earlier|the rules say|from memory|a tool returned|word for word)\s*:\s*
    (?:你说过|我之前说过|规则说|记忆里有|工具返回|原文是)[:：]\s*
    """,
    whole=True,
)
"""How the offline model begins when it repeats what was said."""
RULE = one_of(
    r"""
    \b(?:always|never|from now on|in (?:the )?future|every (?:time|day|week|month|year)|by default|as a rule|must (?:not )?be)\b
    \b(?:we|they) (?:have )?(?:agreed|decided)\b|\b(?:agreement|policy|convention|standing)\b
    以后|从现在起|今后|总是|从不|每次|每[天周月年]|一律|统一|约定|约好|说好|默认|规定|长期|必须|只走|永远|务必
    """
)
"""Of a statement that holds beyond the task at hand."""
