"""Receipts of attempts: kept once, in order, whole, and apart for each user and thread."""

import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.memory import InMemoryStore

from everlong.stores import compactions, transcripts
from everlong.stores.namespaces import space
from everlong.stores.text import REPLACEMENT

NOON = "2026-03-09T12:00:00.000Z"
LATER = "2026-03-09T12:00:01.500Z"


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


def receipt(ident: str = "abc123", at: str = NOON, **more: Any) -> dict[str, Any]:
    return {"id": ident, "at": at, "number": 1, "outcome": "done"} | more


async def ids(store: InMemoryStore, user: str = "kim", **options: Any) -> list[str]:
    return [one["id"] for one in await compactions.read(store, user, "t1", **options)]


async def test_what_was_recorded_is_read_again(store: InMemoryStore) -> None:
    given = receipt(message_ids=["h0", "a0"], reason="", transcript=[[0, 1]], tokens_before=7)
    await compactions.record(store, "kim", "t1", given)
    assert await compactions.read(store, "kim", "t1") == [given]


async def test_the_same_attempt_twice_is_one_and_the_last_holds(store: InMemoryStore) -> None:
    await compactions.record(store, "kim", "t1", receipt(outcome="begun", message_ids=["a", "b"]))
    await compactions.record(store, "kim", "t1", receipt(message_ids=["a"]))
    assert await compactions.read(store, "kim", "t1") == [receipt(message_ids=["a"])]


async def test_receipts_are_read_oldest_first_and_a_limit_takes_the_newest(
    store: InMemoryStore,
) -> None:
    await compactions.record(store, "kim", "t1", receipt("late", LATER))
    await compactions.record(store, "kim", "t1", receipt("second", number=12))
    await compactions.record(store, "kim", "t1", receipt("first", number=2))
    await compactions.record(store, "kim", "t1", receipt("early", "2026-03-09T13:59:59+02:00"))
    assert await ids(store) == ["early", "first", "second", "late"]
    assert await ids(store, limit=2) == ["second", "late"]
    assert await ids(store, limit=9) == ["early", "first", "second", "late"]
    assert await ids(store, limit=0) == []


async def test_a_compaction_is_found_by_its_id_or_the_beginning_of_it(store: InMemoryStore) -> None:
    for ident in ("abc123", "abd456", "ab"):
        await compactions.record(store, "kim", "t1", receipt(ident, message_ids=[ident]))
    for asked, ident in (("abc123", "abc123"), ("abd", "abd456"), ("ab", "ab")):
        assert await compactions.find(store, "kim", "t1", asked) == receipt(
            ident, message_ids=[ident]
        )
    for asked in ("", "x", "abc1234"):
        assert await compactions.find(store, "kim", "t1", asked) is None


async def test_a_beginning_of_more_than_one_id_is_refused_with_their_names(
    store: InMemoryStore,
) -> None:
    for ident in ("abc123", "abd456"):
        await compactions.record(store, "kim", "t1", receipt(ident))
    with pytest.raises(LookupError, match=r"'ab'.*abc123.*abd456"):
        await compactions.find(store, "kim", "t1", "ab")


async def test_no_other_user_and_no_other_thread_sees_a_receipt(store: InMemoryStore) -> None:
    await compactions.record(store, "kim", "t1", receipt(message_ids=["h0"]))
    for user, thread in (("eve", "t1"), ("kim", "t2"), ("ki", "t1"), ("kim", "t")):
        assert await compactions.read(store, user, thread) == []
        assert await compactions.find(store, user, thread, "abc123") is None


@pytest.mark.parametrize("count", [0, 1, 30_000])
async def test_no_value_grows_near_a_megabyte_however_many_messages_went(
    store: InMemoryStore, count: int
) -> None:
    named = [f"{number:08d}-{'消息' * 20}" for number in range(count)]
    await compactions.record(store, "kim", "t1", receipt(message_ids=named))
    (found,) = await compactions.read(store, "kim", "t1")
    assert found.get("message_ids", []) == named
    items = await store.asearch(space("kim", "compactions"), limit=1_000)
    sizes = [len(json.dumps(item.value, ensure_ascii=False).encode()) for item in items]
    assert max(sizes) < 800_000


async def test_an_attempt_is_completed_and_keeps_what_was_recorded(store: InMemoryStore) -> None:
    await compactions.record(store, "kim", "t1", receipt(outcome="begun", message_ids=["h0"]))
    await compactions.complete(store, "kim", "t1", receipt(reason="short"))
    expected = receipt(reason="short", message_ids=["h0"])
    assert await compactions.read(store, "kim", "t1") == [expected]
    await compactions.complete(store, "kim", "t1", receipt(reason="told again"))
    assert await compactions.read(store, "kim", "t1") == [expected]


async def test_what_could_not_be_recorded_before_is_recorded_when_it_is_completed(
    store: InMemoryStore,
) -> None:
    await compactions.complete(store, "kim", "t1", receipt())
    assert await compactions.read(store, "kim", "t1") == [receipt()]


async def test_characters_that_no_store_holds_are_replaced(store: InMemoryStore) -> None:
    await compactions.record(store, "kim", "t1", receipt(reason="a\x00b", message_ids=["\ud83d"]))
    (found,) = await compactions.read(store, "kim", "t1")
    assert (found["reason"], found["message_ids"]) == (f"a{REPLACEMENT}b", [REPLACEMENT])


@pytest.mark.parametrize("field", ["id", "at", "outcome"])
async def test_a_receipt_without_what_its_key_needs_is_refused(
    store: InMemoryStore, field: str
) -> None:
    with pytest.raises(ValueError, match=field):
        await compactions.record(store, "kim", "t1", receipt() | {field: ""})


async def test_the_originals_are_the_compactions_own_and_no_other_branchs(
    store: InMemoryStore,
) -> None:
    said = [HumanMessage(f"message {number}", id=f"m{number}") for number in range(8)]
    await transcripts.append(store, "kim", "t1", said, first=0, instant=NOON)
    other = [HumanMessage("another branch", id="x2")]
    await transcripts.append(store, "kim", "t1", other, first=2, instant=NOON)
    given = receipt(message_ids=["m1", "m2", "m3", "m6"], transcript=[[1, 3], [6, 6]])
    found = await compactions.originals(store, "kim", "t1", given)
    assert [entry.text for entry in found] == [f"message {number}" for number in (1, 2, 3, 6)]
    assert await compactions.originals(store, "kim", "t1", receipt()) == []
