"""Tombstones, and the gate that every write passes."""

import asyncio
from typing import Any

import pytest
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from everlong.stores import tombstones
from everlong.stores.namespaces import space
from everlong.stores.passages import told_by
from everlong.stores.records import all_items, put_all
from everlong.stores.tombstones import UserForgottenError

AT = "2026-03-09T12:00:00Z"


async def forgotten(store, *facts, user_id="kim", staying=()):
    made = [
        tombstones.tombstone(user_id, told_by(fact), at=AT, sources=["m1"], staying=staying)
        for fact in facts
    ]
    await tombstones.put(store, user_id, made)
    return await tombstones.load(store, user_id)


@pytest.mark.parametrize(
    ("fact", "said", "is_said"),
    [
        ("phone is 555-0142", "Reach me: 5550142", True),
        ("phone is 555-0142", "My phone is new", False),
        ("lives in Oslo", "I live in Oslo, by the sea", True),
        ("lives in Oslo", "Oslo is cold", False),
        ("plan blue whale on port 9580 for deploy", "The plan: a blue whale at port 9580", True),
        ("plan blue whale on port 80 for deploy", "The plan: a blue whale at a port", False),
        ("is vegetarian", "User is vegetarian", True),
        ("is vegetarian", "We eat at that new vegetarian place by the harbour tomorrow", False),
        ("住在奥斯陆", "我住在奥斯陆", True),
        ("住在奥斯陆", "我住在卑尔根", False),
    ],
)
async def test_what_says_a_fact_again(fact, said, is_said):
    stones = await forgotten(InMemoryStore(), fact)
    assert stones.matches(said) is is_said
    assert (stones.without(said) == said) is not is_said


async def test_a_code_that_others_share_tells_nothing_alone():
    stones = await forgotten(InMemoryStore(), "PX-4471 is the pilot", staying=["px4471"])
    assert not stones.matches("PX-4471 ships today")
    assert stones.matches("PX-4471 is our pilot")


async def test_tombstones_of_one_user_mean_nothing_to_another():
    store = InMemoryStore()
    kim = await forgotten(store, "phone is 555-0142")
    assert not await tombstones.load(store, "kimo")
    assert kim.stones[0].words.isdisjoint(
        (await forgotten(store, "phone is 555-0142", user_id="kimo")).stones[0].words
    )


async def test_lifting_takes_back_what_keeps_a_text_out():
    store = InMemoryStore()
    await forgotten(store, "phone is 555-0142", "likes tea")
    assert await tombstones.lift(store, "kim", ["my phone: 555-0142"]) == 1
    stones = await tombstones.load(store, "kim")
    assert not stones.matches("555-0142")
    assert stones.matches("likes tea")


def ledger_put(text, key="e1"):
    fact = {"text": text, "sources": ["m"], "doubt": "", "key": f"{key}#0"}
    value = dict.fromkeys(("key", "kind", "day", "at", "zone", "thread_id"), "x")
    value |= {"facts": [fact], "sources": [], "promoted": False, "text": f"- {text}"}
    return PutOp(space("kim", "ledger", "entries"), key, value)


async def test_the_gate_lets_through_what_was_not_forgotten_and_removals():
    store = InMemoryStore()
    await forgotten(store, "phone is 555-0142")
    await put_all(store, [ledger_put("phone is 555-0142"), ledger_put("likes tea", "e2")])
    assert [item.key for item in await all_items(store, space("kim", "ledger"))] == ["e2"]
    await put_all(store, [PutOp(space("kim", "ledger", "entries"), "e2", None)])
    assert await all_items(store, space("kim", "ledger")) == []


class Interrupted(InMemoryStore):
    """Lets something else happen between the gate's first look and the write."""

    meanwhile: Any = None

    async def abatch(self, ops):
        given = list(ops)
        if self.meanwhile and any(isinstance(op, PutOp) for op in given):
            work, self.meanwhile = self.meanwhile, None
            await work()
        return await super().abatch(given)


async def test_what_is_forgotten_between_look_and_write_is_taken_back():
    store = Interrupted()
    store.meanwhile = lambda: forgotten(store, "phone is 555-0142")
    await put_all(store, [ledger_put("phone is 555-0142"), ledger_put("likes tea", "e2")])
    assert [item.key for item in await all_items(store, space("kim", "ledger"))] == ["e2"]


async def test_a_user_who_is_forgotten_between_look_and_write_is_left_with_nothing():
    store = Interrupted()
    store.meanwhile = lambda: tombstones.mark_user(store, "kim", at=AT)
    with pytest.raises(UserForgottenError):
        await put_all(store, [ledger_put("likes tea")])
    assert await all_items(store, space("kim", "ledger")) == []
    with pytest.raises(UserForgottenError):
        await put_all(store, [ledger_put("likes tea")])
    await tombstones.allow_user(store, "kim")
    await asyncio.gather(*(put_all(store, [ledger_put("likes tea", f"e{n}")]) for n in range(5)))
    assert len(await all_items(store, space("kim", "ledger"))) == 5
