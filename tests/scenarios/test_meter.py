"""R6: once the provider has reported usage, the meter is within 5% of what it reports next."""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

import token_samples
from everlong.nodes.meter import request_tokens
from everlong.nodes.state import State
from everlong.nodes.thresholds import tokens_of_request
from everlong.nodes.tokens import estimate_message, estimate_messages
from scripted_model import ScriptedModel, asks_for_summary, calling

TOKENIZERS = ("o200k_base", "cl100k_base", "qwen")
SAMPLES = token_samples.samples()
SEEDED = ("chat-en", "docs-en", "chat-zh", "code-python", "json-en", "result-html", "docs-zh")
MOST_ERROR = 0.05
SCHEMAS_TOKENS = 900
NO_COUNT = {"trigger_messages": 0, "window_tokens": 200_000}

CHECKPOINTS_KEPT = 0
"""Every step's figures are looked at."""


def true_tokens(message: BaseMessage, tokenizer: str) -> int:
    """Count a message as this tokenizer does, where its text is a sample; ours knows no better."""
    for sample in SAMPLES.values():
        if message.text == sample.text:
            calls = getattr(message, "tool_calls", [])
            return sample.tokens[tokenizer] + 4 + sum(8 + len(str(c["args"])) // 4 for c in calls)
    return estimate_message(message)


class Provider:
    """Answers from a script, and reports usage by a real tokenizer's recorded counts."""

    def __init__(self, tokenizer: str, script: Callable[[Sequence[BaseMessage]], Any]) -> None:
        self.tokenizer, self.script = tokenizer, script
        self.reported: list[int] = []

    def answer(self, messages: list[BaseMessage]) -> AIMessage:
        if asks_for_summary(messages):
            return AIMessage("They worked on texts.")
        size = SCHEMAS_TOKENS + sum(true_tokens(one, self.tokenizer) for one in messages)
        self.reported.append(size)
        found = self.script(messages)
        answer = AIMessage(found) if isinstance(found, str) else found
        usage = {"input_tokens": size, "output_tokens": 9, "total_tokens": size + 9}
        return answer.model_copy(update={"usage_metadata": usage})


async def numbers(talk: Any) -> list[int]:
    """Return what the meter said before each request, in order."""
    names = {field.name for field in fields(State)}
    found: list[int] = []
    async for snapshot in talk.graph.aget_state_history(talk.config):
        if snapshot.next == ("reason",):
            values = {name: value for name, value in snapshot.values.items() if name in names}
            found.insert(0, tokens_of_request(State(**values)))
    return found


async def errors(talk: Any, provider: Provider) -> list[float]:
    """Return by how much each number missed what was then reported; the first has no report."""
    said = await numbers(talk)
    assert len(said) == len(provider.reported)
    pairs = zip(said[1:], provider.reported[1:], strict=True)
    return [number / true - 1 for number, true in pairs]


def seeded() -> list[BaseMessage]:
    pair = (HumanMessage, AIMessage)
    return [
        *(pair[at % 2](SAMPLES[name].text, id=f"s{at}") for at, name in enumerate(SEEDED)),
        AIMessage("noted", id="s9"),
    ]


@tool
def fetch(name: str) -> str:
    """Fetch a text."""
    return SAMPLES[name].text


@pytest.fixture
def begin(converse):
    async def begun(tokenizer: str, script: Any, **more: Any):
        provider = Provider(tokenizer, script)
        given = {"compaction": NO_COUNT, "tools": [fetch]} | more
        talk = converse(model=ScriptedModel(script=provider.answer), **given)
        await talk.seed(seeded())
        return talk, provider

    return begun


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
async def test_in_plain_rounds(begin, tokenizer):
    names = [name for name in SAMPLES if name.startswith(("chat", "docs", "code"))]
    talk, provider = await begin(tokenizer, lambda messages: SAMPLES["chat-en"].text)
    for name in names:
        await talk.say(SAMPLES[name].text)
    missed = await errors(talk, provider)
    assert len(missed) == len(names) - 1
    assert max(map(abs, missed)) <= MOST_ERROR, missed


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
async def test_in_tool_rounds(begin, tokenizer):
    names = iter([name for name in SAMPLES if not name.startswith(("chat", "docs"))])

    def script(messages):
        name = next(names, "")
        return calling(("fetch", {"name": name}), prefix=name) if name else "done"

    talk, provider = await begin(tokenizer, script)
    await talk.say("fetch them all")
    missed = await errors(talk, provider)
    assert len(missed) > 10
    assert max(map(abs, missed)) <= MOST_ERROR, missed


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
async def test_after_a_result_has_moved(begin, tokenizer):
    @tool
    def fetch(name: str) -> str:
        """Fetch a text that is far too long."""
        return SAMPLES[name].text * 100

    def script(messages):
        return (
            "done" if messages[-1].type == "tool" else calling(("fetch", {"name": "code-python"}))
        )

    talk, provider = await begin(tokenizer, script, tools=[fetch])
    await talk.say("fetch it", "and again")
    assert [event["type"] for event in talk.events].count("eviction") == 2
    missed = await errors(talk, provider)
    assert max(map(abs, missed)) <= MOST_ERROR, missed


async def test_it_is_void_after_a_compaction_until_the_next_answer(begin):
    few = NO_COUNT | {"keep_messages": 2}
    talk, provider = await begin("cl100k_base", lambda messages: "fine", compaction=few)
    await talk.say("one")
    reported = (await talk.values())["meter"]["reported"]
    assert reported > provider.reported[-1]
    await talk.compact()
    values = await talk.values()
    assert values["meter"]["reported"] == 0
    fixed = values["call"]["fixed_tokens"]
    estimate = estimate_messages(values["messages"]) + fixed
    assert request_tokens(values["meter"], fixed_tokens=fixed) == estimate
    await talk.say("two")
    assert (await talk.values())["meter"]["reported"] > provider.reported[-1]


async def test_it_is_void_after_old_results_were_shortened(begin):
    long = SAMPLES["table-numbers"].text * 20
    results = [
        message
        for at in range(6)
        for message in (
            calling(("fetch", {"name": "x"}), prefix=f"c{at}"),
            ToolMessage(long, tool_call_id=f"c{at}_0_fetch", name="fetch", id=f"r{at}"),
        )
    ]
    prune = {"protect_tokens": 1_000, "minimum_tokens": 1_000}
    small = {"trigger_messages": 0, "trigger_tokens": 60_000, "prune": prune}
    talk, _ = await begin("o200k_base", lambda messages: "fine", compaction=NO_COUNT)
    await talk.seed([HumanMessage("go", id="h0"), *results, AIMessage("done", id="z")])
    await talk.say("one")
    assert (await talk.values())["meter"]["reported"]
    talk.context = talk.context.model_copy(
        update={"compaction": type(talk.context.compaction).model_validate(small)}
    )
    await talk.say("two")
    shorter = [one for one in await talk.messages() if "characters cut" in one.text]
    assert shorter
    assert (await talk.values())["compaction"]["outcome"] == "shortened"
    said, messages = (await numbers(talk))[-1], talk.last_request
    estimate = estimate_messages(messages[1:]) + (await talk.values())["call"]["fixed_tokens"]
    assert said == pytest.approx(estimate, rel=0.01)


async def test_it_is_void_after_a_counted_result_has_moved(converse):
    text = SAMPLES["code-python"].text * 30
    provider = Provider("o200k_base", lambda messages: "fine")
    talk = converse(model=ScriptedModel(script=provider.answer), compaction=NO_COUNT)
    calls = [calling(("fetch", {"name": "x"}), prefix="c")]
    result = ToolMessage(text, tool_call_id="c_0_fetch", name="fetch", id="r1")
    await talk.seed([HumanMessage("go", id="h0"), *calls, result, AIMessage("done", id="z")])
    await talk.say("one")
    talk.context = talk.context.model_copy(
        update={"eviction": talk.context.eviction.model_copy(update={"over_chars": 10_000})}
    )
    await talk.say("two")
    moved = next(one for one in await talk.messages() if one.id == "r1")
    assert len(moved.text) < 4_000
    said, fixed = (await numbers(talk))[-1], (await talk.values())["call"]["fixed_tokens"]
    assert said == pytest.approx(estimate_messages(talk.last_request[1:]) + fixed, rel=0.01)


@pytest.mark.parametrize("bytes_per_token", [3.0, 4.0, 5.0])
async def test_with_another_tokenizer_over_http(
    converse, openai_server, monkeypatch, bytes_per_token
):
    """The server counts bytes: another scale than ours for each kind of text."""
    monkeypatch.setattr("openai_rules.tokens", lambda prompt: round(len(prompt) / bytes_per_token))
    openai_server.responder = "We ship it on Friday, and I will call the customer before that."
    talk = converse(model="openai:gpt-4o", compaction=NO_COUNT)
    for at in range(4):
        await talk.say(f"{SAMPLES['chat-en'].text}\n{SAMPLES['docs-en'].text} ({at})")
    for at in range(4):
        await talk.say(f"And what about the {at}th order? Please say when it leaves the port.")
    reported = [one.usage["prompt_tokens"] for one in openai_server.requests]
    said = await numbers(talk)
    missed = [number / true - 1 for number, true in zip(said, reported, strict=True)][1:]
    assert max(map(abs, missed)) <= MOST_ERROR, json.dumps(missed)
