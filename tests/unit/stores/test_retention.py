"""Old messages leave a transcript a step at a time; what is needed stays."""

from datetime import timedelta
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore

from everlong.stores import files, retention, transcripts
from everlong.stores.entries import iso, moment
from everlong.stores.records import all_items
from everlong.stores.retention import Needed

NOW = "2026-06-30T12:00:00Z"


def ago(days: float) -> str:
    return iso(moment(NOW) - timedelta(days=days))


async def said(store: BaseStore, count: int, *, first: int = 0, days: float, thread: str = "t"):
    messages = [HumanMessage(f"said {n}", id=f"m{n}") for n in range(first, first + count)]
    await transcripts.append(store, "u", thread, messages, first=first, instant=ago(days))


async def sweep(
    store: BaseStore, needed: Needed | None = None, *, most: int = 200, days: int = 180
):
    done = await retention.remove_old_messages(
        *(store, "u", "t", needed or Needed()), instant=NOW, days=days, most=most
    )
    return done.removed, done.is_last


async def left(store: BaseStore, thread: str = "t") -> list[int]:
    return [entry.number for entry in await transcripts.read(store, "u", thread)]


async def test_old_messages_go_and_young_ones_stay(store: BaseStore) -> None:
    await said(store, 3, days=181)
    await said(store, 2, first=3, days=179)
    assert await sweep(store, days=0) == (0, True)
    assert await sweep(store) == (3, True)
    assert await left(store) == [3, 4]
    assert await sweep(store) == (0, True)


async def test_the_steps_are_bounded_and_go_on_where_the_last_one_ended(store: BaseStore) -> None:
    await said(store, 10, days=200)
    assert await sweep(store, most=4) == (4, False)
    assert await left(store) == list(range(4, 10))
    assert await sweep(store, most=4) == (4, False)
    assert await sweep(store, most=4) == (2, False)
    assert await sweep(store, most=4) == (0, True)
    assert await left(store) == []


async def test_what_is_needed_stays_and_goes_when_it_no_longer_is(store: BaseStore) -> None:
    await said(store, 10, days=200)
    needed = Needed(message_ids={"m0"}, ranges=[(4, 5)])
    while not (await sweep(store, needed, most=3))[1]:
        pass
    assert await left(store) == [0, 4, 5]
    assert await sweep(store, Needed(message_ids={"m0"})) == (2, True)
    assert await sweep(store) == (1, True)
    assert await left(store) == []


async def test_a_history_that_is_all_needed_is_not_read_over_and_over(store: BaseStore) -> None:
    await said(store, 300, days=200)
    every = Needed(ranges=[(0, 299)])
    assert await sweep(store, every) == (0, True)
    assert await sweep(store, every) == (0, True)
    assert len(await left(store)) == 300
    steps = 0
    while not (await sweep(store))[1]:
        steps += 1
    assert await left(store) == []
    assert steps <= 3


async def test_a_branch_that_was_added_behind_goes_too_when_it_is_old(store: BaseStore) -> None:
    await said(store, 6, days=400)
    await sweep(store)
    branch = [HumanMessage("another way", id="b2")]
    await transcripts.append(store, "u", "t", branch, first=2, instant=ago(170))
    await said(store, 2, first=6, days=10)
    assert await sweep(store) == (0, True)
    assert await left(store) == [2, 6, 7]
    done = await retention.remove_old_messages(store, "u", "t", Needed(), instant=NOW, days=160)
    assert done.removed == 1
    assert await left(store) == [6, 7]


async def test_a_gap_in_the_numbers_stops_nothing(store: BaseStore) -> None:
    await said(store, 2, days=200)
    await said(store, 2, first=5_000, days=200)
    while not (await sweep(store))[1]:
        pass
    assert await left(store) == []


async def test_the_file_of_a_long_message_goes_with_its_last_entry(store: BaseStore) -> None:
    long = [HumanMessage("x" * 300_000, id="long")]
    await transcripts.append(store, "u", "t", long, first=0, instant=ago(200))
    await transcripts.append(store, "u", "copy", long, first=0, instant=ago(10))
    await sweep(store)
    assert await left(store) == []
    assert await left(store, "copy") == [0]
    await retention.remove_old_messages(store, "u", "copy", Needed(), instant=NOW, days=9)
    assert await files.list_paths(store, "u") == []
    assert await all_items(store, ("users", "u", "file_parts")) == []


async def test_other_threads_and_users_are_left_alone(store: BaseStore) -> None:
    await said(store, 2, days=200)
    await said(store, 2, days=200, thread="t2")
    await transcripts.append(store, "eve", "t", [HumanMessage("hi")], first=0, instant=ago(200))
    await sweep(store)
    assert await left(store, "t2") == [0, 1]
    assert len(await transcripts.read(store, "eve", "t")) == 1


async def test_of_too_many_the_oldest_go_however_young_and_what_is_needed_stays(
    store: BaseStore,
) -> None:
    await said(store, 10, days=1)

    async def sweep_to(kept: int, **needed: Any) -> int:
        done = await retention.remove_old_messages(
            *(store, "u", "t", Needed(**needed)), instant=NOW, days=0, kept=kept
        )
        return done.removed

    assert await sweep_to(4) == 0
    assert await sweep_to(10, count=10) == 0
    assert await sweep_to(4, count=10, message_ids={"m1"}, ranges=[(3, 3)]) == 4
    assert await left(store) == [1, 3, 6, 7, 8, 9]
    assert await sweep_to(0, count=10) == 0
    assert await sweep_to(4, count=10) == 2


async def test_nothing_is_remembered_of_a_thread_that_a_sweep_has_emptied(store: BaseStore) -> None:
    await said(store, 3, days=300)
    place = (store, "u", "t", Needed())
    is_last = False
    while not is_last:
        done = await retention.remove_old_messages(*place, instant=NOW, days=180, noted=False)
        is_last = done.is_last
    assert await left(store) == []
    assert await all_items(store, ("users", "u")) == []
