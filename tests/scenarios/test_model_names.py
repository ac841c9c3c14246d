"""A model that does not exist is refused at the start, or fails an attempt that costs nothing."""

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage

from everlong.nodes.errors import InvalidInputError, ModelUnavailableError
from everlong.nodes.transcript import is_summary
from scripted_model import ScriptedModel

SMALL = {"trigger_messages": 6, "keep_messages": 2, "flush_before": False}
ROUNDS = [
    message
    for number in range(6)
    for message in (
        HumanMessage(f"Order PX-{4470 + number}: " + "as agreed " * 40, id=f"h{number}"),
        AIMessage(f"Noted PX-{4470 + number}, " + "as planned " * 40, id=f"a{number}"),
    )
]


@pytest.mark.parametrize("field", ["model", "summary_model", "memory_model"])
@pytest.mark.parametrize("name", ["gpt-4o", "openai:", "mistral:large", "Offline", ""])
async def test_a_name_that_is_none_is_refused_before_anything_is_written(converse, field, name):
    model = ScriptedModel(script=[])
    talk = converse(**{"model": model, field: name})
    with pytest.raises(ModelUnavailableError) as caught:
        await talk.say("hello")
    told = str(caught.value)
    assert told.startswith(f"`{field}`: model {name!r}")
    assert "expected `offline`, `openai:<name>`" in told
    assert model.requests == []
    assert await talk.messages() == []


@pytest.mark.parametrize("field", ["summary_model", "memory_model"])
async def test_a_model_whose_key_is_missing_is_refused_with_the_field(converse, field, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    talk = converse(**{"model": ScriptedModel(script=[]), field: "openai:gpt-4o"})
    with pytest.raises(ModelUnavailableError, match=rf"`{field}`: .*set OPENAI_API_KEY"):
        await talk.say("hello")
    assert await talk.messages() == []


async def test_a_model_that_its_provider_does_not_know_costs_no_history(converse, openai_server):
    openai_server.fail_next(404, times=9, message="The model `gpt-9` does not exist")
    talk = converse(
        model=ScriptedModel(script=["fine"]), summary_model="openai:gpt-9", compaction=SMALL
    )
    await talk.seed(ROUNDS)
    assert await talk.say("and now?") == "fine"
    assert len(await talk.messages()) == 14
    receipt = (await talk.values())["compaction"]
    assert receipt["outcome"] == "failed"
    assert "gpt-9" in receipt["reason"]
    assert "there is no such model" in receipt["reason"]
    assert len(openai_server.requests) == 1


async def test_where_the_request_does_not_fit_a_digest_stands_in_for_it(converse, openai_server):
    openai_server.fail_next(404, times=9, message="The model `gpt-9` does not exist")
    talk = converse(
        model=ScriptedModel(script=[ContextOverflowError("too long"), "fine"]),
        summary_model="openai:gpt-9",
        compaction=SMALL | {"trigger_messages": 0},
    )
    await talk.seed(ROUNDS)
    assert await talk.say("and now?") == "fine"
    summary = (await talk.messages())[0]
    assert is_summary(summary)
    assert "PX-4470" in summary.text
    assert "gpt-9" not in summary.text
    receipt = (await talk.values())["compaction"]
    assert (receipt["outcome"], receipt["by"]) == ("done", "digest")
    assert "there is no such model" in receipt["reason"]


async def test_a_flush_whose_model_does_not_exist_costs_no_answer(converse, openai_server):
    openai_server.fail_next(404, times=9)
    talk = converse(
        model=ScriptedModel(script=["fine"]),
        memory_model="openai:gpt-9",
        memory={"enabled": True, "consolidate": "on_request"},
    )
    assert await talk.say("My badge is 5512.") == "fine"


@pytest.mark.parametrize("prompt", ["Sum it up.", "Sum {message} up.", ""])
async def test_a_summary_prompt_without_a_place_for_the_conversation_is_refused(converse, prompt):
    given = {"user_id": "kim", "compaction": {"summary_prompt": prompt}}
    talk = converse(model=ScriptedModel(script=[]))
    with pytest.raises(InvalidInputError) as caught:
        await talk.graph.ainvoke({"messages": "hello"}, talk.config, context=given)
    told = str(caught.value)
    assert "compaction.summary_prompt" in told
    assert "`{messages}`, where the conversation goes" in told
    assert repr(prompt) in told
    assert await talk.messages() == []
