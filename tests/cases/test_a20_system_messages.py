"""A20: system messages of the history lead the request, word for word, and are nobody's facts."""

import pytest
from langchain_core.messages import SystemMessage

from everlong.nodes.tokens import estimate_messages
from everlong.nodes.transcript import is_summary
from everlong.stores import ledger
from given import case, messages_of
from scripted_model import ScriptedModel, asks_for_summary, kind_of

GIVEN = case("A20")
MESSAGES = messages_of(GIVEN["messages"])
RULES = [message.text for message in MESSAGES if message.type == "system"]
PROMPT = GIVEN["graph_system_prompt"]


def script(messages):
    """Keep as a fact whatever a flush is shown of VAT or of being brief, as an obedient one may."""
    kind = kind_of(messages)
    if kind == "flush":
        shown = messages[-1].text
        facts = [rule for rule in RULES if rule in shown]
        return "\n".join(f"- {fact}" for fact in facts) or "NO_REPLY"
    return "They spoke of prices: 12.40." if kind == "summary" else "24.80 with VAT"


@pytest.fixture
def begin(converse):
    def begun(*, own=False, **changes):
        more = (
            {"summary_model": ScriptedModel(script=script, profile={"name": "other"})}
            if own
            else {}
        )
        return converse(
            model=ScriptedModel(script=script),
            system_prompt=PROMPT,
            compaction=GIVEN["settings"] | changes,
            memory={"enabled": True},
            **more,
        )

    return begun


def check_system(request):
    system, *rest = [message for message in request if message.type == "system"]
    assert rest == []
    assert request[0] is system
    places = [system.text.index(text) for text in (PROMPT, *RULES)]
    assert places == sorted(places)
    assert all(system.text.count(rule) == 1 for rule in RULES)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("imported", [False, True])
async def test_one_system_message_leads_and_holds_all_three_in_order(begin, own, imported):
    talk = begin(own=own)
    if imported:
        await talk.send({"messages": MESSAGES})
    else:
        await talk.seed(MESSAGES[:-1])
        await talk.send({"messages": MESSAGES[-1:]})
    check_system(talk.last_request)
    assert [m.id for m in talk.last_request[1:]] == ["h1", "a1", "h2", "a2", "h3"]
    # Five messages are under the trigger: those of the system don't count.
    await talk.say("and for three?")
    check_system(talk.last_request)
    assert [m.type for m in talk.last_request if is_summary(m)] == ["human"]
    await talk.say("and for four?", "and for five?")
    check_system(talk.last_request)
    stored = await talk.messages()
    assert [m.id for m in stored if m.type == "system"] == ["s1", "s2"]
    assert not any(rule in m.text for rule in RULES for m in stored if m.type != "system")
    asked = (talk.context.summary_model or talk.context.model).requests
    for request in filter(asks_for_summary, asked):
        assert not any(rule in m.text for rule in RULES for m in request if m.type != "system")


async def test_a_system_message_that_comes_later_joins_the_first(begin):
    talk = begin(trigger_messages=0)
    await talk.seed(MESSAGES[:-1])
    later = SystemMessage("Prices are in euros.", id="s3")
    await talk.send({"messages": [later, MESSAGES[-1]]})
    check_system(talk.last_request)
    assert talk.last_request[0].text.rstrip().endswith("Prices are in euros.")
    assert talk.last_request[-1].id == "h3"


async def test_a_rule_of_the_system_is_never_a_fact_of_the_users(begin, backend):
    talk = begin()
    await talk.seed(MESSAGES[:-1])
    await talk.send({"messages": MESSAGES[-1:]})
    await talk.say("and for three?")
    flushes = [r for r in talk.context.model.requests if kind_of(r) == "flush"]
    assert flushes
    assert not any(rule in request[-1].text for rule in RULES for request in flushes)
    assert not await ledger.days(backend.store, "kim")


async def test_system_text_is_counted_once(begin):
    talk = begin(trigger_messages=0)
    await talk.seed(MESSAGES[:-1])
    await talk.send({"messages": MESSAGES[-1:]})
    values = await talk.values()
    assert values["meter"]["tokens"] == estimate_messages(values["messages"])
    bare = begin(trigger_messages=0)
    bare.thread_id = "bare"
    await bare.seed([message for message in MESSAGES[:-1] if message.type != "system"])
    await bare.send({"messages": MESSAGES[-1:]})
    fixed = (await bare.values())["call"]["fixed_tokens"]
    assert values["call"]["fixed_tokens"] == fixed
