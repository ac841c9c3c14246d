from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from langgraph.store.base import BaseStore, GetOp, Op, PutOp, Result
from langgraph.store.memory import InMemoryStore

from everlong.stores import files, paging
from everlong.stores.files import PART_CHARS, Page
from everlong.stores.namespaces import space

LONG_LINE = '{"items":[' + '{"n":"café 😀"},' * 20_000 + "{}]}"


class CountingStore(InMemoryStore):
    """Counts what is read, and breaks at a put when told so."""

    def __init__(self) -> None:
        super().__init__()
        self.gets = 0
        self.puts_left = 1_000_000

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        ops = list(ops)
        self.gets += sum(isinstance(op, GetOp) for op in ops)
        puts = sum(isinstance(op, PutOp) for op in ops)
        self.puts_left -= puts
        if puts and self.puts_left < 0:
            msg = "the store is down"
            raise ConnectionError(msg)
        return await super().abatch(ops)


async def pages(store: BaseStore, path: str, **limits: Any) -> AsyncIterator[Page]:
    offset: int | None = 0
    while offset is not None:
        page = await files.read_page(store, "u", path, offset=offset, **limits)
        assert page is not None
        yield page
        offset = page.next_offset


def test_the_same_text_has_the_same_path_and_another_one_another() -> None:
    assert files.evicted_path("abc") == files.evicted_path("abc")
    assert files.evicted_path("abc") != files.evicted_path("abd")
    assert files.evicted_path("\x00x\ud83d").startswith("large_tool_results/")


@pytest.mark.parametrize("text", ["", "short", "\n", "部署\r\n" * 150_000, LONG_LINE, "a\x00b"])
async def test_a_text_comes_back_as_it_was_stored(store: BaseStore, text: str) -> None:
    await files.write(store, "u", "a/b.txt", text, origin={"tool": "scan"})
    assert await files.read_text(store, "u", "a/b.txt") == text.replace("\x00", "\ufffd")
    assert await files.exists(store, "u", "a/b.txt")


async def test_no_value_is_over_a_megabyte(store: BaseStore) -> None:
    await files.write(store, "u", "big", "😀" * 1_000_000)
    items = await store.asearch(space("u", "file_parts"), limit=100)
    assert len(items) == 5
    assert all(len(str(item.value).encode()) <= 800_100 for item in items)


async def test_what_is_not_there_is_none(store: BaseStore) -> None:
    assert await files.read_text(store, "u", "nowhere") is None
    assert await files.read_page(store, "u", "nowhere") is None
    assert not await files.exists(store, "u", "nowhere")
    assert not await files.remove(store, "u", "nowhere")


async def test_one_user_never_reads_anothers_file(store: BaseStore) -> None:
    path = files.evicted_path("secret")
    await files.write(store, "ada", path, "secret")
    for other in ("ad", "adaa", "Ada", "../ada", "%", "*"):
        assert await files.read_text(store, other, path) is None
        assert await files.read_page(store, other, path) is None
        assert await files.list_paths(store, other) == []
        assert not await files.remove(store, other, path)
    assert await files.read_text(store, "ada", path) == "secret"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../kim/a",
        "a/../../b",
        "a//b",
        "a/.",
        "a\\b",
        "a\x00",
        "\ud83d",
        "x" * 1_001,
    ],
)
async def test_a_path_out_of_the_users_files_is_refused(store: BaseStore, path: str) -> None:
    with pytest.raises(ValueError, match="`path`: expected a relative path"):
        await files.write(store, "u", path, "text")
    with pytest.raises(ValueError, match="`path`: expected a relative path"):
        await files.read_page(store, "u", path)


async def test_writing_the_same_text_twice_writes_once() -> None:
    store = CountingStore()
    await files.write(store, "u", "p", "text", origin={"call": 1})
    store.puts_left = 0
    await files.write(store, "u", "p", "text", origin={"call": 2})
    file = await files.find(store, "u", "p")
    assert file is not None
    assert file.origin == {"call": 1}


async def test_another_text_takes_the_place_of_the_old_one_and_leaves_no_part(
    store: BaseStore,
) -> None:
    await files.write(store, "u", "p", "a" * (PART_CHARS + 1))
    await files.write(store, "u", "p", "b")
    assert await files.read_text(store, "u", "p") == "b"
    assert len(await store.asearch(space("u", "file_parts"))) == 1


async def test_a_crash_while_writing_leaves_the_old_text() -> None:
    store = CountingStore()
    await files.write(store, "u", "p", "old")
    for puts_left in (0, 5, 6):  # no part, some parts, all parts but no header
        store.puts_left = puts_left
        with pytest.raises(ConnectionError):
            await files.write(store, "u", "p", "n" * (PART_CHARS * 6))
        assert await files.read_text(store, "u", "p") == "old"


