"""Going on from a checkpoint that is not there is refused before anything is asked or written."""

import pytest
from langgraph.types import Command

from everlong.nodes.errors import InvalidInputError
from everlong.stores import transcripts
from scripted_model import ScriptedModel

SAID = {"messages": [{"role": "user", "content": "other"}]}
RESUME = Command(resume="yes")
GONE = "1f1ed0b0-0acb-6fcb-8003-14202fdd8c7a"


async def begun(converse):
    model = ScriptedModel(script=lambda _: "Noted.")
    talk = converse(model=model)
    await talk.say("one", "two")
    return talk, model


async def kept(talk):
    entries = await transcripts.read(talk.store, "kim", talk.thread_id)
    state = await talk.graph.aget_state(talk.config)
    return state.config, state.values, [(one.number, one.text) for one in entries]


@pytest.mark.parametrize(
    ("given", "durability"),
    [(SAID, "sync"), (SAID, "async"), (SAID, "exit"), (RESUME, "async"), (None, "sync")],
)
async def test_a_run_from_a_checkpoint_that_is_gone_changes_nothing(converse, durability, given):
    talk, model = await begun(converse)
    before, asked = await kept(talk), len(model.requests)
    place = {"configurable": {"thread_id": talk.thread_id, "checkpoint_id": GONE}}
    with pytest.raises(InvalidInputError, match=rf"{GONE}.*not any more.*history lists"):
        await talk.graph.ainvoke(given, place, context=talk.context, durability=durability)
    assert await kept(talk) == before
    assert len(model.requests) == asked


async def test_an_edit_of_a_checkpoint_that_is_gone_changes_nothing(converse):
    talk, _ = await begun(converse)
    before = await kept(talk)
    place = {"configurable": {"thread_id": talk.thread_id, "checkpoint_id": GONE}}
    with pytest.raises(InvalidInputError, match="checkpoint_id"):
        await talk.graph.aupdate_state(place, SAID)
    assert await kept(talk) == before


async def test_a_run_from_a_checkpoint_that_is_there_is_a_branch(converse):
    talk, _ = await begun(converse)
    states = [one async for one in talk.graph.aget_state_history(talk.config)]
    there = next(one for one in states if len(one.values.get("messages", ())) == 2)
    place = there.config["configurable"]["checkpoint_id"]
    messages = await talk.send(SAID, at=place)
    assert [one.text for one in messages] == ["one", "Noted.", "other", "Noted."]
