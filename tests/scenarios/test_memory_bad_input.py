"""Bad input to memory: odd user ids, broken characters, and a store that goes down in a call."""

import pytest
from langchain_core.messages import ToolMessage

from everlong.nodes.consolidation import consolidation
from everlong.nodes.errors import InvalidInputError
from everlong.nodes.run import Run
from everlong.stores import erasure, ledger, memory, pages, transcripts
from everlong.stores.namespaces import ROOT, label
from everlong.stores.records import all_items
from failing_store import FailingStore
from scripted_model import ScriptedModel, calling, kind_of

ON = {"enabled": True, "consolidate": "on_request"}
FACT = "The code word is heron."
IDS = {
    "dots": "a.b.c@x.example",
    "only dots": "..",
    "slashes": "org/team/../kim\\b",
    "spaces": " kim berg ",
    "Han": "用户·张三",
    "Cyrillic": "Ким Берг",
    "Hindi": "किम",
    "Arabic": "كيم",
    "emoji": "kim🦩",
    "signs": "kim%_*?'\"~:;|<>#",
    "200 letters": "u" * 200,
    "200 dots": "." * 200,
    "200 Han": "用" * 200,
}


def living():
    """A model that remembers, searches, saves and forgets as it is told to."""
    tools = {
        "search": ("memory_search", {"query": "code word"}),
        "read": ("memory_get", {"path": "MEMORY.md"}),
        "look back": ("session_search", {"query": "code word", "everywhere": True}),
        "save: I like tea": ("memory_save", {"content": "Likes tea"}),
        "forget the code word": ("memory_forget", {"query": "code word"}),
    }

    def script(messages):
        last, kind = messages[-1], kind_of(messages)
        if kind == "flush":
            return f"- {FACT} [1]" if "heron" in last.text else "NO_REPLY"
        if kind == "consolidation":
            return f"# Words\n- {FACT}"
        if isinstance(last, ToolMessage):
            return "Done."
        called = tools.get(last.text.partition(" - ")[0])
        return calling(called, prefix=last.id) if called else "Noted."

    return ScriptedModel(script=script)


def run_of(talk):
    return Run(
        context=talk.context,
        user_id=talk.context.user_id,
        thread_id="",
        store=talk.store,
        instant=talk.clock().isoformat(),
        tell=lambda _: None,
    )


async def told(talk, text):
    await talk.say(text)
    return next(m.text for m in reversed(await talk.messages()) if isinstance(m, ToolMessage))


@pytest.mark.parametrize("user_id", IDS.values(), ids=IDS)
async def test_a_whole_life_under_any_user_id(converse, backend, user_id):
    """Flush, consolidate, search, read, save, forget one thing, and the user altogether."""
    talk = converse(model=living(), user_id=user_id, memory=ON, thread_id="t")
    await talk.say(FACT)
    await consolidation(run_of(talk))
    assert (await memory.read(talk.store, user_id)).text == f"# Words\n- {FACT}"
    assert FACT in await told(talk, "search")
    assert "Line 2 comes from memory/2026-03-09.md#3, sessions/t#0" in await told(talk, "read")
    assert "Source: sessions/t#0" in await told(talk, "look back")
    assert "Saved 1 fact" in await told(talk, "save: I like tea")
    assert "Forgotten" in await told(talk, "forget the code word")
    kept = await all_items(backend.store, (ROOT, label(user_id)))
    assert not any("heron" in str(item.value) for item in kept if item.namespace[2] != "tombstones")
    assert (await pages.document_text(talk.store, user_id)).endswith("\n- Likes tea")
    await erasure.forget_user(
        backend.store, user_id, saver=backend.saver, at="2026-03-09T13:00:00Z"
    )
    assert await all_items(backend.store, (ROOT, label(user_id))) == []


@pytest.mark.parametrize("user_id", ["u" * 801, "🦩" * 200, "." * 400])
async def test_an_id_that_is_too_long_is_refused_before_any_model_call(converse, backend, user_id):
    model = living()
    talk = converse(model=model, user_id=user_id, memory=ON)
    with pytest.raises((InvalidInputError, ValueError), match="at most 800 bytes"):
        await talk.graph.ainvoke(
            {"messages": [{"role": "user", "content": FACT}]}, talk.config, context=talk.context
        )
    assert model.requests == []


@pytest.mark.parametrize("sign", ["\x00", "\ud83d"], ids=["NUL", "lone surrogate"])
async def test_what_no_store_holds_is_replaced_in_every_entry(converse, sign):
    fact = f"Knows he{sign}ron."

    def script(messages):
        last, kind = messages[-1], kind_of(messages)
        if kind == "flush":
            return f"- {fact} [1]" if "Say" in last.text else "NO_REPLY"
        if kind == "consolidation":
            return f"# Words{sign}\n- {fact}"
        if isinstance(last, ToolMessage):
            return "Done."
        saved = calling(("memory_save", {"content": f"Saves {fact}"}))
        return saved if "save" in last.text else "Noted."

    talk = converse(model=ScriptedModel(script=script), memory=ON)
    await talk.say(f"Say he{sign}ron.", "save it")
    texts = [one.text for entry in await ledger.entries(talk.store, "kim") for one in entry.facts]
    assert sorted(texts) == ["Knows he\ufffdron.", "Saves Knows he\ufffdron."]
    await consolidation(run_of(talk))
    document = await pages.document_text(talk.store, "kim")
    assert document.startswith("# Words\ufffd\n- Knows he\ufffdron.")


@pytest.mark.parametrize("asked", ["search", "read", "save: I like tea", "forget the code word"])
async def test_a_tool_whose_store_is_down_fails_alone_and_the_flush_is_made_up(
    backend, converse, asked
):
    """The call goes on with an error for a result; what was said is flushed with the next one."""
    model, failing = living(), FailingStore(backend.store)
    plain = model.script

    def going_down(messages):
        if kind_of(messages) == "answer" and not isinstance(messages[-1], ToolMessage):
            failing.fail_writes = failing.fail_reads = OSError("store is down")
        return plain(messages)

    model.script = going_down
    talk = converse(model=model, memory=ON)
    await talk.say("hello")
    talk.use_store(failing)
    assert await talk.say(f"{asked} - {FACT}") == "Done."
    result = next(m for m in await talk.messages() if isinstance(m, ToolMessage))
    assert "store is down" in result.text
    assert result.status == "error"
    model.script = plain
    failing.fail_writes = failing.fail_reads = None
    await talk.say("hello again")
    facts = [fact.text for one in await ledger.entries(backend.store, "kim") for fact in one.facts]
    assert facts == [FACT]
    entries = await transcripts.read(backend.store, "kim", "thread-1")
    assert [one.message_id for one in entries] == [m.id for m in await talk.messages()]


async def test_a_store_that_goes_down_before_the_flush_costs_no_answer_and_no_fact(
    backend, converse, caplog
):
    model, failing = living(), FailingStore(backend.store)
    plain = model.script

    def going_down(messages):
        failing.fail_writes = failing.fail_reads = OSError("store is down")
        return plain(messages)

    model.script = going_down
    talk = converse(model=model, memory=ON)
    talk.use_store(failing)
    assert await talk.say(FACT) == "Noted."
    assert "store is down" in caplog.text
    assert await ledger.entries(backend.store, "kim") == []
    model.script = plain
    failing.fail_writes = failing.fail_reads = None
    await talk.say("hello again")
    facts = [fact.text for one in await ledger.entries(backend.store, "kim") for fact in one.facts]
    assert facts == [FACT]
