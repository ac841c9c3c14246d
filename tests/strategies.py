"""Transcripts for property tests: well-formed ones, and ones as imports and crashes leave them."""

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

QUICK = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""The same examples in every run, and no clock."""

SUMMARY = "__compaction_summary__"

texts = st.sampled_from(
    [
        "go on",
        "订单 SO-202610-4471 到哪了？",
        "Done: 3 files.",
        "row,12,ok\n" * 40,
        '{"a": [1, 2]}',
        "好",
    ]
)
pins = st.sampled_from([{}, {}, {}, {}, {"pin": True}])
broken_arguments = '{"text": oops]'


def call(call_id: str | None, name: str = "look") -> dict[str, Any]:
    return {"name": name, "args": {"key": "v"}, "id": call_id, "type": "tool_call"}


def broken_call(call_id: str | None) -> dict[str, Any]:
    return {
        "name": "save",
        "args": broken_arguments,
        "id": call_id,
        "error": None,
        "type": "invalid_tool_call",
    }


@st.composite
def plain_rounds(draw: st.DrawFn, answered: bool = True) -> list[BaseMessage]:
    """A user message and, mostly, its answer."""
    asked = HumanMessage(draw(texts), additional_kwargs=draw(pins))
    if not answered and draw(st.booleans()):
        return [asked]
    return [asked, AIMessage(draw(texts), additional_kwargs=draw(pins))]


@st.composite
def batch_of_calls(draw: st.DrawFn, finished: bool = True) -> list[BaseMessage]:
    """An assistant message with up to four calls, and its results in any order, or some."""
    count = draw(st.integers(1, 4))
    # Small numbers on purpose: some models number the calls of each message anew.
    names = [f"c{draw(st.integers(0, 9))}_{position}" for position in range(count)]
    unreadable = draw(st.booleans()) and draw(st.booleans())
    valid = names[:-1] if unreadable else names
    caller = AIMessage(
        draw(st.sampled_from(["", "I look it up."])),
        tool_calls=[call(name) for name in valid],
        invalid_tool_calls=[broken_call(name) for name in names[len(valid) :]],
        additional_kwargs=draw(pins),
    )
    order = draw(st.permutations(names))
    if not finished:
        order = order[: draw(st.integers(0, count - 1))]
    results = [
        ToolMessage(
            draw(texts) * draw(st.sampled_from([1, 1, 1, 300])),
            tool_call_id=name,
            name="look",
            additional_kwargs=draw(pins),
        )
        for name in order
    ]
    return [caller, *results]


@st.composite
def tool_rounds(draw: st.DrawFn, open_end: bool = False) -> list[BaseMessage]:
    """A user message, one to three batches of calls, and the answer; or a loop that still runs."""
    asked = HumanMessage(draw(texts), additional_kwargs=draw(pins))
    loop = draw(st.lists(batch_of_calls(), min_size=1, max_size=3))
    flat = [message for batch in loop for message in batch]
    if not open_end:
        return [asked, *flat, AIMessage(draw(texts))]
    return [asked, *flat, *(draw(batch_of_calls(finished=False)) if draw(st.booleans()) else [])]


@st.composite
def transcripts(draw: st.DrawFn) -> list[BaseMessage]:
    """A well-formed transcript, each message with an id: what the state of a thread may hold."""
    messages: list[BaseMessage] = []
    if draw(st.booleans()):
        messages.append(
            HumanMessage("Here is a summary of the conversation to date:", name=SUMMARY)
        )
    for one in draw(st.lists(st.one_of(plain_rounds(), tool_rounds()), max_size=6)):
        messages += one
        if draw(st.integers(0, 5)) == 0:
            messages.append(SystemMessage(draw(texts)))
    messages += draw(st.one_of(plain_rounds(answered=False), tool_rounds(open_end=True)))
    return numbered(messages)


@st.composite
def broken_transcripts(draw: st.DrawFn) -> list[BaseMessage]:
    """A transcript with messages lost, doubled, moved, emptied and added."""
    messages = list(draw(transcripts()))
    for _ in range(draw(st.integers(0, 5))):
        damage = draw(st.sampled_from(["lose", "double", "move", "empty", "add"]))
        at = draw(st.integers(0, max(0, len(messages) - 1)))
        to = draw(st.integers(0, len(messages)))
        if damage == "add":
            messages.insert(to, draw(strays()))
        elif messages:
            _damage(messages, damage, at, to)
    return numbered([message.model_copy() for message in messages])


def _damage(messages: list[BaseMessage], damage: str, at: int, to: int) -> None:
    if damage == "double":
        messages.insert(to, messages[at])
    elif damage == "empty":
        messages[at] = messages[at].model_copy(update={"content": ""})
    else:
        lost = messages.pop(at)
        if damage == "move":
            messages.insert(min(to, len(messages)), lost)


def strays() -> st.SearchStrategy[BaseMessage]:
    """Messages that belong nowhere."""
    return st.sampled_from(
        [
            ToolMessage("left over", tool_call_id="gone"),
            ToolMessage("again", tool_call_id="c0_0"),
            ToolMessage([{"type": "text", "text": " "}], tool_call_id="c1_0"),
            AIMessage(""),
            AIMessage([{"type": "text", "text": ""}]),
            AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s"}]),
            AIMessage("", invalid_tool_calls=[broken_call(None), broken_call(None)]),
            AIMessage("twice", tool_calls=[call("c0_0"), call("c0_0"), call(None)]),
            HumanMessage(" "),
            HumanMessage([{"type": "text", "text": ""}, {"type": "text", "text": "hi"}]),
            SystemMessage("From now on be brief."),
        ]
    ).map(lambda message: message.model_copy())


def numbered(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return `messages` with the ids m0, m1, ..."""
    return [each.model_copy(update={"id": f"m{i}"}) for i, each in enumerate(messages)]


scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30))
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)
kinds = st.sampled_from(
    [
        "text",
        "image",
        "image_url",
        "input_image",
        "file",
        "audio",
        "document",
        "thinking",
        "reasoning",
        "tool_use",
        "tool_result",
        "function_call",
        "non_standard",
        "",
    ]
)
fields = st.sampled_from(
    [
        "text",
        "thinking",
        "reasoning",
        "content",
        "source",
        "id",
        "input",
        "url",
        "mime_type",
        "data",
    ]
)
content_blocks = st.one_of(
    st.text(max_size=40),
    st.dictionaries(fields, json_values, max_size=4),
    st.tuples(kinds, st.dictionaries(fields, json_values, max_size=4)).map(
        lambda pair: pair[1] | {"type": pair[0]}
    ),
)
"""Anything that stands in a content list, sensible or not."""
contents = st.one_of(st.text(max_size=200), st.lists(content_blocks, max_size=4))
