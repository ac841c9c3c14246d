"""A10: after many compactions in a row the first turn's facts and the plan's state still stand."""

import re
from itertools import pairwise

import pytest
from langchain_core.tools import tool

from everlong.nodes.summary import summary_body
from everlong.nodes.tokens import estimate_message, estimate_text
from everlong.nodes.transcript import is_summary
from everlong.stores import files
from given import case
from scripted_model import ScriptedModel, asks_for_summary, calling

GIVEN = case("A10")
FACTS = [f"FACT: {fact}" for fact in GIVEN["facts_in_turn_1"]]
PLAN = range(1, 7)
CYCLES, STEPS = 5, 25
SETTINGS = GIVEN["settings"] | {"flush_before": False, "trigger_messages": 0}
FIRST = "\n".join(["Work through the plan.", *FACTS, *(f"OPEN: step {n}" for n in PLAN)])
PATH = re.compile(r"large_tool_results/\S+?\.txt")
FILLER = "the ledger was read line by line and nothing odd was found in it "


@tool
def work(cycle: int, step: int) -> str:
    """Do one step of work."""
    line = f"result {'abcdefgh'[cycle]}{'abcdefghijklmnopqrstuvwxyz'[step]} "
    return line + FILLER * 185


def test_a_step_returns_about_as_much_as_the_case_says():
    assert 2_200 < estimate_text(work.invoke({"cycle": 1, "step": 1})) < 2_800


def copied(messages):
    """Copy the lines that start with FACT, DONE or OPEN; a step's last word counts."""
    found = {}
    for message in messages:
        for line in message.text.splitlines():
            kind, mark, what = line.strip().partition(": ")
            if mark and kind in ("FACT", "DONE", "OPEN"):
                found[what] = kind
    return "\n".join(f"{kind}: {what}" for what, kind in found.items())


def worker():
    """Work `STEPS` steps in each call, then say which step of the plan is done."""
    steps = dict.fromkeys(range(CYCLES), 0)

    def script(messages):
        if asks_for_summary(messages):
            return copied(messages)
        spoken = [m for m in messages if m.type == "human" and m.name is None]
        _, mark, number = spoken[-1].text.partition("cycle ")
        if not mark:
            return "Understood."
        cycle = int(number)
        steps[cycle] += 1
        if steps[cycle] > STEPS:
            return f"DONE: step {cycle + 1}"
        args = {"cycle": cycle, "step": steps[cycle] - 1}
        return calling(("work", args), prefix=f"c{cycle}_{steps[cycle]}")

    return script


async def five_cycles(converse, **context):
    talk = converse(
        model=ScriptedModel(script=worker()), tools=[work], max_tool_rounds=40, **context
    )
    await talk.say(FIRST)
    for cycle in range(CYCLES):
        text = f"Go on with cycle {cycle}"
        messages = await talk.send({"messages": [{"role": "user", "content": text}]})
        assert messages[-1].text == f"DONE: step {cycle + 1}"
        summaries = [message for message in messages if is_summary(message)]
        assert len(summaries) == 1
        check_size(summaries[0], messages)
    return talk


def check_size(summary, messages):
    assert estimate_message(summary) < 1_000
    kept = [message.text for message in messages if not is_summary(message)]
    marks = {found for text in kept for found in re.findall(r"result \w\w ", text)}
    assert marks
    assert not any(mark in summary.text for mark in marks)


def check_knowledge(summary):
    lines = summary_body(summary).splitlines()
    assert set(FACTS) <= set(lines)
    # The last cycle's own word on its step is still in the tail.
    assert [line for line in lines if line.startswith("DONE")] == [
        f"DONE: step {n}" for n in PLAN[: CYCLES - 1]
    ]
    assert [line for line in lines if line.startswith("OPEN")] == ["OPEN: step 5", "OPEN: step 6"]


@pytest.mark.parametrize("backend", ["memory", "postgres"], indirect=True)
async def test_the_facts_and_the_plan_survive_when_the_summary_extends_the_request(converse):
    talk = await five_cycles(converse, compaction=SETTINGS)
    asked = [r for r in talk.context.model.requests if asks_for_summary(r)]
    assert len(asked) >= CYCLES
    for before, request in pairwise(asked):
        (earlier,) = [message for message in request if is_summary(message)]
        assert summary_body(earlier) == copied(before)
    check_knowledge(next(m for m in await talk.messages() if is_summary(m)))


@pytest.mark.parametrize("backend", ["memory"], indirect=True)
@pytest.mark.parametrize("window", [None, 16_000])
async def test_each_request_in_text_holds_the_whole_earlier_summary(converse, window):
    """With a window that holds what is replaced, and one that needs several parts."""
    summaries = ScriptedModel(
        script=copied, profile={"max_input_tokens": window} if window else None
    )
    talk = await five_cycles(converse, summary_model=summaries, compaction=SETTINGS)
    texts = [request[-1].text for request in summaries.requests]
    assert len(texts) >= CYCLES * (2 if window else 1)
    for before, text in zip(summaries.requests, texts[1:], strict=False):
        begin, mark, rest = text.partition("<conversation>\n[earlier summary]\n")
        assert mark, begin
        assert rest.startswith(copied(before))
    check_knowledge(next(m for m in await talk.messages() if is_summary(m)))


@pytest.mark.parametrize("backend", ["memory"], indirect=True)
async def test_a_path_that_a_summary_names_can_be_read(converse):
    @tool
    def export(cycle: int) -> str:
        """Export much."""
        return f"export {cycle} " + FILLER * 2_000

    talk = converse(
        model=ScriptedModel(
            script=lambda messages: (
                copied(messages)
                if asks_for_summary(messages)
                else "ok"
                if messages[-1].type == "tool"
                else calling(("export", {"cycle": 1}), prefix=f"c{len(messages)}")
            )
        ),
        tools=[export],
        compaction={"trigger_messages": 8, "keep_messages": 2, "flush_before": False},
    )
    await talk.say("FACT: one", "FACT: two", "FACT: three")
    (summary,) = [m for m in await talk.messages() if is_summary(m)]
    paths = PATH.findall(summary.text)
    assert paths
    for path in paths:
        whole = await files.read_text(talk.store, "kim", path)
        assert whole is not None
        assert whole.startswith("export 1 ")
