"""The keep setting is a wish: what stays fits, or is as little as may stay (R13, R22)."""

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from everlong.nodes.plan import fitting_cut
from everlong.nodes.tokens import estimate_messages
from everlong.nodes.transcript import (
    conversation,
    plain_cut_by_messages,
    safe_cut,
    split,
)
from invariants import check_state
from strategies import QUICK, transcripts

keeps = st.integers(1, 12)
rooms = st.integers(0, 3_000)


@QUICK
@given(transcripts(), keeps, rooms)
def test_what_stays_fits_or_no_later_cut_would_leave_less(
    messages: list[BaseMessage], keep: int, room: int
) -> None:
    talk = conversation(messages)
    parts = split(talk, fitting_cut(talk, plain_cut_by_messages(talk, keep), room))
    if parts.is_cut and estimate_messages(parts.kept) > room:
        later = [split(talk, cut) for cut in range(parts.cut.safe + 1, len(talk))]
        assert all(one.cut.safe == parts.cut.safe for one in later)


@QUICK
@given(transcripts(), keeps, rooms)
def test_the_tail_shrinks_no_further_than_it_has_to(
    messages: list[BaseMessage], keep: int, room: int
) -> None:
    talk = conversation(messages)
    wish = plain_cut_by_messages(talk, keep)
    cut = fitting_cut(talk, wish, room)
    if cut != wish:
        assert cut >= safe_cut(talk, wish).safe
        earlier = [split(talk, one) for one in range(safe_cut(talk, wish).safe, cut)]
        sizes = [estimate_messages(one.kept) for one in earlier if one.cut.safe < cut]
        assert all(size > room for size in sizes)


@QUICK
@given(transcripts(), keeps, rooms)
def test_a_cut_that_fits_parts_nothing(messages: list[BaseMessage], keep: int, room: int) -> None:
    talk = conversation(messages)
    parts = split(talk, fitting_cut(talk, plain_cut_by_messages(talk, keep), room))
    check_state(parts.kept)
    if talk:
        assert talk[-1] in parts.kept or parts.kept == ()


@QUICK
@given(transcripts(), keeps)
def test_with_room_for_all_the_wish_is_the_cut(messages: list[BaseMessage], keep: int) -> None:
    talk = conversation(messages)
    wish = plain_cut_by_messages(talk, keep)
    assert fitting_cut(talk, wish, estimate_messages(talk)) == wish
