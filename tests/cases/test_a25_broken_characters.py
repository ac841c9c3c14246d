"""A25: NUL and broken emoji through every sink, on Postgres."""

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool

from everlong.graph.runtime import open_agent
from everlong.nodes.context import Context
from everlong.nodes.errors import InvalidInputError
from everlong.stores import files, ledger, memory, pages, transcripts
from everlong.stores.text import clean_text
from given import case
from scripted_model import ScriptedModel, calling, kind_of

GIVEN = case("A25")
RESULTS = {one["id"]: one["content"] for one in GIVEN["results"]}
ALSO = GIVEN["also"]
THREAD = {"configurable": {"thread_id": "t1"}}
FACT = f"Knows {ALSO['human'].removeprefix('my ')}"
MENDED = clean_text(FACT)


@tool
def result(q: str) -> str:
    """Return one of the case's results, and what it was asked for."""
    asked.append(q)
    return RESULTS[q.partition(" ")[0]]


asked: list[str] = []


def script(messages):
    last, kind = messages[-1], kind_of(messages)
    if kind == "flush":
        return f"- {FACT} [1]" if "my code" in last.text else "NO_REPLY"
    if kind == "consolidation":
        return f"# Facts\n- {FACT}\n- 5\ud83d"
    if kind == "summary":
        return "SUMMARY of a\x00b \ud83d"
    if isinstance(last, ToolMessage):
        return f"It says a\x00b \ud83d and {len(last.text)} more."
    if last.text in RESULTS:
        return calling(("result", {"q": f"{last.text} {ALSO['tool_args']['q']}"}), prefix=last.id)
    if last.text.startswith("read "):
        return calling(("read_file", {"path": last.text.removeprefix("read ")}), prefix=last.id)
    if last.text == "save":
        return calling(("memory_save", {"content": f"{FACT} again"}), prefix=last.id)
    return AIMessage("Noted a\x00b.")


@pytest.fixture
async def agent(dsn):
    asked.clear()
    async with open_agent(dsn=dsn, tools=[result]) as opened:
        opened.context = Context.model_validate(
            {
                "user_id": "kim",
                "model": ScriptedModel(script=script),
                "memory": {"enabled": True, "consolidate": "on_request"},
                "eviction": {"over_chars": 10_000},
            }
        )
        yield opened


async def say(agent, *texts, **given):
    config = THREAD | {"metadata": ALSO["run_metadata"]}
    for text in texts:
        messages = {"messages": [{"role": "user", "content": text}]}
        await agent.ainvoke(messages | given, config, context=agent.context)
    return (await agent.aget_state(THREAD)).values["messages"]


def spoilt(text):
    return text != clean_text(text)


async def test_every_turn_completes_and_every_sink_shows_the_same_text(agent):
    """1, 2: checkpoint, ledger, MEMORY.md, eviction, archive, request, read_file."""
    messages = await say(agent, ALSO["human"], *RESULTS, "save")
    store, model = agent.store, agent.context.model
    assert messages[0].text == clean_text(ALSO["human"])
    assert [one for one in messages if spoilt(one.text) or spoilt(str(one))] == []
    answers = [one for request in model.requests for one in request if kind_of(request) == "answer"]
    assert not any(spoilt(one.text) for one in answers)
    assert asked == [f"{name} {clean_text(ALSO['tool_args']['q'])}" for name in RESULTS]
    results = [one.text for one in messages if isinstance(one, ToolMessage)]
    assert results[:2] == [clean_text(RESULTS["n1"]), clean_text(RESULTS["n2"])]
    (file,) = await files.list_paths(store, "kim", files.EVICTED)
    assert file.path in results[2]
    assert await files.read_text(store, "kim", file.path) == clean_text(RESULTS["n3"])
    facts = [fact.text for one in await ledger.entries(store, "kim") for fact in one.facts]
    assert facts == [MENDED, f"{MENDED} again"]
    kept = await transcripts.read(store, "kim", "t1")
    assert [one.message_id for one in kept] == [one.id for one in messages]
    assert kept[0].text == clean_text(ALSO["human"])
    page = await say(agent, f"read {file.path}")
    assert page[-2].text.startswith(clean_text(RESULTS["n3"])[:1_000])
    assert [one.text for one in page if isinstance(one, ToolMessage)][:5] == results[:5]


async def test_what_is_whole_is_unchanged_character_by_character(agent):
    """3: a backslash and `u0000` as text, and an emoji of several code points."""
    messages = await say(agent, "n4", "n5")
    results = [one.text for one in messages if isinstance(one, ToolMessage)]
    assert results == [RESULTS["n4"], RESULTS["n5"]]
    kept = await transcripts.read(agent.store, "kim", "t1")
    assert [one.text for one in kept if one.role == "tool"] == results


async def test_a_consolidation_and_a_summary_are_mended_too(agent):
    await say(agent, ALSO["human"], "two", "three")
    config = THREAD
    await agent.ainvoke({"request": {"consolidate": True}}, config, context=agent.context)
    document = await memory.read(agent.store, "kim")
    assert document.text == f"# Facts\n- {MENDED}"
    assert await pages.search(agent.store, "kim", "code") != []
    small = agent.context.model_copy(
        update={"compaction": agent.context.compaction.model_copy(update={"keep_messages": 2})}
    )
    await agent.ainvoke({"request": {"compact": True}}, config, context=small)
    messages = (await agent.aget_state(THREAD)).values["messages"]
    assert "SUMMARY of a\ufffdb \ufffd" in messages[0].text


async def test_a_thread_id_with_nul_is_refused_with_a_clear_error(agent):
    """4."""
    config = {"configurable": {"thread_id": ALSO["thread_id"]}}
    with pytest.raises(InvalidInputError, match=r"`thread_id`: expected .*without NUL"):
        await agent.ainvoke(
            {"messages": [{"role": "user", "content": "hello"}]}, config, context=agent.context
        )
    assert agent.context.model.requests == []
