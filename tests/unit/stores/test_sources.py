import pytest
from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore

from everlong.stores import ledger, transcripts
from everlong.stores.entries import facts_in
from everlong.stores.sources import Place, place_of, text_at

NOON = "2026-03-08T12:00:00Z"


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("a/b.txt", Place(path="a/b.txt")),
        ("a/b.txt#12", Place(path="a/b.txt", first=12)),
        ("memory/2026-10-30.md#3-4", Place(path="memory/2026-10-30.md", first=3, last=4)),
        ("Source: sessions/t#0", Place(path="sessions/t", first=0)),
        (" source:`sessions/a#b#7` ", Place(path="sessions/a#b", first=7)),
        ("sessions/t#5 [human, 2026-03-08T12:00:00Z]", Place(path="sessions/t", first=5)),
        ('"sessions/用户 1#5"', Place(path="sessions/用户 1", first=5)),
        ("", Place(path="")),
    ],
)
def test_a_place_is_read_as_models_write_it(written: str, place: Place) -> None:
    assert place_of(written) == place


async def test_messages_are_read_by_number_of_their_thread_only(store: BaseStore) -> None:
    said = [HumanMessage(text, id=text) for text in ("one", "two", "three")]
    await transcripts.append(store, "u", "a/b", said, first=0, instant=NOON)
    assert await text_at(store, "u", place_of("sessions/a/b#1")) == "two"
    assert await text_at(store, "u", place_of("sessions/a/b#1-2")) == "two\n\nthree"
    assert await text_at(store, "u", place_of("sessions/a/b#3")) is None
    assert await text_at(store, "u", place_of("sessions/a#1")) is None
    assert await text_at(store, "eve", place_of("sessions/a/b#1")) is None
    with pytest.raises(LookupError, match="which message"):
        await text_at(store, "u", place_of("sessions/a/b"))


async def test_memory_is_read_only_where_it_is_on(store: BaseStore) -> None:
    facts = "- the heron lands at dawn"
    await ledger.append(
        store, "u", "save", facts_in(facts), instant=NOON, zone="UTC", thread_id="t", sources=[]
    )
    assert facts in str(await text_at(store, "u", place_of("MEMORY.md")))
    assert facts in str(await text_at(store, "u", place_of("memory/2026-03-08.md#3-4")))
    assert await text_at(store, "u", place_of("MEMORY.md"), with_memory=False) is None
    assert await text_at(store, "u", place_of("elsewhere.txt")) is None
