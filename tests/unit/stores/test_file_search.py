import random

import pytest
from langgraph.store.base import BaseStore

from everlong.stores import file_search, files
from everlong.stores.file_search import FoundLine

WORDS = [f"word{number}" for number in range(50)]


def filling(lines: int, joint: str = "\n") -> str:
    chosen = random.Random(3)  # noqa: S311 - any text will do
    return joint.join(" ".join(chosen.choices(WORDS, k=12)) for _ in range(lines))


async def found(store: BaseStore, text: str, query: str, **more: int) -> list[FoundLine]:
    file = await files.keep(store, "u", text)
    return await file_search.search(store, "u", query, [file], **more)


@pytest.mark.parametrize("before", [0, 10, 3_000, 9_000])
async def test_a_line_is_found_with_its_number_wherever_it_is(
    store: BaseStore, before: int
) -> None:
    head = filling(before)
    text = f"{head}\nthe heron lands\u2028at dawn\r\n{filling(4_000)}" if before else "heron"
    (line, *_) = await found(store, text, "heron")
    assert line.line == text[: text.index("heron")].count("\n") + 1
    assert text[line.offset :].startswith(line.text)
    assert "heron" in line.text


@pytest.mark.parametrize("before", [10, 3_000, 9_000])
async def test_words_in_one_long_line_are_found_once_with_their_offset(
    store: BaseStore, before: int
) -> None:
    text = f"{filling(before, ' ')} the heron lands {filling(4_000, ' ')}"
    lines = await found(store, text, '"heron lands"')
    assert [line.line for line in lines] == [1]
    assert text[lines[0].offset :].startswith(lines[0].text)
    assert "heron lands" in lines[0].text
    assert len(lines[0].text) <= 400


@pytest.mark.parametrize("shift", range(0, 40, 3))
async def test_a_phrase_at_the_border_of_two_parts_is_found(store: BaseStore, shift: int) -> None:
    text = "x " * (files.PART_CHARS // 2 - 10) + "y" * shift + " heron lands " + "x " * 1_000
    lines = await found(store, text, '"heron lands"')
    assert lines
    assert "heron lands" in lines[0].text


async def test_the_line_that_says_most_of_what_is_asked_comes_first(store: BaseStore) -> None:
    text = "heron here\n" * 100 + "a heron in the harbour\n" + "harbour\n" * 100
    (first, *_) = await found(store, text, "heron harbour")
    assert first.text == "a heron in the harbour"


async def test_no_more_is_found_than_asked_for(store: BaseStore) -> None:
    assert len(await found(store, filling(5_000), "word7", limit=4)) == 4
    assert await found(store, filling(10), "giraffe") == []
    assert await found(store, filling(10), "?!") == []


async def test_files_are_found_by_path_each_once_and_made_up_paths_lead_nowhere(
    store: BaseStore,
) -> None:
    file = await files.keep(store, "u", "text")
    await files.write(store, "u", "notes.txt", "text")
    paths = [file.path, "../x", "", "notes.txt", f"{files.EVICTED}none.txt", file.path]
    assert await file_search.files_of(store, "u", paths) == [file]