async def test_a_file_whose_part_is_gone_is_not_read_by_half(store: BaseStore) -> None:
    await files.write(store, "u", "p", "a" * (PART_CHARS + 1))
    place = space("u", "file_parts")
    part = (await store.asearch(place))[0]
    await store.adelete(part.namespace, part.key)
    assert await files.read_text(store, "u", "p") is None


async def test_a_removed_file_leaves_nothing(store: BaseStore) -> None:
    await files.write(store, "u", "p", "a" * (PART_CHARS + 1))
    assert await files.remove(store, "u", "p")
    assert await store.asearch(space("u", "files")[:2]) == []


async def test_files_are_listed_by_path_with_their_sizes(store: BaseStore) -> None:
    for path in ("many/b", "other", "many/a", "man"):
        await files.write(store, "u", path, "a\nb")
    assert [file.path for file in await files.list_paths(store, "u", "many/")] == [
        "many/a",
        "many/b",
    ]
    assert len(await files.list_paths(store, "u")) == 4
    (other,) = await files.list_paths(store, "u", "other")
    assert (other.chars, other.lines) == (3, 2)


async def test_one_long_line_is_read_in_bounded_pages_that_join_to_the_text(
    store: BaseStore,
) -> None:
    await files.write(store, "u", "p", LONG_LINE)
    read = [page async for page in pages(store, "p", max_chars=16_000)]
    assert "".join(page.text for page in read) == LONG_LINE
    assert all(0 < len(page.text) <= 16_000 for page in read)
    assert all(page.line == 1 and page.next_line is None for page in read)


async def test_a_page_ends_after_a_whole_line_and_names_the_next(store: BaseStore) -> None:
    await files.write(store, "u", "p", "one\ntwo\nthree\nfour")
    page = await files.read_page(store, "u", "p", max_chars=10)
    assert page == Page(
        text="one\ntwo\n",
        offset=0,
        line=1,
        next_offset=8,
        next_line=3,
        total_chars=18,
        total_lines=4,
    )
    page = await files.read_page(store, "u", "p", first_line=3, max_lines=1)
    assert page is not None
    assert (page.text, page.next_line, page.next_offset) == ("three\n", 4, 14)
    page = await files.read_page(store, "u", "p", first_line=4)
    assert page is not None
    assert (page.text, page.next_line, page.next_offset) == ("four", None, None)
    page = await files.read_page(store, "u", "p")
    assert page is not None
    assert (page.text, page.next_line, page.next_offset) == ("one\ntwo\nthree\nfour", None, None)


async def test_a_page_goes_on_from_one_part_to_the_next(store: BaseStore) -> None:
    text = "a" * (PART_CHARS - 3) + "b\ncdef"
    await files.write(store, "u", "p", text)
    page = await files.read_page(store, "u", "p", offset=PART_CHARS - 5, max_chars=6)
    assert page is not None
    assert (page.text, page.line, page.next_offset) == ("aab\n", 1, PART_CHARS - 1)
    page = await files.read_page(store, "u", "p", offset=PART_CHARS - 1, max_chars=2)
    assert page is not None
    assert (page.text, page.line, page.next_offset) == ("cd", 2, PART_CHARS + 1)


async def test_a_page_past_the_end_is_empty(store: BaseStore) -> None:
    await files.write(store, "u", "p", "one\ntwo\n")
    for where in ({"offset": 99}, {"first_line": 3}, {"first_line": 99}):
        page = await files.read_page(store, "u", "p", **where)
        assert page is not None
        assert (page.text, page.next_offset, page.total_lines) == ("", None, 2)


@pytest.mark.parametrize(
    "wrong", [{"offset": -1}, {"first_line": 0}, {"max_lines": 0}, {"max_chars": 0}]
)
async def test_a_page_that_makes_no_sense_is_refused(
    store: BaseStore, wrong: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="expected an offset of at least 0"):
        await files.read_page(store, "u", "p", **wrong)


async def test_a_page_of_a_large_file_reads_no_more_than_the_parts_it_touches() -> None:
    store = CountingStore()
    text = "".join(f"line {number}\n" for number in range(400_000))
    await files.write(store, "u", "p", text)
    store.gets = 0
    page = await files.read_page(store, "u", "p", first_line=300_001, max_lines=2)
    assert page is not None
    assert page.text == "line 300000\nline 300001\n"
    assert page.offset == text.index(page.text)
    assert store.gets <= 4


async def test_a_page_of_a_text_is_as_of_a_file(store: BaseStore) -> None:
    text = "one\ntwo\nthree"
    await files.write(store, "u", "p", text)
    for where in ({}, {"offset": 2}, {"first_line": 2}, {"first_line": 9}, {"max_chars": 2}):
        assert paging.page_of(text, **where) == await files.read_page(store, "u", "p", **where)
