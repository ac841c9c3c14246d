"""Conversations that are compacted with the offline model's own summaries, again and again."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from everlong.nodes.offline import OfflineModel
from everlong.nodes.prompts import text_of
from everlong.nodes.rendering import summary_request
from everlong.nodes.summary import carried_over, summary_message
from everlong.nodes.tokens import estimate_text
from everlong.nodes.transcript import is_summary

CHINESE_PROMPT = (
    "把下面的对话压缩成可以继续工作的上下文，不要补充。\n"
    "用三个标题：\n## 当前目标\n## 已确认\n## 待确认\n\n{messages}"
)


@dataclass
class Talk:
    """A conversation that is compacted as the agent does it."""

    trigger: int = 6
    keep: int = 2
    prompt: str = field(default_factory=lambda: text_of("compact"))
    beside: tuple[BaseMessage, ...] = ()
    history: list[BaseMessage] = field(default_factory=list[BaseMessage])
    sent: list[BaseMessage] = field(default_factory=list[BaseMessage])

    def say(self, text: str) -> str:
        """Send a user's message and return the answer."""
        self.history.append(HumanMessage(text))
        if len(self.history) >= self.trigger:
            self.compact()
        self.sent = [SystemMessage(text_of("reason")), *self.beside, *self.history]
        answer = OfflineModel().invoke(self.sent)
        assert answer.tool_calls == []
        self.history.append(answer)
        return answer.text

    def compact(self) -> None:
        cut = len(self.history) - self.keep
        replaced = self.history[:cut]
        text = OfflineModel().invoke([summary_request(self.prompt, replaced, "")]).text
        carried = carried_over(replaced, text)
        self.history = [summary_message(text, carried, most_tokens=300), *self.history[cut:]]

    def say_all(self, texts: Sequence[str]) -> list[str]:
        return [self.say(text) for text in texts]

    @property
    def summary(self) -> str:
        found = [message.text for message in self.history if is_summary(message)]
        assert len(found) == 1
        return found[0]


def test_e3_the_code_word_outlives_its_sentence() -> None:
    talk = Talk(trigger=5, keep=2)
    first = "请记住暗号“夜莺”，只回复确认。"
    assert talk.say(first) == "已确认。"
    assert "夜莺" in talk.say("暗号是什么？")
    assert "莺夜" in talk.say("把暗号倒过来说。")
    fourth = talk.say("刚才的暗号是什么？我第一句话的原文还在吗？")
    assert "夜莺" in fourth
    assert "原文已不在" in fourth
    assert first.removesuffix("。") not in "\n".join(message.text for message in talk.sent)
    assert "夜莺" in talk.say("再说一遍暗号。")
    assert len(talk.history) == 4


def test_the_archive_is_named_only_where_it_can_be_searched() -> None:
    talk = Talk(trigger=3, keep=1)
    talk.say_all(["请记住口令“云雀”，只回复确认。", "口令是什么？"])
    ask = [*talk.history, HumanMessage("我第一句话的原文还在吗？")]
    search = {"name": "session_search", "description": "", "parameters": {"properties": {}}}
    assert "存档" not in OfflineModel().invoke(ask).text
    assert "session_search" in OfflineModel().bind_tools([search]).invoke(ask).text


def test_the_wording_is_quoted_while_it_is_still_there() -> None:
    talk = Talk(trigger=50)
    talk.say("Remember the code word “Kestrel”, only confirm.")
    answer = talk.say("What was my exact first sentence?")
    assert "Remember the code word “Kestrel”, only confirm." in answer


