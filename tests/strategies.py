"""Transcripts for property tests: well-formed ones, and ones as imports and crashes leave them."""

from collections.abc import Iterator, Sequence
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
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
"""The same examples in every run, and no clock."""

SUMMARY = "__compaction_summary__"
TEXTS = (
    "go on",
    "订单 SO-202610-4471 到哪了？",
    "Done: 3 files.",
    "row,12,ok\n" * 40,
    '{"a": [1, 2]}',
    "好" * 300,
)
BROKEN_ARGUMENTS = '{"text": oops]'

# h: user, a: answer, s: system; a batch is its number of calls after a letter:
# b answered in order, r in reverse, x with a last call that can't be read, o open, p half open.
# Of other blocks than text: i user with an image, k answer with thoughts, t answer of thoughts
# alone, v answer with a server-side call, w such a call whose result waits for a client's tool.
ROUNDS = ("h a", "h b1 a", "h b3 a", "h r2 b2 a", "h x2 a", "h b1 r3 x1 a", "h a s", "h h a")
BLOCK_ROUNDS = ("i k", "h v", "h w", "h b2 v", "i t", "h w b1 k", "h k b1 w")
ENDS = ("", "h", "h b2", "h r4", "h o1", "h b1 o2", "h b2 p3", "h x1")


@st.composite
def transcripts(draw: st.DrawFn, rounds_of: Sequence[str] = ROUNDS) -> list[BaseMessage]:
    """A well-formed transcript, each message with an id: what the state of a thread may hold."""
    rounds = draw(st.lists(st.sampled_from(rounds_of), max_size=6))
    steps = " ".join([*rounds, draw(st.sampled_from(ENDS))]).split()
    salt = draw(st.integers(0, len(TEXTS) - 1))
    has_summary, reuses_ids = draw(st.booleans()), draw(st.booleans())
    messages: list[BaseMessage] = []
    if has_summary:
        messages.append(HumanMessage("Here is a summary of the conversation", name=SUMMARY))
    for place, step in enumerate(steps):
        # Some models number the calls of each message anew.
        messages += _step(step, f"c{0 if reuses_ids else place}", place + salt)
    for pinned in draw(st.sets(st.integers(0, 40), max_size=3)):
        if pinned < len(messages):
            messages[pinned].additional_kwargs["pin"] = True
    return numbered(messages)


def _step(step: str, prefix: str, salt: int) -> Iterator[BaseMessage]:
    kind, count, text = step[0], int(step[1:] or 0), TEXTS[salt % len(TEXTS)]
    if kind == "h":
        yield HumanMessage(text)
    elif kind == "s":
        yield SystemMessage(text)
    elif kind == "a":
        yield AIMessage(text)
    elif kind in "iktvw":
        yield from _blocks(kind, f"{prefix}_s", text)
    else:
        ids = [f"{prefix}_{number}" for number in range(count)]
        valid = ids[:-1] if kind == "x" else ids
        yield AIMessage(
            text if salt % 2 else "",
            tool_calls=[call(name) for name in valid],
            invalid_tool_calls=[broken_call(name) for name in ids[len(valid) :]],
        )
        answered = {"o": [], "p": ids[1:], "r": ids[::-1]}.get(kind, ids)
        for at, name in enumerate(answered):
            result = TEXTS[(salt + at) % len(TEXTS)] * (1 + 9 * (at % 2))
            yield ToolMessage(result, tool_call_id=name, name="look")


def thought(text: str = "step") -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": "sig-" + "x" * 400}


def searches(call_id: str, query: str = "fees") -> dict[str, Any]:
    kind, name = "server_tool_use", "web_search"
    return {"type": kind, "id": call_id, "name": name, "input": {"query": query}}


def found(call_id: str, title: str = "Fees") -> dict[str, Any]:
    page = {"type": "web_search_result", "title": title, "encrypted_content": "E" * 400}
    return {"type": "web_search_tool_result", "tool_use_id": call_id, "content": [page]}


