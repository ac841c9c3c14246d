"""The switches of memory (R48), in both flush modes: what each stops, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from background import PORT, Told, drained, flushes
from everlong.stores import ledger, memory
from scripted_model import ScriptedModel, calling

MODES = ["inline", "background"]


@dataclass(frozen=True, kw_only=True)
class Switched:
    """What one combination of R48's switches offers, injects and writes."""

    memory: Mapping[str, Any]
    offered: bool
    flushed: int
    """Flushes in four calls, of which one compacts."""
    saved: bool
    document: bool
    """MEMORY.md is rewritten by itself."""
    compaction: Mapping[str, Any] = field(default_factory=dict)


SWITCHES = {
    "all on": Switched(memory={}, offered=True, flushed=4, saved=True, document=True),
    "tools off": Switched(
        memory={"tools": False}, offered=False, flushed=4, saved=False, document=True
    ),
    "never": Switched(
        memory={"flush": "never"}, offered=True, flushed=1, saved=True, document=True
    ),
    "never, nor before a compaction": Switched(
        memory={"flush": "never"},
        compaction={"flush_before": False},
        offered=True,
        flushed=0,
        saved=True,
        document=True,
    ),
    "throttled": Switched(memory={"flush": 60}, offered=True, flushed=2, saved=True, document=True),
    "on request": Switched(
        memory={"consolidate": "on_request"}, offered=True, flushed=4, saved=True, document=False
    ),
    "tools off, never": Switched(
        memory={"tools": False, "flush": "never"},
        offered=False,
        flushed=1,
        saved=False,
        document=True,
    ),
    "memory off": Switched(
        memory={"enabled": False}, offered=False, flushed=0, saved=False, document=False
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SWITCHES)
async def test_each_switch_stops_what_it_says_and_nothing_else(converse, name, mode):
    case = SWITCHES[name]

    def script(messages):
        if messages[-1].text == "save it" and case.offered:
            return calling(("memory_save", {"content": "Likes tea."}))
        return Told().answer(messages, (PORT,))

    model = ScriptedModel(script=script)
    talk = converse(
        model=model,
        memory={"enabled": True, "flush_mode": mode} | dict(case.memory),
        compaction={"trigger_messages": 7, "keep_messages": 2} | dict(case.compaction),
    )
    await talk.say("Exports only through Shanghai.", "save it", "three", "four")
    await drained(talk)
    entries = await ledger.entries(talk.store, "kim")
    offered = {tool for names in model.tools for tool in names}
    assert ("memory_search" in offered) == ("session_search" in offered) == case.offered
    assert {"read_file", "list_files"} <= offered
    assert len(flushes(model)) == case.flushed
    assert any(entry.kind == "flush" for entry in entries) == bool(case.flushed)
    assert any(entry.kind == "save" for entry in entries) == case.saved
    assert (await memory.read(talk.store, "kim") is not None) == case.document
    next_session = converse(
        model=model,
        memory={"enabled": True, "flush_mode": mode} | dict(case.memory),
        thread_id="next",
    )
    await next_session.say("hello")
    shown = any("Shanghai" in m.text or "tea" in m.text for m in next_session.last_request)
    assert shown == (case.document or case.saved)


async def test_saved_facts_over_the_limit_are_consolidated_before_the_gap_has_passed(converse):
    def script(messages):
        if messages[-1].text.startswith("save"):
            return calling(("memory_save", {"content": messages[-1].text.removeprefix("save ")}))
        return Told().answer(messages, (PORT,))

    model = ScriptedModel(script=script)
    talk = converse(model=model, memory={"enabled": True, "document_tokens": 100})
    await talk.say("Exports only through Shanghai.")
    first = await memory.read(talk.store, "kim")
    await talk.say("save I like tea.", "fine")
    assert await memory.read(talk.store, "kim") == first
    lines = "\n".join(f"I like the tea from garden {name} best of all." for name in "abcdefghijk")
    await talk.say(f"save {lines}", "fine")
    assert (await memory.read(talk.store, "kim")).version != first.version
