"""What a summariser drops is still known: in the prompt, or one search of the archive away."""

import re

import pytest

from everlong.nodes.summary import SHORT_SUMMARY_TOKENS, summary_carried, summary_left
from everlong.nodes.tokens import estimate_message, estimate_text
from everlong.nodes.transcript import is_summary
from scripted_model import ScriptedModel, asks_for_summary, calling

SEARCHABLE = {"enabled": True, "tools": True, "flush": "never", "consolidate": "on_request"}
SMALL = {
    "trigger_messages": 8,
    "keep_messages": 3,
    "flush_before": False,
    "prune": {"enabled": False},
}
BOUND = 1_500
A_LINE = 3
"""Tokens by which a line costs more than its words."""


def lookup(order: str) -> str:
    """Look an order up."""
    return RESULTS[order]


def spoken(number: int) -> tuple[str, list[str]]:
    """Return what a user says in a round, and the identifiers that a person would see in it."""
    day = number % 27 + 1
    if number % 2:
        named = [
            f"订单PX-{4470 + number}"[2:],
            f"MSKU{1_234_560 + number}",
            f"{number + 3},{number:03d}.75元",
            f"2026年3月{day}日",
            f"src/main/java/app{number}/Main.java",
            f"https://a.example/o/{number}?lang=zh#top",
            f"夜莺{number}号方案",
            f"云雀 {number}",
            f"{number + 1}.5%",
            f"三千{'一二三四五六七八九'[number % 9]}百元",
        ]
        code, box, money, date, path, url, one, two, share, words = named
        return (
            f"订单{code}装在集装箱{box}里，金额{money}，截止{date}，源码在{path}，见{url}，"
            f"方案叫“{one}”，备用「{two}」，税率{share}，押金{words}。"
        ), named
    named = [
        f"SO-2026-{8800 + number}",
        f"TGHU{7_654_320 + number}",
        f"${number + 1},250.{number:02d}",
        f"2026-04-{day:02d}",
        f"/srv/in/ledger_{number:02d}.csv",
        f"https://b.example/q?id={700_000 + number}",
        f"blue heron {number}",
        f"EUR {number + 7}.40",
        f"ops{number}@example.test",
        f"April {day}, 2027",
    ]
    code, box, money, date, path, url, phrase, euros, mail, late = named
    return (
        f"Order {code} is in container {box} for {money}, due {date}; rows are in {path}, see "
        f'{url}. We call it "{phrase}", the fee is {euros}, mail {mail}, at the latest {late}.'
    ), named


def returned(number: int) -> tuple[str, list[str]]:
    """Return what the tool says in a round, and the identifiers in it."""
    named = [
        f"INV-{60_000 + number}",
        f"OOLU{3_000_000 + number}",
        f"¥{number + 5},000",
        f"{number % 12 + 1}月{number % 27 + 1}日",
        f"docs/orders/{number}.md",
    ]
    invoice, box, money, date, path = named
    return f"发票 {invoice}; container {box}; {money}; {date}; file {path}", named


ROUNDS = 16
RESULTS = {str(number): returned(number)[0] for number in range(ROUNDS)}


def dropping(searches=()):
    """Return a model that looks every order up, and whose summaries drop everything."""

    def script(messages):
        if asks_for_summary(messages):
            return "They spoke of orders."
        if messages[-1].type == "tool":
            return "Noted."
        asked = re.fullmatch(r"search (\d+)", messages[-1].text)
        if asked:
            part = searches[int(asked[1])]
            return calling(*(("session_search", {"query": name}) for name in part))
        number = sum(message.text == "Noted." for message in messages)
        at = next(n for n in range(ROUNDS) if messages[-1].text == spoken(n)[0])
        return calling(("lookup", {"order": str(at)}), prefix=f"c{at}_{number}")

    return ScriptedModel(script=script)


async def after_many_compactions(converse, rounds, **compaction):
    """Hold the conversation; return it, the messages that are left, and what was ever named."""
    talk = converse(
        model=dropping(), tools=[lookup], memory=SEARCHABLE, compaction=SMALL | compaction
    )
    for number in range(rounds):
        await talk.say(spoken(number)[0])
    done = [e for e in talk.events if e["type"] == "compaction.finished"]
    assert [event["outcome"] for event in done] == ["done"] * len(done)
    named = [name for n in range(rounds) for name in (*spoken(n)[1], *returned(n)[1])]
    assert len(set(named)) == len(named)
    return talk, done, named


