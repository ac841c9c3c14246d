"""Text breaks between words, by cells, the same however it comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from everlong.graph.wrapping import Flow, fitted, printable, shortened, wrapped

MIXED = (
    "任务编号 CTX-009。要确认四项：Java 版本、Spring Boot 版本、启动类、源码目录。\n"
    "- an item that is long enough to go over the margin of thirty columns\n"
    "  2. and one below it, which is long enough, too\n"
    "    code = kept(as_it, stands)\n\nhttps://example.test/a/word/wider/than/a/line\n"
)
texts = st.text(
    st.sampled_from("ab -\n\t，。“”（夜莺はé🎉\u200d\u3000\x1b\x00"), max_size=200
) | st.just(MIXED)


def flowed(parts, width):
    written = []
    flow = Flow(written.append, width=width)
    for part in parts:
        flow.feed(part)
    flow.end()
    return "".join(written)


@given(texts, st.integers(20, 60), st.lists(st.integers(1, 9), min_size=1))
def test_the_parts_in_which_a_text_comes_make_no_difference(text, width, sizes):
    parts, at = [], 0
    while at < len(text):
        size = sizes[len(parts) % len(sizes)]
        parts.append(text[at : at + size])
        at += size
    at_once = wrapped(text, width)
    if max(map(cell_len, text.split()), default=0) <= width:
        assert flowed(parts, width) == at_once


@given(texts, st.integers(20, 60))
def test_nothing_but_blanks_and_controls_is_lost_or_added(text, width):
    kept = "".join(printable(text).split())
    assert "".join(wrapped(text, width).split()) == kept


@given(texts, st.integers(20, 60))
def test_a_line_fits_unless_one_word_does_not(text, width):
    for line in wrapped(text, width).split("\n"):
        assert cell_len(line) <= width or " " not in line.strip(" ")


@pytest.mark.parametrize("width", range(20, 70))
def test_no_line_begins_with_closing_punctuation(width):
    assert not any(
        line.startswith(tuple("，。、；：）”")) for line in wrapped(MIXED, width).split()
    )


def test_a_list_item_hangs_below_its_own_text():
    lines = wrapped("- one two three four five six seven", 20).split("\n")
    assert lines == ["- one two three four", "  five six seven"]


def test_an_indent_stands_before_what_goes_on():
    assert wrapped("name: one two three four", 20, "    ") == "name: one two three\n    four"


def test_a_word_without_end_is_written_as_it_comes():
    written = []
    flow = Flow(written.append, width=20)
    for _ in range(10):
        flow.feed("0123456789")
    assert len("".join(written)) >= 70
    flow.feed(" next")
    flow.end()
    assert "".join(written) == "0123456789" * 10 + "\nnext"


def test_what_steers_a_terminal_is_shown_as_no_text():
    assert printable("a\x1b[2Jb\x00c\td\r\n\x9b\u202e") == "a\ufffd[2Jb\ufffdc    d\n\ufffd\ufffd"


def test_a_text_on_one_line_says_that_it_goes_on():
    assert shortened("one\n two  three", 20) == "one two three"
    assert shortened("one two three", 8) == "one two…"
    assert fitted("夜莺夜莺", 8) == "夜莺夜莺"
    assert fitted("夜莺夜莺夜", 8) == "夜莺夜…"
