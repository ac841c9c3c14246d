"""A09: the request that arrives in the turn that compacts is the one that is answered."""

import re

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from everlong.nodes.summary import summary_body
from everlong.nodes.transcript import is_summary
from given import case, messages_of
from scripted_model import ScriptedModel, asks_for_summary, calling

GIVEN = case("A09")
MESSAGES = messages_of(GIVEN["messages"])
NEWEST = MESSAGES[-1]
SETTINGS = GIVEN["settings"] | {"flush_before": False}
LONG = "Yes, go on, and mind each of these points. " + "Point 7: keep the names as they are. " * 250
SPEAKER = re.compile(r"^\[(user|assistant|tool|earlier summary)", re.MULTILINE)


def spoken(request):
    """Return who says what in a summary request: as text, or as the messages above it."""
    text = request[-1].text
    if "<conversation>" not in text:
        return [(m.type, m.text or str(getattr(m, "tool_calls", ""))) for m in request[1:-1]]
    inside = text.partition("<conversation>\n")[2].rpartition("\n</conversation>")[0]
    kinds = {"user": "human", "assistant": "ai", "tool": "tool", "earlier summary": "human"}
    starts = [*SPEAKER.finditer(inside)]
    ends = [*(m.start() for m in starts[1:]), len(inside)]
    return [(kinds[m[1]], inside[m.start() : end]) for m, end in zip(starts, ends, strict=True)]


def listing(request):
    """Sum up as the case's model does: each request of the user's, done where the talk says so."""
    said = spoken(request)
    asked = " ".join(text for kind, text in said if kind == "human")
    told = " ".join(text for kind, text in said if kind in ("ai", "tool"))
    tasks = {
        "rename the column": "the column is renamed" in told,
        "write the migration": "created mig.sql" in told,
        "update the README": "README updated" in told,
    }
    lines = [
        f"- {task}: {'done' if done else 'open'}"
        for task, done in tasks.items()
        if task.lower() in asked.lower()
    ]
    return "\n".join(lines)


def model(answers=("Updating the README.",)):
    left = list(answers)

    def script(messages):
        return listing(messages) if asks_for_summary(messages) else left.pop(0)

    return ScriptedModel(script=script)


def summaries(talk):
    return [request for request in talk.context.model.requests if asks_for_summary(request)]


def check_summary(message):
    assert is_summary(message)
    assert summary_body(message).splitlines() == [
        "- rename the column: done",
        "- write the migration: done",
        "- update the README: open",
    ]


@pytest.fixture(params=["same model", "own model"])
def begin(request, converse):
    """Let the summary extend the last request, or be asked of another model in text."""

    def begun(answers=("Updating the README.",), **changes):
        one = model(answers)
        own = {"summary_model": model(())} if request.param == "own model" else {}
        return converse(model=one, compaction=SETTINGS | changes, **own)

    return begun


def asked_of(talk):
    return talk.context.summary_model or talk.context.model


@pytest.mark.parametrize("keep", [1, 2, 3, 5])
@pytest.mark.parametrize("text", [NEWEST.content, LONG])
async def test_the_newest_request_is_last_and_unchanged_whatever_is_kept(begin, keep, text):
    newest = NEWEST.model_copy(update={"content": text})
    talk = begin(keep_messages=keep)
    await talk.seed(MESSAGES[:-1])
    messages = await talk.send({"messages": [newest]})
    assert (talk.last_request[-1].id, talk.last_request[-1].content) == ("h3", text)
    assert is_summary(talk.last_request[1])
    assert messages[-1].text == "Updating the README."
    assert [m.id for m in messages if m.id == "h3"] == ["h3"]


async def test_the_summariser_reads_all_in_order_and_is_asked_what_is_done_and_open(begin):
    talk = begin()
    await talk.seed(MESSAGES[:-1])
    await talk.send({"messages": [NEWEST]})
    (request,) = [r for r in asked_of(talk).requests if asks_for_summary(r)]
    said = spoken(request)
    assert [kind for kind, _ in said] == [message.type for message in MESSAGES[:-1]]
    for message, (_, text) in zip(MESSAGES[:-1], said, strict=True):
        assert message.text in text
    told = request[-1].text.replace("\n", " ")
    for words in ("request by request, in order", "done", "open", "exact next step"):
        assert words in told
    check_summary(talk.last_request[1])


async def test_a_compaction_by_hand_before_the_request_comes_to_the_same(begin):
    talk = begin()
    await talk.seed(MESSAGES[:-1])
    await talk.compact()
    summary, *tail = await talk.messages()
    assert [message.id for message in tail] == ["a4"]
    check_summary(summary)
    await talk.send({"messages": [NEWEST]})
    sent = talk.last_request
    assert [message.id for message in sent[2:]] == ["a4", "h3"]
    assert sent[-1].content == NEWEST.content
    check_summary(sent[1])


@pytest.mark.parametrize("text", [NEWEST.content, LONG])
async def test_a_long_tool_loop_never_pushes_the_request_out(converse, text):
    @tool
    def edit(f: str) -> str:
        """Edit a file."""
        return f"edited {f}"

    steps = [calling(("edit", {"f": f"part_{n}.md"}), prefix=f"s{n}") for n in range(12)]
    talk = converse(
        model=model([*steps, "Updating the README."]), tools=[edit], compaction=SETTINGS
    )
    await talk.seed(MESSAGES[:-1])
    newest = HumanMessage(text, id="h3")
    await talk.send({"messages": [newest]})
    requests = [r for r in talk.watcher.requests if not asks_for_summary(r)]
    assert len(requests) == 13
    for request in requests:
        assert [m.content for m in request if m.id == "h3"] == [text]
    assert len(summaries(talk)) > 1
    for request in requests[1:]:
        last = request[-1]
        assert last.type == "tool", "the newest result ends the request"