def in_prompt(talk):
    """Return the text that the model was sent last, besides the system's."""
    return "\n".join(message.text for message in talk.last_request if message.type != "system")


async def test_all_that_fit_are_in_the_prompt_after_one_compaction_after_the_other(converse):
    talk, done, named = await after_many_compactions(converse, 6)
    assert len(done) >= 4
    prompt = in_prompt(talk)
    assert [name for name in named if name not in prompt] == []
    summary = next(message for message in talk.last_request if is_summary(message))
    assert summary_left(summary) == 0


async def found_by_one_search_each(converse, names):
    """Return which of the names a search for them brings back, each by a call of its own."""
    batches = [names[at : at + 10] for at in range(0, len(names), 10)]
    reader = converse(
        model=dropping(batches), tools=[lookup], memory=SEARCHABLE, compaction={"enabled": False}
    )
    found = []
    for number, batch in enumerate(batches):
        await reader.say(f"search {number}")
        results = [message for message in await reader.messages() if message.type == "tool"]
        for name, result in zip(batch, results[-len(batch) :], strict=True):
            assert result.name == "session_search"
            found += [name] if name in result.text else []
    return found


async def test_after_ten_compactions_in_a_row_every_identifier_is_one_step_away(converse):
    talk, done, named = await after_many_compactions(converse, ROUNDS)
    assert len(done) >= 10
    prompt = in_prompt(talk)
    away = [name for name in named if name not in prompt]
    assert len(away) < len(named) / 2
    assert await found_by_one_search_each(converse, away) == away
    summary = next(message for message in talk.last_request if is_summary(message))
    assert estimate_text("\n".join(summary_carried(summary))) <= BOUND
    left = SHORT_SUMMARY_TOKENS - estimate_message(summary)
    assert 0 <= left < min(map(estimate_text, away)) + A_LINE
    assert f"({summary_left(summary)} more are in the archive" in summary.text
    assert "session_search" in summary.text
    assert summary_left(summary) >= len([name for name in away if name not in prompt])


async def test_the_newest_identifiers_stay_when_the_list_is_full(converse):
    talk, _, _ = await after_many_compactions(converse, ROUNDS)
    prompt = in_prompt(talk)
    for number in range(ROUNDS - 4, ROUNDS):
        assert [
            name for name in (*spoken(number)[1], *returned(number)[1]) if name not in prompt
        ] == []


@pytest.mark.parametrize("most", [0, 100])
async def test_the_setting_bounds_the_list(converse, most):
    talk, _, named = await after_many_compactions(converse, 8, identifier_tokens=most)
    summary = next(message for message in talk.last_request if is_summary(message))
    assert estimate_text("\n".join(summary_carried(summary))) <= most
    prompt = in_prompt(talk)
    away = [name for name in named if name not in prompt][:20]
    assert len(away) == 20
    assert await found_by_one_search_each(converse, away) == away


async def test_what_nobody_stated_is_flagged_and_not_passed_on_as_stated(converse):
    summaries = iter(["Order PX-1 and PX-77 cost $9,999.00.", "They spoke.", "PX-77 again.", "x"])
    model = ScriptedModel(script=lambda asked: next(summaries) if asks_for_summary(asked) else "ok")
    talk = converse(
        model=model,
        compaction={"trigger_messages": 6, "keep_messages": 2, "flush_before": False},
    )
    await talk.say("Order PX-1 is late.", "more", "more of it", "go on")
    receipt = (await talk.values())["compaction"]
    assert receipt["invented"] == ["PX-77", "$9,999.00"]
    await talk.say("still more", "and more")
    (summary, *_) = await talk.messages()
    assert "PX-1" in summary.text
    assert "PX-77" not in summary.text
    assert "9,999" not in summary.text
    assert (await talk.values())["compaction"]["invented"] == []


async def test_what_the_assistant_or_a_call_stated_is_not_invented(converse):
    def script(messages):
        if asks_for_summary(messages):
            return "They read src/main/App.java and named ZX-2020 and PX-1."
        if messages[-1].type == "human" and "read" in messages[-1].text:
            return calling(("list_files", {"prefix": "src/main/App.java"}))
        return "The code is ZX-2020."

    talk = converse(
        model=ScriptedModel(script=script),
        compaction={"trigger_messages": 6, "keep_messages": 2, "flush_before": False},
    )
    await talk.say("Please read it: PX-1.", "thanks", "more", "go on")
    receipt = (await talk.values())["compaction"]
    assert (receipt["outcome"], receipt["invented"]) == ("done", [])