def test_ctx_009_confirmed_and_open_points_outlive_the_rounds() -> None:
    talk = Talk(prompt=CHINESE_PROMPT)
    answers = talk.say_all(
        [
            (
                "任务编号 CTX-009。要确认四项：Java 版本、Spring Boot 版本、启动类、源码目录；"
                "构建命令和测试命令待确认。"
            ),
            "已确认：Java 17，Spring Boot 4.1.0。",
            "已确认：启动类 AgentScopeJavaApplication，源码目录 src/main/java。",
            "请总结已确认和待确认的内容。",
        ]
    )
    assert answers[:3] == ["已确认。"] * 3
    wanted = ["CTX-009", "Java 17", "Spring Boot 4.1.0", "AgentScopeJavaApplication"]
    wanted += ["src/main/java", "构建命令", "测试命令"]
    assert [one for one in wanted if one not in answers[3]] == []
    size = estimate_text(talk.summary)
    for _ in range(8):
        again = talk.say("请总结已确认和待确认的内容。")
        assert [one for one in wanted if one not in again] == []
    assert estimate_text(talk.summary) < size + 60


def test_e2_a_fact_is_confirmed_and_answered_from_memory_with_its_source() -> None:
    said = (
        "Don't call any tool, just confirm: our exports go through Shanghai port only, "
        "customer code ALPHA."
    )
    assert Talk().say(said) == "Confirmed."
    text = "- Our exports go through Shanghai port only, customer code ALPHA"
    memory = HumanMessage(
        f'<reference source="MEMORY.md">\nMaterial.\n\n## Facts\n\n{text}\n</reference>',
        name="__memory__",
    )
    question = "Which port do our exports use, and what is the customer code?"
    answer = Talk(beside=(memory,)).say(question)
    assert "Shanghai" in answer
    assert "ALPHA" in answer
    assert answer.endswith("Source: MEMORY.md#3")


OFFSITE = [
    ("Hi! I'm planning the Lisbon offsite, ticket OPS-2210.", ["Confirmed."]),
    ("The budget is 18,500 EUR.", ["Confirmed."]),
    ("Venue: Casa do Rio, Rua das Flores 18.", []),
    ("The contact there is Marta Silva, marta@casadorio.example.", []),
    ("We leave on 14 October 2026 with flight TP577.", []),
    ("Anna books the train, Joao handles dietary needs.", []),
    ("The agenda is still to be decided.", []),
    ("Nobody may mail the venue directly.", []),
    ("The hotel confirmation number is HX-99120.", []),
    ("No, the budget was changed to 21,000 EUR.", []),
    ("What is the budget?", ["21,000"]),
    ("Which flight do we take?", ["TP577"]),
    ("Who is the contact at the venue, and what is her address?", ["Marta", "marta@casadorio"]),
    ("Who handles dietary needs?", ["Joao"]),
    ("What is the hotel confirmation number?", ["HX-99120"]),
    ("What is still open?", ["agenda"]),
    ("Where is the venue?", ["Casa do Rio"]),
    ("May we mail the venue directly?", ["Nobody"]),
    ("Summarise what we know so far.", ["OPS-2210", "21,000", "TP577", "HX-99120", "agenda"]),
    ("What is the wifi password?", ["nothing", "offline model"]),
]
CHINESE_PROJECT = [
    ("项目代号是“蓝鲸”，负责人是李雷，预算 120,000 元。", ["已确认"]),
    ("上线日期定在 2026年5月12日。", []),
    ("数据库用 PostgreSQL 16，部署在上海机房。回滚方案和监控方案待确认。", []),
    ("项目代号是什么？", ["蓝鲸"]),
    ("预算是多少？", ["120,000"]),
    ("什么时候上线？", ["5月12日"]),
    ("还有哪些没有确认？", ["回滚方案", "监控方案"]),
    ("上线日期改为 2026年6月1日。", []),
    ("上线日期是哪天？", ["6月1日"]),
    ("总结一下到目前为止的内容。", ["蓝鲸", "李雷", "PostgreSQL 16", "6月1日", "回滚方案"]),
    ("密码是什么？", ["没有找到"]),
]
PASSWORD = [
    ("Please remember: the password is bluebird. Reply only with confirmed.", ["Confirmed."]),
    ("What is the password?", ["bluebird"]),
    ("Say it backwards.", ["bluebird"[::-1]]),
    (
        "What was the password, and is my exact first sentence still there?",
        ["bluebird", "no longer"],
    ),
    ("The password again, please.", ["bluebird"]),
]
PERSON = [
    ("My name is Ana and I live in Porto.", []),
    ("I'm allergic to nuts.", []),
    ("I prefer short answers.", []),
    ("What is my name?", ["Ana"]),
    ("Where do I live?", ["Porto"]),
    ("What am I allergic to?", ["nuts"]),
    ("What do you know about me?", ["Ana", "nuts", "short answers"]),
    ("What is my dog called?", ["nothing"]),
]
CHINESE_PERSON = [
    ("我叫王峰，住在杭州。", ["已确认"]),
    ("我喜欢徒步和军事史，对花生过敏。", []),
    ("我们约定每周三上午10点例会，金额一律带税。", []),
    ("我叫什么名字？", ["王峰"]),
    ("我住在哪里？", ["杭州"]),
    ("我对什么过敏？", ["花生"]),
    ("例会是什么时候？", ["周三"]),
    ("金额要不要带税？", ["带税"]),
]
MIXED = [
    ("我们的 CI 用 Jenkins，仓库地址 https://git.example/ops/app.git，主分支是 release/2.3。", []),
    ("测试环境端口 9580，生产环境端口 443。", []),
    ("FACT-0002: the alarm code is 7719.", ["Confirmed."]),
    ("CI 用什么？", ["Jenkins"]),
    ("测试环境的端口是多少？", ["9580"]),
    ("主分支叫什么？", ["release/2.3"]),
    ("What is the alarm code?", ["7719"]),
    ("What is FACT-0002?", ["7719"]),
]
OTHER_LANGUAGES = [
    ("A fatura 2231 da loja na Rua das Flores 18 está errada.", []),
    ("O valor certo é 89,90 euros.", []),
    ("Unser Lieferant heißt Brandt GmbH, Kundennummer KD-5521.", []),
    ("Qual é o valor certo?", ["89,90"]),
    ("Wie lautet die Kundennummer?", ["KD-5521"]),
    ("Qual fatura está errada?", ["2231"]),
]


