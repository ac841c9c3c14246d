import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from everlong.stores import files, paging

SIGNS = ["a", "é", "e\u0301", "部", "😀", "👨‍👩‍👧", "🇳🇴", "\n", "\n", "\r\n", "\u2028", "\x0c"]
CHARACTERS = st.sampled_from(SIGNS)
TEXTS = st.lists(CHARACTERS, max_size=80).map("".join)
LIMITS = st.integers(1, 30)


@given(TEXTS, LIMITS, LIMITS)
@settings(deadline=None)
def test_pages_are_bounded_and_join_to_the_text(text: str, lines: int, chars: int) -> None:
    offset: int | None = 0
    read: list[str] = []
    while offset is not None:
        page = paging.page_of(text, offset=offset, max_lines=lines, max_chars=chars)
        assert page.offset == offset == sum(map(len, read))
        assert page.line == text.count("\n", 0, offset) + 1
        assert len(page.text) <= chars
        assert page.text.count("\n") <= lines
        if page.next_line is not None:
            again = paging.page_of(text, first_line=page.next_line)
            assert again.offset == page.next_offset
        read.append(page.text)
        assert page.text or page.next_offset is None
        offset = page.next_offset
    assert "".join(read) == text


@given(TEXTS, st.integers(1, 7), LIMITS, LIMITS, LIMITS)
@settings(deadline=None)
def test_a_page_does_not_depend_on_how_the_file_is_stored(
    text: str, part: int, line: int, lines: int, chars: int
) -> None:
    store = InMemoryStore()
    usual = files.PART_CHARS
    try:
        files.PART_CHARS = part
        asyncio.run(files.write(store, "u", "p", text))
    finally:
        files.PART_CHARS = usual
    limits = {"max_lines": lines, "max_chars": chars}
    for where in ({"first_line": line}, {"offset": line}):
        page = asyncio.run(files.read_page(store, "u", "p", **where, **limits))
        assert page == paging.page_of(text, **where, **limits)
