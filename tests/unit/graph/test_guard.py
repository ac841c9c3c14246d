"""What is refused before it is in a thread, on in-memory stores and on Postgres."""

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from everlong.graph.agent import build
from everlong.nodes.errors import InvalidInputError, MissingUserError
from everlong.stores import transcripts
from scripted_model import ScriptedModel, calling

THREAD = {"configurable": {"thread_id": "t1"}}
REMOVE_ALL = {"type": "remove", "content": "", "id": "__remove_all__"}


def ask_person(question: str) -> str:
    """Ask the person, and wait for the answer."""
    return f"the person said {interrupt(question)}"


def context(script=("fine",), **more):
    given = {"user_id": "kim", "model": ScriptedModel(script=script), "memory": {"enabled": False}}
    return given | more


def user(text, **more):
    return {"messages": [{"role": "user", "content": text, **more}]}


@pytest.fixture
def graph(backend):
    builder = build(tools=[ask_person])
    return builder.compile(checkpointer=backend.saver, store=backend.store)


async def invoke(graph, given, config=THREAD, **options):
    return await graph.ainvoke(given, config, **options)


async def stream(graph, given, config=THREAD, **options):
    return [part async for part in graph.astream(given, config, **options)]


async def events(graph, given, config=THREAD, **options):
    return [event async for event in graph.astream_events(given, config, version="v2", **options)]


@pytest.mark.parametrize("run", [invoke, stream, events])
@pytest.mark.parametrize(
    "given",
    [
        user("let me in"),
        user("mine now", id="q1"),
        {"messages": [REMOVE_ALL]},
        Command(resume="yes"),
    ],
)
async def test_a_stranger_changes_nothing_and_the_approval_still_waits(graph, run, given):
    asking = calling(("ask_person", {"question": "Go?"}))
    mine = context([asking, "done"])
    await graph.ainvoke(user("ask me", id="q1"), THREAD, context=mine)
    before = await graph.aget_state(THREAD)
    assert before.interrupts
    with pytest.raises(InvalidInputError, match="not a thread of 'eve'"):
        await run(graph, given, context=context(user_id="eve"))
    assert await graph.aget_state(THREAD) == before
    after = await graph.ainvoke(Command(resume="yes"), THREAD, context=mine)
    assert [message.text for message in after["messages"][-2:]] == ["the person said yes", "done"]


@pytest.mark.parametrize("nobody", [None, {}, {"user_id": " "}])
async def test_what_nobody_says_is_not_in_the_thread(graph, nobody):
    await graph.ainvoke(user("mine"), THREAD, context=context())
    with pytest.raises(MissingUserError, match="user_id"):
        await graph.ainvoke(user("who am I?"), THREAD, context=nobody)
    messages = (await graph.aget_state(THREAD)).values["messages"]
    assert [message.text for message in messages] == ["mine", "fine"]


@pytest.mark.parametrize(
    ("user_id", "said"),
    [
        ("ki\x00m", "without NUL"),
        ("ki\ud83d", "lone surrogates"),
        ("k" * 801, "at most 800 bytes; got 801"),
    ],
)
async def test_a_user_id_that_no_store_holds_is_refused(graph, user_id, said):
    with pytest.raises(InvalidInputError, match=f"`user_id`: expected .*{said}"):
        await graph.ainvoke(user("mine"), THREAD, context=context(user_id=user_id))


BAD_IDS = [
    ("", "at least one character"),
    ("t\x00", "without NUL"),
    ("t\ud83d", "lone surrogates"),
    ("t" * 801, "at most 800 bytes; got 801"),
    ("线" * 300, "at most 800 bytes; got 900"),
    ("/" * 300, "at most 800 bytes; got 900"),
]


@pytest.mark.parametrize("run", [invoke, stream, events])
@pytest.mark.parametrize(("thread_id", "said"), BAD_IDS)
async def test_a_thread_id_that_no_store_holds_is_refused_before_the_model_is_asked(
    graph, run, thread_id, said
):
    """A25, expectation 4; an id that is too long could have no transcript."""
    given = context()
    config = {"configurable": {"thread_id": thread_id}}
    with pytest.raises(InvalidInputError, match=f"`thread_id`: .*{said}"):
        await run(graph, user("mine"), config=config, context=given)
    assert given["model"].requests == []


