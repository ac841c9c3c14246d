"""Whatever has to fit, shrinking ends, parts and loses nothing, and says what cannot be cut."""

from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from everlong.nodes.pruning import EVICTED
from everlong.nodes.shrinking import Cutting, Shrunk, shrink
from everlong.nodes.tokens import estimate_messages
from everlong.nodes.transcript import is_pinned, is_summary, pinned_indices
from invariants import check_state
from strategies import QUICK, calls, human, result, says, transcripts

rooms = st.integers(0, 4_000)
WIDE = "wide " * 9_000
LONG = [human("h", "Here: " + WIDE), calls("a", "c1", "c2"), result("t1", "c1", WIDE * 2)]
LOOP = [*LONG, result("t2", "c2", WIDE), says("b"), human("h2", WIDE), human("h3", "and?")]


def path_of(text: str) -> str:
    return f"large_tool_results/{hash(text) % 10**8}.txt"


def shrunk(messages: list[BaseMessage], room: int) -> Shrunk:
    cutting = Cutting(preview_chars=400, exempt=("read_file",), path_of=path_of)
    return shrink(messages, room_tokens=room, cutting=cutting)


def after(messages: list[BaseMessage], found: Shrunk) -> list[BaseMessage]:
    by_id = {one.message.id: one.message for one in found.shortened}
    return [by_id.get(message.id, message) for message in messages]


@QUICK
@given(transcripts(), rooms)
@example(LOOP, 100)
@example(LOOP, 9_000)
def test_ids_order_pairs_and_calls_stay(messages: list[BaseMessage], room: int) -> None:
    left = after(messages, shrunk(messages, room))
    assert [(one.id, one.type, one.name) for one in left] == [
        (one.id, one.type, one.name) for one in messages
    ]
    check_state(left)


@QUICK
@given(transcripts(), rooms)
@example(LOOP, 100)
@example(LOOP, 9_000)
@example(LOOP, 1_000_000)
def test_the_result_fits_or_is_named_with_what_is_over(
    messages: list[BaseMessage], room: int
) -> None:
    found = shrunk(messages, room)
    assert found.tokens == estimate_messages(after(messages, found))
    assert found.over_tokens == max(found.tokens - room, 0)
    assert bool(found.stays) is bool(found.over_tokens)


@QUICK
@given(transcripts(), rooms)
@example(LOOP, 100)
def test_what_is_cut_comes_with_its_full_text_or_has_it_stored(
    messages: list[BaseMessage], room: int
) -> None:
    for one in shrunk(messages, room).shortened:
        before = next(each for each in messages if each.id == one.message.id)
        if isinstance(one.message, AIMessage):
            assert one.path_text
            continue
        assert one.path_text == before.text
        assert path_of(before.text) in one.message.text
        assert one.message.additional_kwargs[EVICTED]["path"] == path_of(before.text)


@QUICK
@given(transcripts(), rooms)
@example([*LOOP[:-1], human("h3", WIDE, pin=True)], 100)
def test_pins_summaries_and_answers_stay_word_for_word(
    messages: list[BaseMessage], room: int
) -> None:
    cut = {one.message.id for one in shrunk(messages, room).shortened}
    for index in pinned_indices(messages):
        assert messages[index].id not in cut
    for message in messages:
        if is_summary(message) or is_pinned(message):
            assert message.id not in cut
        if isinstance(message, AIMessage) and not message.tool_calls:
            assert message.id not in cut


@QUICK
@given(transcripts(), rooms)
@example(LOOP, 2_500)
@example([human("h", WIDE), human("h2", WIDE)], 12_000)
def test_the_newest_question_is_cut_last(messages: list[BaseMessage], room: int) -> None:
    spoken = [m for m in messages if isinstance(m, HumanMessage) and not is_summary(m)]
    found = shrunk(messages, room)
    cut = {one.message.id for one in found.shortened}
    if spoken and spoken[-1].id in cut:
        least = shrunk([m for m in messages if m is not spoken[-1]], 0)
        assert least.tokens + estimate_messages([spoken[-1]]) > room


@QUICK
@given(transcripts(), rooms)
@example(LOOP, 9_000)
def test_shrinking_again_to_the_same_size_changes_nothing(
    messages: list[BaseMessage], room: int
) -> None:
    found = shrunk(messages, room)
    if not found.over_tokens:
        assert shrunk(after(messages, found), room).shortened == ()


@QUICK
@given(transcripts(), rooms)
def test_less_room_never_leaves_more(messages: list[BaseMessage], room: int) -> None:
    assert shrunk(messages, room // 2).tokens <= shrunk(messages, room).tokens