@pytest.mark.parametrize(
    "script",
    [OFFSITE, CHINESE_PROJECT, PASSWORD, PERSON, CHINESE_PERSON, MIXED, OTHER_LANGUAGES],
    ids=["offsite", "project", "password", "person", "person-zh", "mixed", "other-languages"],
)
@pytest.mark.parametrize("trigger", [5, 8, 50])
def test_what_was_said_is_found_again(script: list[tuple[str, list[str]]], trigger: int) -> None:
    talk = Talk(trigger=trigger)
    for text, wanted in script:
        answer = talk.say(text)
        if "no longer" not in wanted or trigger == 5:
            assert [one for one in wanted if one not in answer] == [], f"{text}: {answer}"


def test_thirty_messages_are_summed_up_small_and_whole() -> None:
    talk = Talk(trigger=8)
    talk.say_all([text for text, _ in OFFSITE])
    assert estimate_text(talk.summary) < 500
    for wanted in ("OPS-2210", "Casa do Rio", "TP577", "HX-99120", "21,000", "agenda"):
        assert wanted in talk.summary


def test_a_value_that_was_changed_is_not_told_as_it_was() -> None:
    talk = Talk(trigger=50)
    talk.say_all(["The deploy port is 9580.", "No, the deploy port is now 9581."])
    answer = talk.say("What is the deploy port?")
    assert "9581" in answer
    assert "9580" not in answer


def test_a_pasted_text_is_searched_with_its_question() -> None:
    log = "\n".join(f"2026-03-01 worker={n} ok" for n in range(300))
    answer = Talk().say(f"{log}\nworker=301 failed: disk full on /srv/in\n\nWhich worker failed?")
    assert "worker=301 failed" in answer
