"""Make messages smaller until they fit, where nothing older is left to replace (R22). Pure.

First tool results, in smaller and smaller previews, then arguments of calls, then user messages,
each from the oldest on; the newest user message last. Pinned messages, summaries and what the
assistant says stay. What is cut stays readable: each change comes with the full text to store.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from everlong.nodes.previews import result_preview, user_preview
from everlong.nodes.pruning import PathOf, Shortened, truncate_arguments
from everlong.nodes.tokens import estimate_message
from everlong.nodes.transcript import is_summary, pinned_indices

RESULT_PREVIEWS = (16_000, 8_000, 4_000, 2_000, 1_000, 400)
"""Characters that stay of a tool result."""
LARGE_CHARS = 20_000
"""User messages over this are cut before any smaller one."""
LEAST_PREVIEW_CHARS = 200
ARGUMENT_CHARS = 2_000
NAMED = 3

Step = tuple[int, Callable[[], Shortened | None]]
"""Which message, and what makes it smaller."""


@dataclass(frozen=True, kw_only=True)
class Cutting:
    """How messages are made smaller."""

    preview_chars: int
    """What stays of a user message, where that is enough."""
    path_of: PathOf
    exempt: Collection[str] = ()
    """Tools whose results are cut after all others."""
    reader: str = ""
    """The tool that reads a stored text; empty where none is offered."""


@dataclass(frozen=True, kw_only=True)
class Shrunk:
    """What was made smaller, and what it came to."""

    shortened: tuple[Shortened, ...]
    """In the order of the messages."""
    tokens: int
    """Of all the messages, the unchanged ones, too."""
    over_tokens: int
    """How much does not fit; 0: all fits."""
    stays: str
    """Where it does not fit: the largest messages that are left, in words."""


def shrink(messages: Sequence[BaseMessage], *, room_tokens: int, cutting: Cutting) -> Shrunk:
    """Shorten as little of `messages` as makes them fit `room_tokens`; ids and order stay."""
    sizes = [estimate_message(message) for message in messages]
    done: dict[int, Shortened] = {}
    total = sum(sizes)
    steps = _steps(messages, cutting)
    while total > room_tokens and (step := next(steps, None)):
        index, make = step
        made = make()
        size = estimate_message(made.message) if made else sizes[index]
        if made and size < sizes[index]:
            total += size - sizes[index]
            done[index], sizes[index] = made, size
    over = max(total - room_tokens, 0)
    return Shrunk(
        shortened=tuple(done[index] for index in sorted(done)),
        tokens=total,
        over_tokens=over,
        stays=_named(messages, sizes) if over else "",
    )


def _steps(messages: Sequence[BaseMessage], cutting: Cutting) -> Iterator[Step]:
    """Yield what may be made smaller, mildest first; each step starts from the given message."""
    pinned = pinned_indices(messages)
    results = [i for i, m in enumerate(messages) if isinstance(m, ToolMessage) and i not in pinned]
    for is_last in (False, True):
        chosen = [i for i in results if (messages[i].name in cutting.exempt) is is_last]
        for chars in RESULT_PREVIEWS:
            yield from ((i, _cut_result(messages[i], chars, cutting)) for i in chosen)
    yield from _argument_steps(messages, cutting)
    spoken = [
        i for i, m in enumerate(messages) if isinstance(m, HumanMessage) and not is_summary(m)
    ]
    for users in (spoken[:-1], spoken[-1:]):
        chosen = [i for i in users if i not in pinned]
        for over, chars in _user_previews(cutting.preview_chars):
            yield from ((i, _cut_user(messages[i], over, chars, cutting)) for i in chosen)


def _user_previews(preview_chars: int) -> list[tuple[int, int]]:
    """Return, mildest first: a user message longer than this is cut to a preview of so much."""
    smaller = max(preview_chars // 4, LEAST_PREVIEW_CHARS)
    return [
        (LARGE_CHARS, preview_chars),
        (4 * preview_chars, preview_chars),
        (preview_chars, preview_chars),
        (smaller, smaller),
        (LEAST_PREVIEW_CHARS, LEAST_PREVIEW_CHARS),
    ]


def _cut_result(
    message: BaseMessage, chars: int, cutting: Cutting
) -> Callable[[], Shortened | None]:
    return lambda: result_preview(message, preview_chars=chars, path_of=cutting.path_of)


def _cut_user(
    message: BaseMessage, over: int, chars: int, cutting: Cutting
) -> Callable[[], Shortened | None]:
    return lambda: user_preview(
        message,
        over_chars=over,
        preview_chars=chars,
        path_of=cutting.path_of,
        reader=cutting.reader,
    )


def _argument_steps(messages: Sequence[BaseMessage], cutting: Cutting) -> Iterator[Step]:
    """Yield calls that have their results and hold long strings; thoughts of this turn stay."""
    cut = truncate_arguments(
        messages, keep_messages=0, over_chars=ARGUMENT_CHARS, path_of=cutting.path_of
    )
    by_id = {one.message.id: one for one in cut}
    for index, message in enumerate(messages):
        if found := by_id.get(message.id):
            yield index, lambda found=found: found


def _named(messages: Sequence[BaseMessage], sizes: Sequence[int]) -> str:
    """Name the largest messages, with their sizes."""
    largest = sorted(range(len(messages)), key=lambda index: -sizes[index])[:NAMED]
    return ", ".join(
        f"{messages[index].type} message {messages[index].id} ({sizes[index]} tokens)"
        for index in largest
    )
