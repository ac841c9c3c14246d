"""Files go when they are old and nothing names them; on a plain store, and on Postgres."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from everlong.stores import file_parts, file_retention, files, transcripts
from everlong.stores.records import all_items

SOON = datetime.now(UTC) + timedelta(hours=1)  # noqa: TID251 - the store has its own clock
LONG_AGO = SOON - timedelta(days=400)


@pytest.fixture
def store(backend):
    return backend.store


async def nothing(_):
    return set()


async def sweep(store, *, before=SOON, named: Any = nothing):
    return await file_retention.remove_unnamed(store, "u", before=before, paths=named)


async def paths(store):
    return [one.path for one in await files.list_paths(store, "u")]


async def kept(store, text, thread="t"):
    return (await files.keep(store, "u", text, origin={"thread": thread, "call": "c"})).path


async def test_what_nothing_names_goes_with_its_parts_and_what_is_new_stays(store):
    await kept(store, "heron " * 50_000)
    await files.write(store, "u", "notes/mine.txt", "a file of another kind")
    assert await sweep(store, before=LONG_AGO) == 0
    assert await sweep(store) == 1
    assert await paths(store) == ["notes/mine.txt"]
    assert len(await all_items(store, ("users", "u", "file_parts"))) == 1


async def test_a_record_or_a_state_that_names_a_file_keeps_it(store):
    in_record, in_state, in_long, lost = [
        await kept(store, f"text {number}", thread=f"t{number}") for number in range(4)
    ]
    long = "x" * transcripts.MOST_CHARS + f" see {in_long}"
    messages = [HumanMessage(f"moved to {in_record}", id="m1"), HumanMessage(long, id="m2")]
    await transcripts.append(store, "u", "t", messages, first=0, instant="2026-01-05T12:00:00Z")
    asked = []

    async def named(thread):
        asked.append(thread)
        about = {"everlong_evicted": {"path": in_state}}
        return file_retention.paths_in([[HumanMessage("preview", additional_kwargs=about)]])

    assert await sweep(store, named=named) == 1
    assert asked == ["t0", "t1", "t2", "t3"]
    left = await paths(store)
    assert lost not in left
    assert {in_record, in_state, in_long} <= set(left)
    assert [one for one in left if one.startswith("transcripts/")]


async def test_the_same_text_from_another_thread_is_asked_for_there_too(store):
    path = await kept(store, "same", thread="t1")
    assert await kept(store, "same", thread="t2") == path
    file = await files.find(store, "u", path)
    assert (file.origin["thread"], file.origin["threads"]) == ("t1", ["t1", "t2"])

    async def named(thread):
        return {path} if thread == "t2" else set()

    assert await sweep(store, named=named) == 0


async def test_a_file_stays_where_nothing_tells_what_one_of_its_threads_names(store):
    path = await kept(store, "same", thread="t1")
    await kept(store, "same", thread="t2")
    await kept(store, "another", thread="t1")

    async def named(thread):
        return None if thread == "t2" else set()

    assert await sweep(store, named=named) == 1
    assert await paths(store) == [path]


async def test_a_text_that_comes_again_makes_its_old_file_new(store, monkeypatch):
    text = "heron " * 50_000
    path = await kept(store, text)
    (before,) = await all_items(store, ("users", "u", "files"))
    await kept(store, text)
    (same,) = await all_items(store, ("users", "u", "files"))
    assert same.updated_at == before.updated_at
    monkeypatch.setattr(file_parts, "NEW_SECONDS", -60.0)
    await kept(store, text)
    items = await all_items(store, ("users", "u", "file_parts"))
    (again,) = await all_items(store, ("users", "u", "files"))
    assert all(one.updated_at > before.updated_at for one in (again, *items))
    assert await files.read_text(store, "u", path) == text


async def test_a_file_that_is_made_new_while_it_is_about_to_go_stays(store, monkeypatch):
    text = "heron " * 50_000
    path = await kept(store, text)
    (item,) = await all_items(store, ("users", "u", "files"))
    monkeypatch.setattr(file_parts, "NEW_SECONDS", -60.0)
    cutoff = item.updated_at + timedelta(microseconds=1)

    async def named(_):
        """Somebody stores the text again, after the user's records were looked through."""
        await kept(store, text)
        return set()

    assert await sweep(store, before=cutoff, named=named) == 0
    assert await files.read_text(store, "u", path) == text
