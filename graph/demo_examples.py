"""The worked examples, run for real: embedded Postgres, the offline model, fresh ids per run.

Source: examples E1, E3 and CTX-009 of docs/behaviour.md; their numbers have to come out exactly.
The experiment E2 is in `demo_memory`.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from everlong.graph.demo import Check, Example, Player, Round, line_of
from everlong.graph.demo_memory import fact_across_sessions
from everlong.graph.runtime import Agent
from everlong.nodes.context import Compaction, Context, Memory
from everlong.stores import transcripts

CHINESE_PROMPT = (
    "把下面的对话压缩成可以继续工作的上下文。只写对话里说过的内容，名称、编号和版本照抄，不要补充。\n"
    "用三个标题：\n## 当前目标\n## 已确认\n## 待确认\n\n{messages}\n\n只输出三个标题下的内容。"
)
CODE_WORD_ROUNDS = (
    "请记住暗号“夜莺”，只回复确认。",
    "暗号是什么？",
    "把暗号倒过来说。",
    "刚才的暗号是什么？我第一句话的原文还在吗？",
    "再说一遍暗号。",
)
MIGRATION_ROUNDS = (
    (
        "任务编号 CTX-009。要确认四项：Java 版本、Spring Boot 版本、启动类、源码目录；"
        "构建命令和测试命令待确认。"
    ),
    "已确认：Java 17，Spring Boot 4.1.0。",
    "已确认：启动类 AgentScopeJavaApplication，源码目录 src/main/java。",
    "请总结已确认和待确认的内容。",
)
FINISHED_LIST: tuple[AnyMessage, ...] = (
    HumanMessage("Compare the stock of bolts in Oslo and Bergen.", id="h1"),
    AIMessage(
        "",
        id="a1",
        tool_calls=[
            {"name": "stock", "args": {"city": "Oslo"}, "id": "c1"},
            {"name": "stock", "args": {"city": "Bergen"}, "id": "c2"},
        ],
    ),
    ToolMessage("Oslo: 1,240 bolts, order PX-4471 open", tool_call_id="c1", name="stock", id="t1"),
    ToolMessage("Bergen: 310 bolts", tool_call_id="c2", name="stock", id="t2"),
    AIMessage("Oslo has 1,240 bolts, Bergen 310.", id="a2"),
    HumanMessage("And Narvik?", id="h2"),
    AIMessage("", id="a3", tool_calls=[{"name": "stock", "args": {"city": "Narvik"}, "id": "c3"}]),
    ToolMessage("Narvik: 95 bolts", tool_call_id="c3", name="stock", id="t3"),
    AIMessage("Narvik has 95 bolts.", id="a4"),
)


def _player(agent: Agent, name: str, compaction: Compaction) -> Player:
    run = uuid4().hex[:8]
    context = Context(
        user_id=f"demo-{run}",
        model="offline",
        compaction=compaction,
        memory=Memory(enabled=False),
    )
    return Player(agent=agent, context=context, thread_id=f"{name}-{run}")


def _with(done: Round, *checks: Check) -> Round:
    return replace(done, checks=list(checks))


def _example(player: Player, name: str, title: str, rounds: Sequence[Round]) -> Example:
    return Example(
        name=name,
        title=title,
        user_id=str(player.context.user_id),
        thread_id=player.thread_id,
        rounds=list(rounds),
    )


async def finished_list(agent: Agent) -> Example:
    """E1: a compaction on request, whose plain cut would part a call from its result."""
    settings = Compaction(trigger_messages=6, keep_messages=2, keep_tokens=0, flush_before=False)
    player = _player(agent, "E1", settings)
    given = {"messages": list(FINISHED_LIST), "request": {"compact": True}}
    done, _ = await player.play("(compact the nine messages)", given)
    after = await player.messages()
    snapshot = await agent.aget_state(player.config)
    receipt = snapshot.values["compaction"]
    done = _with(
        replace(done, before=[line_of(message) for message in FINISHED_LIST]),
        Check(what="plain cut", expected=7, got=receipt.get("plain_cut")),
        Check(what="safe cut", expected=6, got=receipt.get("safe_cut")),
        Check(what="messages after", expected=4, got=len(after)),
        Check(
            what="kinds after",
            expected=["human", "ai", "tool", "ai"],
            got=[message.type for message in after],
        ),
        Check(what="kept ids", expected=["a3", "t3", "a4"], got=[m.id for m in after[1:]]),
    )
    return _example(player, "E1", "A call and its result are never parted", [done])


async def code_word(agent: Agent) -> Example:
    """E3: five plain rounds; from the third on, each one compacts."""
    settings = Compaction(trigger_messages=5, keep_messages=2, keep_tokens=0, flush_before=False)
    player = _player(agent, "E3", settings)
    rounds: list[Round] = []
    sent: list[list[BaseMessage]] = []
    for question in CODE_WORD_ROUNDS:
        done, sent = await player.play(question)
        rounds.append(done)
        if len(rounds) == 4:  # noqa: PLR2004 - the round that the example is about
            rounds[-1] = _with(done, *await _fourth_round(agent, player, done, sent))
    rounds[1] = _with(rounds[1], Check(what="messages after", expected=4, got=len(rounds[1].after)))
    rounds[2] = _with(
        rounds[2],
        Check(
            what="compacts: cutoff 3, keeping 2",
            expected=True,
            got=_logged(rounds[2], "cutoff=3, keeping=2 msgs"),
        ),
        Check(what="messages sent", expected=3, got=len(rounds[2].requests[-1]) - 1),
        Check(what="messages after", expected=4, got=len(rounds[2].after)),
        Check(what="the answer says it backwards", expected=True, got="莺夜" in rounds[2].answer),
    )
    rounds[4] = _with(
        rounds[4],
        Check(what="compacts again", expected=True, got=_logged(rounds[4], "Compaction complete")),
        Check(what="the code word is still known", expected=True, got="夜莺" in rounds[4].answer),
    )
    return _example(player, "E3", "The code word outlives its sentence", rounds)


async def _fourth_round(
    agent: Agent, player: Player, done: Round, sent: Sequence[Sequence[BaseMessage]]
) -> list[Check]:
    prompt = "\n".join(message.text for request in sent for message in request)
    first = CODE_WORD_ROUNDS[0]
    entries = await transcripts.read(agent.store, str(player.context.user_id), player.thread_id)
    archived = [entry.text for entry in entries]
    return [
        Check(what="compacts again", expected=True, got=_logged(done, "Compaction complete")),
        Check(what="the code word is still known", expected=True, got="夜莺" in done.answer),
        Check(what="its sentence has left the prompt", expected=True, got=first not in prompt),
        Check(what="its sentence is in the archive", expected=True, got=first in archived),
    ]


async def migration(agent: Agent) -> Example:
    """CTX-009: four rounds with a Chinese summary prompt; the fourth one compacts."""
    settings = Compaction(
        trigger_messages=6,
        keep_messages=2,
        keep_tokens=0,
        flush_before=False,
        summary_prompt=CHINESE_PROMPT,
    )
    player = _player(agent, "CTX-009", settings)
    rounds = [(await player.play(question))[0] for question in MIGRATION_ROUNDS]
    last = rounds[-1]
    wanted = (
        "CTX-009",
        "Java 17",
        "Spring Boot 4.1.0",
        "AgentScopeJavaApplication",
        "src/main/java",
        "构建命令",
        "测试命令",
    )
    rounds[-1] = _with(
        last,
        Check(
            what="compacts: cutoff 5, keeping 2",
            expected=True,
            got=_logged(last, "cutoff=5, keeping=2 msgs"),
        ),
        Check(what="messages sent", expected=3, got=len(last.requests[-1]) - 1),
        Check(
            what="the answer names",
            expected=list(wanted),
            got=[word for word in wanted if word in last.answer],
        ),
    )
    return _example(player, "CTX-009", "Confirmed and open points outlive the rounds", rounds)


def _logged(done: Round, part: str) -> bool:
    return any(part in line for line in done.log)


async def examples(agent: Agent) -> AsyncGenerator[Example]:
    """Run the examples one after the other."""
    for play in (finished_list, fact_across_sessions, code_word, migration):
        yield await play(agent)
