"""A client that sends a whole history again adds what is new, and loses nothing of it."""

from typing import Any

import pytest

from everlong.graph.agent import build
from everlong.nodes.errors import InvalidInputError
from foreign_graph import texts
from scripted_model import ScriptedModel, asks_for_summary

THREAD: Any = {"configurable": {"thread_id": "t1"}}
COMPACTING = {"trigger_messages": 5, "keep_messages": 2, "flush_before": False}


def heard(messages):
    return "a summary" if asks_for_summary(messages) else f"{len(messages) - 1} heard"


def question(number, text=""):
    return {"role": "user", "content": text or f"question {number}", "id": f"q{number}"}


def answer(state):
    last = state["messages"][-1]
    return {"role": "assistant", "content": last.text, "id": last.id}


@pytest.fixture
def client(backend):
    """Talk for six rounds as a chat front end does, which holds all that was said."""

    class Client:
        def __init__(self):
            self.graph = build().compile(checkpointer=backend.saver, store=backend.store)
            self.model = ScriptedModel(script=heard)
            self.seen: list[Any] = []

        async def send(self, messages, config=THREAD, **context):
            given = {"user_id": "kim", "model": self.model, "compaction": COMPACTING}
            given |= {"memory": {"enabled": False}} | context
            return await self.graph.ainvoke({"messages": messages}, config, context=given)

        async def talk(self, rounds=6):
            for number in range(rounds):
                self.seen.append(question(number))
                after = await self.send(self.seen)
                self.seen.append(answer(after))
                assert len(after["messages"]) <= 5

        async def history(self):
            return (await self.graph.aget_state(THREAD)).values["messages"]

    return Client()


async def test_only_what_is_new_is_added(client):
    await client.talk()
    answers = [one["content"] for one in client.seen[1::2]]
    assert answers == ["1 heard", "3 heard", *["3 heard"] * 4]


async def test_who_branches_off_on_its_own_side_brings_back_nothing_of_the_old(client):
    await client.talk()
    before = texts(await client.history())
    branch = [*client.seen[:8], question(9, "another way")]  # without what the thread still has
    after = await client.send(branch, compaction=COMPACTING | {"trigger_messages": 0})
    assert texts(after["messages"])[:-1] == [*before, "another way"]


async def test_new_messages_are_kept_wherever_they_stand_among_old_ones(client):
    await client.talk()
    held = await client.history()
    edited = {"role": "user", "content": "edited", "id": held[-2].id}
    off = COMPACTING | {"trigger_messages": 0}
    given = [question(7, "new"), client.seen[0], edited, question(8, "last")]
    after = await client.send(given, compaction=off)
    whole = [*texts(held[:-2]), "edited", held[-1].text, "new", "last"]
    assert texts(after["messages"])[:-1] == whole


async def test_a_fork_from_before_a_compaction_takes_what_came_after_as_new(client):
    await client.talk(2)
    early = (await client.graph.aget_state(THREAD)).config
    for number in range(2, 6):
        client.seen.append(question(number))
        client.seen.append(answer(await client.send(client.seen)))
    again = [*client.seen[:4], question(2, "as before, on another branch")]
    after = await client.send(again, early, compaction=COMPACTING | {"trigger_messages": 0})
    assert texts(after["messages"])[:-1] == [one["content"] for one in again]


async def test_a_stranger_gets_in_by_no_checkpoint_of_the_thread(client):
    await client.talk(2)
    places = [one.config async for one in client.graph.aget_state_history(THREAD)]
    missing = {"configurable": THREAD["configurable"] | {"checkpoint_id": "1f0-none"}}
    before = await client.history()
    for place in [*places, missing]:
        for given in ([question(7)], [question(7), question(8)]):
            with pytest.raises(InvalidInputError, match="not a thread of 'eve'"):
                await client.send(given, place, user_id="eve")
    assert await client.history() == before
    assert len(client.model.requests) == 2


async def test_a_history_for_a_checkpoint_that_is_not_there_is_refused(client):
    await client.talk(2)
    before = await client.history()
    missing = {"configurable": THREAD["configurable"] | {"checkpoint_id": "1f0-none"}}
    with pytest.raises(InvalidInputError, match="`checkpoint_id`: expected"):
        await client.send([*client.seen, question(8)], missing)
    assert await client.history() == before
