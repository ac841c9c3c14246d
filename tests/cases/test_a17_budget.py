"""A17: Han text, the system prompt and the tools count; what the provider reports decides."""

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import StructuredTool

from everlong.nodes.tokens import estimate_messages, estimate_text
from everlong.nodes.transcript import is_summary
from given import case
from scripted_model import ScriptedModel, asks_for_summary

GIVEN = case("A17")
HAN, FIXED, SMALL = GIVEN["variants"]
PHRASE = "好的请您稍等我来查询一下这批货昨天已经从宁波仓库发出预计下周到港"
PROSE = "the order leaves the port on friday and the customer wants to know when it arrives "


def settings(variant):
    given = dict(variant["settings"])
    share = given.pop("trigger_fraction", None)
    fraction = {"trigger_tokens": int(share * given["window_tokens"])} if share else {}
    return {"trigger_messages": 0} | given | fraction


def answering(messages):
    return "They spoke of a delivery." if asks_for_summary(messages) else "fine"


def han_history() -> list[BaseMessage]:
    text = (PHRASE * 30)[:800]
    pair = (HumanMessage, AIMessage)
    return [pair[at % 2](text, id=f"m{at}") for at in range(60)]


def english_history(tokens: int) -> list[BaseMessage]:
    messages: list[BaseMessage] = []
    while estimate_messages(messages) < tokens:
        kind = AIMessage if len(messages) % 2 else HumanMessage
        messages.append(kind(PROSE * 12, id=f"m{len(messages)}"))
    return messages[: len(messages) // 2 * 2]


def prose_of(tokens: int) -> str:
    text = PROSE * (tokens // 14)
    while estimate_text(text) < tokens:
        text += PROSE
    return text


def compacted(talk) -> bool:
    return any(is_summary(message) for message in talk.last_request)


@pytest.fixture
def begin(converse):
    def begun(variant, **more):
        model = ScriptedModel(script=answering)
        return converse(model=model, compaction=settings(variant), **more)

    return begun


async def test_1_han_text_compacts_before_the_first_request_and_the_tail_is_small(begin):
    talk = begin(HAN)
    await talk.seed(han_history())
    await talk.say("发货了吗？")
    assert len(talk.watcher.requests) == 1
    assert compacted(talk)
    tail = [message for message in talk.last_request if message.text and message.id]
    kept = [message for message in tail if not is_summary(message) and message.type != "system"]
    assert 0 < sum(len(message.text) for message in kept) <= HAN["settings"]["keep_tokens"]


def tool_of(tokens: int) -> StructuredTool:
    return StructuredTool.from_function(lambda: "x", name="look", description=prose_of(tokens))


@pytest.mark.parametrize(
    ("variant", "system", "tools", "compacts"),
    [
        (FIXED, 20_000, 0, True),
        (FIXED, 0, 20_000, True),
        (FIXED, 10_000, 10_000, True),
        (SMALL, 500, 0, False),
        (SMALL, 0, 500, False),
    ],
)
async def test_2_the_system_prompt_and_the_tools_count(begin, variant, system, tools, compacts):
    offered = [tool_of(tools)] if tools else []
    talk = begin(variant, tools=offered, system_prompt=prose_of(system) or "Be brief.")
    await talk.seed(english_history(10_000))
    await talk.say("and now?")
    assert compacted(talk) is compacts


@pytest.mark.parametrize("text", [PROSE, "".join(PROSE.split()), "a", "Word", "don't "])
def test_3_a_thousand_english_letters_are_not_over_corrected(text):
    assert 200 <= estimate_text((text * 1_000)[:1_000]) <= 400


@pytest.mark.parametrize(("reported", "compacts"), [(26_000, True), (15_000, False)])
async def test_4_what_the_provider_reports_decides(converse, reported, compacts):
    def script(messages):
        if asks_for_summary(messages):
            return "They spoke of a delivery."
        usage = {"input_tokens": reported, "output_tokens": 1, "total_tokens": reported + 1}
        return AIMessage("fine", usage_metadata=usage)

    talk = converse(model=ScriptedModel(script=script), compaction=settings(SMALL))
    await talk.seed(english_history(10_000 if compacts else 22_000))
    await talk.say("one")
    assert not compacted(talk)
    await talk.say(prose_of(3_000))
    assert compacted(talk) is compacts
