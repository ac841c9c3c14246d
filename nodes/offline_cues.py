"""Words by which the offline model knows what is asked of it; one expression a line."""
# ruff: noqa: E501 - an expression that is broken over two lines is harder to read

from everlong.nodes.cues import one_of

USUAL_HEADING = one_of(
    r"""
    SESSION INTENT|SUMMARY|ARTIFACTS|NEXT STEPS
    (?:当前|用户|会话)(?:目标|任务|意图|需求)|已确认(?:事项|信息|内容)?|待(?:确认|办)(?:事项|问题|内容)?|下一步(?:计划)?|产物|关键(?:信息|事实|决定)|未决事项
    """
)
STOP_WORDS = frozenset(
    """
    a an the this that these those it its is am are was were be been being do does did done have has had i me my
    mine we us our ours you your yours he him his she her they them their of to in on at by for from with about
    as into and or but so if then than also just only please what which who whom whose when where why how can
    could will would shall should may might must not no yes tell say said says know remember remind again there
    here still any some all now currently use used using get got give show list exactly mention mentioned
    once ever earlier before ago previously recently again told let's s t re ve ll d m ok okay let make made take takes took go goes come comes called
    repeat recall spell backwards reverse
    wie was wer wo wann lautet heißt welche welcher welches und oder der die das den dem ein eine ist sind unser unsere mein
    qué cuál cuáles quién dónde cuándo es son el la los las un una mi nuestro nuestra del
    quel quelle quels quelles qui où quand est sont le les une mon ma notre des du et
    qual quais quem onde quando é são o os as um uma meu minha nosso nossa da dos e il lo gli quale chi dove
    """.split()  # noqa: SIM905 - a text of words is easier to read
)
HAN_STOPS = one_of(
    r"""
    是什么|是多少|叫什么|什么时候|何时|时候|什么|多少|哪些|哪个|哪里|哪儿|哪位|哪种|哪天|哪年|怎么样?|如何|为什么|是谁|谁|有没有|是不是|要不要|能不能|会不会|可不可以
    请问|请|告诉我|告诉|再说一遍|再说一次|说一遍|再说|一遍|一次|忘了|忘记|提醒我?|在哪|重复|复述|还记得|记得|记住|一下
    刚才|刚刚|之前|以前|曾经|最近|现在|目前|我们|你们|他们|咱们|这个|那个|可以|应该
    [的了吗呢吧啊呀我你您他她它是和与及把]
    """
)
VAGUE = frozenset(
    """
    number nam code dat tim address id thing valu 号码 编号 名字 名称 日期 时间 地址 情况 内容
    """.split()  # noqa: SIM905 - as above
)
"""Terms, as stems, that tell little without the word beside them."""
HEAD = one_of(
    r"""
    \b(?:which|what|whose|how many|how much) (?:of (?:the|our|my) )?(?P<head>(?!is\b|are\b|was\b|were\b|do\b|does\b|did\b|the\b|my\b|our\b)[\w-]+)
    """
)
"""What a question with `which` wants."""
PRONOUN = one_of(r"\b(?:it|that|this|them|those)\b|它|这个|那个")
LINKS = {
    "@time": one_of(r"\bwhat time\b|几点|什么时间|\d{1,2}:\d{2}|\b\d{1,2} ?[ap]m\b|\d点"),
    "@mail": one_of(
        r"\be-?mail\b|\b(?:mail )?address\b|邮箱|邮件地址|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+\.\w+"
    ),
    "@home": one_of(
        r"""
        where (?:do|does) (?:i|we) live|\b(?:my|our) (?:home|city|home ?town)\b
        \b(?:i|we|user)(?:'ve)? (?:have )?(?:now )?(?:live|lives|moved|relocated) (?:in|to|at)\b|^(?:lives?|moved|relocated) (?:in|to)\b
        (?:我们?(?:现在|目前)?|[，,])(?:家?住在?|搬到|搬去|定居)
        """
    ),
    "@name": one_of(
        r"""
        \b(?:my name|who am i|call me|i am called)\b|\b(?:i am|i'm|this is) [A-Z][a-z]+(?=[,.]|$| and| from)
        我(?:的名字|叫)|我是谁|怎么称呼我|叫我
        """
    ),
    "@work": one_of(
        r"""
        (?:where|what) do (?:i|we) (?:work|do for a living)|\bmy (?:job|employer|profession)\b|\bi (?:work|am employed) (?:at|for|as|in)\b
        我(?:的工作|的职业|在.{1,12}(?:工作|上班))|我做什么工作
        """
    ),
    "@age": one_of(
        r"how old am i|\bi(?:'m| am) \d{1,3}(?: years old)?\b|\bmy age\b|我(?:今年)?(?:多大|几岁|\d{1,3}岁)"
    ),
}
"""Questions and statements that mean one thing in other words."""
PERSONAL = one_of(
    r"""
    (?<!\w)(?:i|i'm|i've|my|mine|we|we're|we've|our|ours|call me)(?!\w)
    我|咱|本人|我们
    """
)
PASSING = one_of(
    r"""
    \b(?:right now|at the moment|currently|this time|just now|for now|still waiting|am (?:busy|tired|back|here|ready|hungry|late))\b
    这次|这回|此刻|刚才|刚刚|暂时|目前正|正在|有点累|在忙
    """
)
ONE_OFF = one_of(
    r"""
    \b(?:orders?|shipments?|containers?|parcels?|packages?|consignments?|deliver(?:y|ies)|tickets?|invoices?|reservations?) (?:#|no\.?|number )?[A-Z]*-?\d
    (?:这|那)(?:一)?(?:批|票|单|箱|柜|趟)|(?:订单|货柜|集装箱|包裹|运单|发票|工单)号?\s*[A-Za-z]*-?\d
    """
)
"""Of one shipment, order or the like."""
TALK = one_of(
    r"""
    (?:i|we) (?:think so|see|understand|agree|don't know|do not know|hope|guess|suppose|wonder|mean|believe so|asked|said|told you)\b
    (?:i'm|i am|we're|we are) (?:sorry|sure|not sure|glad|happy to|afraid|done|asking|looking|trying)\b
    我(?:觉得|知道|明白|同意|希望|猜|不知道|不确定|看看|问|想问|会去|会.{0,4}试|的意思)
    很高兴|抱歉|对不起|没有了
    """,
    whole=True,
)
IDENTITY = one_of(
    r"""
    \b(?:who|what) (?:exactly )?are you\b|\bwhat(?:'s| is) your name\b|\b(?:what|which) (?:kind of |sort of |language )?model (?:are you|is this|am i talking|do you use)
    \bare you (?:an? )?(?:ai|bot|human|person|real|chatgpt|gpt|claude|llm|language model|robot|machine)|\bintroduce yourself\b|\btell me about yourself\b
    \bwhat can you do\b|\bhow do you work\b|^(?:help|\?)[.!?]*$
    你(?:能|会|可以)(?:做|干)(?:些)?(?:什么|啥)|^帮助$|怎么用你
    你(?:是|叫)(?:谁|什么|啥|哪)|你的名字|你是(?:不是)?.{0,8}(?:模型|人工智能|机器人|真人|AI)|你.{0,4}(?:什么|哪个|哪种).{0,3}模型|^(?:这|你)?是?(?:什么|哪个)模型|介绍一?下?你?自己|自我介绍
    """
)
GREETING = one_of(
    r"""
    (?:hi|hello|hey|good (?:morning|afternoon|evening))(?: there| everyone| again)?
    (?:你|您|大家|早上|下午|晚上)好[啊呀]?
    """
)
THANKS = one_of(
    r"""
    \b(?:thanks|thank you|thx)\b
    谢谢|多谢|感谢
    """
)
CONFIRM_ONLY = one_of(
    r"""
    \b(?:just|only|simply) (?:confirm|acknowledge|reply|say|answer|respond)\b|\b(?:reply|answer|respond|confirm) only\b
    \b(?:reply|answer|respond|say) (?:with |just )?["'“](?:ok|okay|yes|confirmed)
    (?:只|仅)(?:需|要|用)?(?:要)?(?:回复|回答|答复|说|确认)|(?:确认|收到|知道)(?:即可|就行|就好)
    """
)
REPLY_WITH = one_of(
    r"""
    (?:reply|say|answer|respond)(?: only| just)?(?: with)?(?: the words?)?:? ["“'](?P<en>[^"”']{1,30})["”']
    (?:回复|回答|答复|说)[：:]?\s*[“"「](?P<zh>[^”"」]{1,20})[”"」]
    """
)
CONFIRMATION = one_of(r"confirmed|confirmation|确认|已确认")
NO_TOOLS = one_of(
    r"""
    \b(?:do not|don't|dont|never|without|no need to) (?:call|us|run|invok)(?:e|ing)?(?: (?:any|a|the|your))? ?(?:tools?|functions?)\b|\bno tools?\b
    (?:不要|别|不用|无需|不必|勿)(?:再|去)?(?:调用|使用|用)(?:任何|其他)?(?:工具|函数)
    """
)
FIRST = one_of(r"\bfirst\b|\bvery beginning\b|第一|最开始|最初|开头|一开始")
WANTS_ALL = one_of(
    r"""
    \b(?:all|every|everything|list|each|both|which \w+s|what (?:\w+ ){0,2}\w+s (?:do|did|are|were|have))\b
    哪些|所有|全部|都|列出|分别|各
    """
)
REMEMBERED = one_of(
    r"""
    \b(?:asked|told|wanted) you to (?:remember|keep|note)\b|\bwhat do you remember\b|\bwhat (?:did|have) i (?:tell|told) you\b
    (?:让|要|叫|请)你记(?:住|下|得)?(?:了|的)?.{0,4}(?:什么|哪些|所有|内容|全部)|你(?:都)?记(?:住|得|下)了?(?:什么|哪些)
    """
)
ABOUT_USER = one_of(r"\b(?:about me|who am i|know me)\b|关于我|了解我|我是谁|知道我")
SINGLE = one_of(
    r"\b(?:what|who|when|where)(?:'s| is| was) (?:the|my|our|your)\b|(?:是|叫)(?:什么|多少|谁|哪)"
)
WHEN = one_of(
    r"\bwhen\b|\bwhat (?:date|day|time)\b|什么时候|何时|哪天|哪年|几[点号月]|什么时间|日期"
)
HOW_MUCH = one_of(r"\bhow (?:much|many|long|old|big|far)\b|多少|几[个人天次]|多大|多久")
CALL = one_of(r"\b(?:call|use|run|invoke|execute)\b|调用|使用|运行|执行|用")
CALL_BEFORE = one_of(
    r"""
    (?:\b(?:call|use|run|invoke|execute)(?: the| a)?(?: tool| function)?|(?:调用|使用|运行|执行|用)(?:一下)?(?:工具|函数)?)\s*[`"“「']?$
    """
)
CALL_OF = one_of(
    r"""
    (?:\b(?:call|use|run|invoke|execute)(?: the)?(?: tool| function)?|(?:调用|使用|运行|执行)(?:一下)?(?:工具|函数)?)\s*[`"“「']?(?P<name>[A-Za-z_][\w.-]*)[`"”」']?(?: tool)?\s*(?:with|参数)?\s*[:：]?\s*\{
    """
)