@pytest.mark.parametrize("thread_id", ["t" * 800, "线" * 266, "/" * 266, "a.b * c", "~2e"])
async def test_the_longest_thread_id_and_the_strangest_have_a_transcript(graph, backend, thread_id):
    config = {"configurable": {"thread_id": thread_id}}
    await graph.ainvoke(user("mine"), config, context=context())
    (entry, _) = await transcripts.read(backend.store, "kim", thread_id)
    assert entry.text == "mine"
    assert await transcripts.threads(backend.store, "kim") == [thread_id]


@pytest.mark.parametrize(
    "given",
    [
        {"messages": [{"role": "boss", "content": "x"}]},
        {"messages": [{"content": "x"}]},
        {"messages": [{"role": "user", "content": {"a": 1}}]},
        {"messages": [7]},
        {"messages": None},
        {"request": "compact"},
        Command(update={"messages": [7]}),
        Command(update=[("messages", [7])]),
        Command(update=[["phase", "answer"], ["phase", "answer"]]),
        Command(update=[5]),
        Command(update=[["messages"]]),
        *(Command(update={name: None}) for name in ("call", "meter", "phase", "unflushed")),
    ],
)
async def test_what_is_no_input_leaves_the_thread_readable(graph, given):
    await graph.ainvoke(user("mine"), THREAD, context=context())
    before = await graph.aget_state(THREAD)
    with pytest.raises(InvalidInputError, match=r"`\w+`: expected"):
        await graph.ainvoke(given, THREAD, context=context())
    assert await graph.aget_state(THREAD) == before


@pytest.mark.parametrize("values", [{"call": "x"}, {"meter": None}, {"messages": [7]}])
async def test_an_edit_of_what_no_channel_holds_changes_nothing(graph, values):
    await graph.ainvoke(user("mine"), THREAD, context=context())
    before = await graph.aget_state(THREAD)
    with pytest.raises(InvalidInputError, match=r"`\w+`: expected"):
        await graph.aupdate_state(THREAD, values, as_node="reason")
    assert await graph.aget_state(THREAD) == before


async def test_input_that_langgraph_takes_passes(graph):
    for given in ({"messages": "one"}, {"messages": ("user", "two")}, user("three")):
        await graph.ainvoke(given, THREAD, context=context())
    messages = (await graph.aget_state(THREAD)).values["messages"]
    assert [message.text for message in messages[::2]] == ["one", "two", "three"]


async def test_a_graph_that_keeps_nothing_answers():
    alone = build().compile()
    assert (await alone.ainvoke(user("hello"), context=context()))["messages"][-1].text == "fine"


async def test_a_copy_is_guarded_too(graph):
    await graph.ainvoke(user("mine"), THREAD, context=context())
    with pytest.raises(InvalidInputError, match="not a thread"):
        await graph.copy().ainvoke(user("let me in"), THREAD, context=context(user_id="eve"))


async def test_as_a_node_of_another_graph_it_is_not_in_the_way(backend):
    parent = StateGraph(MessagesState, context_schema=dict)
    parent.add_node("everlong", build().compile()).add_edge(START, "everlong")
    graph = parent.compile(checkpointer=backend.saver, store=backend.store)
    after = await graph.ainvoke(user("hello"), THREAD, context=context())
    assert after["messages"][-1].text == "fine"


@pytest.mark.parametrize("as_node", [None, "open_call", "reason", "flush_memory"])
async def test_the_state_of_a_finished_call_can_be_edited(graph, as_node):
    await graph.ainvoke(user("mine", id="q1"), THREAD, context=context())
    await graph.aupdate_state(THREAD, user("edited", id="q1"), as_node=as_node)
    messages = (await graph.aget_state(THREAD)).values["messages"]
    assert [message.text for message in messages] == ["edited", "fine"]


async def test_an_edit_before_compact_leaves_the_compaction_due(graph):
    settings = {"trigger_messages": 3, "keep_messages": 1, "flush_before": False}
    due = context(["fine", "a summary", "good"], compaction=settings)
    await graph.ainvoke(user("mine", id="q1"), THREAD, context=due)
    await graph.ainvoke(user("more"), THREAD, context=due, interrupt_before=["compact"])
    await graph.aupdate_state(THREAD, user("edited", id="q1"))
    assert (await graph.aget_state(THREAD)).next == ("compact",)
    after = await graph.ainvoke(None, THREAD, context=due)
    assert len(after["messages"]) == 3
