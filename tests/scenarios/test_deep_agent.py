"""Our middleware inside deepagents, in the place of its own summarisation."""

import pytest
from deepagents import create_deep_agent
from langgraph.types import Command

from everlong.graph.middleware import EverlongMiddleware
from everlong.stores import compactions, files, ledger, transcripts
from foreign_graph import COMPACTING, KIM, SUMMARY, says, texts, thread, user
from invariants import check_pairs, check_summary
from scripted_model import ScriptedModel, asks_for_summary, calling, kind_of

QUIET = {"memory": {"enabled": False}, "compaction": COMPACTING}
ITS_OWN = "SummarizationMiddleware"


@pytest.fixture
def agent(backend):
    def make(model, tools=(), *, settings=QUIET, **options):
        return create_deep_agent(
            model,
            tools=list(tools),
            middleware=[EverlongMiddleware(settings, name=ITS_OWN)],
            checkpointer=backend.saver,
            store=backend.store,
            **options,
        )

    return make


async def test_its_history_is_compacted_by_us_and_goes_on_after_a_restart(agent, backend):
    model = ScriptedModel(script=says)
    said, after = ["one", "two", "three", "four", "five", "six"], {}
    for text in said:
        after = await agent(model).ainvoke(user(text), thread(), context=KIM)
        assert len({m.id for m in after["messages"]}) == len(after["messages"]) <= 6
    check_summary(after["messages"])
    assert SUMMARY in after["messages"][0].text
    entries = await transcripts.read(backend.store, "kim", "t1")
    assert [entry.text for entry in entries][::2] == said
    receipts = await compactions.read(backend.store, "kim", "t1")
    assert {one["outcome"] for one in receipts} == {"done"}
    assert not any("conversation_history" in request[0].text for request in model.requests)


def prices() -> str:
    """Return the whole price list."""
    return "a price\n" * 12_000


async def test_its_files_and_ours_are_read_by_tools_of_their_own(agent, backend):
    def script(messages):
        results = [message for message in messages if message.type == "tool"]
        if asks_for_summary(messages):
            return SUMMARY
        if not results:
            return calling(("prices", {}))
        path = results[0].text.partition("stored whole as ")[2].partition(";")[0]
        if len(results) == 1:
            note = {"file_path": "/note.txt", "content": "a note"}
            return calling(("read_stored", {"path": path}), ("write_file", note), prefix="b")
        if len(results) == 3:
            return calling(("read_file", {"file_path": "/note.txt"}), prefix="c")
        return "read"

    model = ScriptedModel(script=script)
    graph = agent(model, [prices], settings={"memory": {"enabled": False}})
    after = await graph.ainvoke(user("the prices?"), thread(), context=KIM)
    found = {message.name: message.text for message in after["messages"] if message.type == "tool"}
    assert "characters 0 to" in found["read_stored"]
    assert "a note" in found["read_file"]
    assert len(await files.list_paths(backend.store, "kim", "")) == 1
    assert {"read_stored", "read_file"} <= set(model.tools[0])


async def test_a_subagent_has_a_history_of_its_own_and_remembers_nothing(agent, backend):
    def script(messages):
        if kind_of(messages) == "flush":
            return "- [1] The user's port is Hamburg."
        if asks_for_summary(messages):
            return SUMMARY
        if messages[-1].text == "do it":
            task = {"description": "my port is Hamburg", "subagent_type": "general-purpose"}
            return calling(("task", task))
        return f"{messages[-1].text[:20]}: done"

    settings = {"memory": {"consolidate": "on_request"}, "compaction": COMPACTING}
    model = ScriptedModel(script=script)
    graph = agent(model, settings=settings)
    after = await graph.ainvoke(user("do it"), thread(), context=KIM)
    assert after["messages"][-2].text == "my port is Hamburg: done"
    assert await transcripts.threads(backend.store, "kim") == ["t1"]
    flushes = [one[-1].text for one in model.requests if kind_of(one) == "flush"]
    assert len(flushes) == 1  # of the user's own words
    assert len(await ledger.entries(backend.store, "kim")) <= 1
    check_pairs(after["messages"])
    state = (await graph.aget_state(thread())).values
    assert state["everlong"]["archived"]["count"] == len(state["messages"])


async def test_an_approval_of_its_own_pauses_and_goes_on(agent):
    note = {"file_path": "/note.txt", "content": "a note"}
    model = ScriptedModel(script=[calling(("write_file", note)), "written"])
    graph = agent(model, interrupt_on={"write_file": True}, settings={"memory": {"enabled": False}})
    paused = await graph.ainvoke(user("note it"), thread(), context=KIM)
    assert paused["__interrupt__"]
    resume = Command(resume={"decisions": [{"type": "approve"}]})
    after = await graph.ainvoke(resume, thread(), context=KIM)
    assert texts(after["messages"])[-1] == "written"
    assert "/note.txt" in after["files"]