def _blocks(kind: str, name: str, text: str) -> Iterator[BaseMessage]:
    said = {"type": "text", "text": text}
    if kind == "i":
        picture = {"type": "image", "base64": "A" * 4_000, "mime_type": "image/png"}
        yield HumanMessage([said, picture])
    elif kind == "w":
        use = {"type": "tool_use", "id": f"{name}_c", "name": "look", "input": {"key": "v"}}
        yield AIMessage([thought(), searches(name), use], tool_calls=[call(f"{name}_c")])
        yield ToolMessage(text, tool_call_id=f"{name}_c", name="look")
        yield AIMessage([found(name), said])
    else:
        tails = {"k": [said], "t": [], "v": [searches(name), found(name), said]}
        yield AIMessage([thought(), *tails[kind]])


def call(call_id: str | None, name: str = "look") -> dict[str, Any]:
    return {"name": name, "args": {"key": "v"}, "id": call_id, "type": "tool_call"}


def broken_call(call_id: str | None) -> dict[str, Any]:
    kind = "invalid_tool_call"
    return {"name": "save", "args": BROKEN_ARGUMENTS, "id": call_id, "error": None, "type": kind}


def human(message_id: str, text: str = "go on", **kwargs: Any) -> HumanMessage:
    return HumanMessage(text, id=message_id, additional_kwargs=kwargs)


def says(message_id: str, text: str = "done", **kwargs: Any) -> AIMessage:
    return AIMessage(text, id=message_id, additional_kwargs=kwargs)


def calls(message_id: str, *ids: str | None, text: str = "", name: str = "look") -> AIMessage:
    return AIMessage(text, id=message_id, tool_calls=[call(one, name) for one in ids])


def result(message_id: str, call_id: str, text: str = "ok", **kwargs: Any) -> ToolMessage:
    return ToolMessage(text, id=message_id, tool_call_id=call_id, additional_kwargs=kwargs)


STRAYS: tuple[BaseMessage, ...] = (
    ToolMessage("left over", tool_call_id="gone"),
    ToolMessage("again", tool_call_id="c0_0"),
    ToolMessage([{"type": "text", "text": " "}], tool_call_id="c1_0"),
    AIMessage(""),
    AIMessage([{"type": "text", "text": ""}]),
    AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s"}]),
    AIMessage([thought(), searches("lost")]),
    AIMessage([found("lost"), {"type": "text", "text": "Found."}]),
    AIMessage("", invalid_tool_calls=[broken_call(None), broken_call(None)]),
    AIMessage("twice", tool_calls=[call("c0_0"), call("c0_0"), call(None)]),
    HumanMessage(" "),
    HumanMessage([{"type": "text", "text": ""}, {"type": "text", "text": "hi"}]),
    SystemMessage("From now on be brief."),
)
"""Messages that belong nowhere."""

damages = st.tuples(
    st.sampled_from(["lose", "double", "move", "empty", *STRAYS]),
    st.integers(0, 40),
    st.integers(0, 40),
)


@st.composite
def broken_transcripts(draw: st.DrawFn) -> list[BaseMessage]:
    """A transcript with messages lost, doubled, moved, emptied and added."""
    messages = list(draw(transcripts((*ROUNDS, *BLOCK_ROUNDS))))
    for damage, at, to in draw(st.lists(damages, max_size=5)):
        if isinstance(damage, BaseMessage):
            messages.insert(to % (len(messages) + 1), damage)
        elif messages:
            _damage(messages, damage, at % len(messages), to % len(messages))
    return numbered(messages)


def _damage(messages: list[BaseMessage], damage: str, at: int, to: int) -> None:
    if damage == "double":
        messages.insert(to, messages[at])
    elif damage == "empty":
        messages[at] = messages[at].model_copy(update={"content": ""})
    else:
        lost = messages.pop(at)
        if damage == "move":
            messages.insert(to, lost)


def numbered(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return copies of `messages` with the ids m0, m1, ..."""
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
