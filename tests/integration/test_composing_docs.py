"""docs/composing.md is tried: its snippets run as they stand, its examples say what they show."""

import ast
import importlib.util
import inspect
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from everlong.nodes.context import Context

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "composing.md"
EXAMPLES = ROOT / "examples" / "composing"
SNIPPET = re.compile(r"^```python( no-run)?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SAID = {
    "supervisor": [
        "Shanghai is open",
        "You said: my order is A-17.",
        "holds 10 messages, the agent 6",
    ],
    "side_by_side": ["From memory:", "Shanghai", "Source: MEMORY.md#", "t1|sales, t2|support"],
    "asked_by_a_node": ["Confirmed.", "You said: my order is A-17."],
    "nodes_in_my_graph": ["[eviction]", "read the rest with read_sto", "[compaction.finished]"],
    "langchain_agent": ["[compaction.finished]", "my order is A-17", "Source: MEMORY.md#"],
    "deep_agent": ["my order is A-17", "files: /note.txt"],
}


def snippets() -> list[tuple[int, bool, str]]:
    """Return each snippet with its line, and whether it is to be run."""
    text = PAGE.read_text("utf-8")
    found = SNIPPET.finditer(text)
    return [(text[: one.start()].count("\n") + 2, not one[1], one[2]) for one in found]


async def test_every_snippet_runs_after_the_others():
    module = types.ModuleType("composing")
    names: dict[str, Any] = vars(module)
    sys.modules["composing"] = module  # where dataclasses look their annotations up
    run = 0
    for line, is_run, source in snippets():
        compiled = compile(source, f"{PAGE}:{line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if is_run:
            running = eval(compiled, names)  # noqa: S307 - our own page
            if inspect.iscoroutine(running):
                await running
            run += 1
    assert run >= 10


def test_what_is_not_run_there_is_run_elsewhere():
    left_out = "".join(source for _, is_run, source in snippets() if not is_run)
    elsewhere = (Path(__file__).parent / "test_remote_graph.py").read_text("utf-8")
    for call in ("RemoteGraph(", "remote_node(", "remote.ainvoke("):
        assert call in left_out
        assert call in elsewhere


def test_the_tables_name_settings_that_there_are():
    known = set(Context.model_fields)
    for section in ("compaction", "eviction", "memory"):
        fields = Context.model_fields[section].annotation.model_fields
        known |= set(fields)
        for name, one in fields.items():
            inner = getattr(one.annotation, "model_fields", {})
            known |= {name, *inner}
    pages = PAGE.read_text("utf-8") + (ROOT / "docs" / "moving.md").read_text("utf-8")
    rows = re.findall(r"^\|.*\|.*\|$", pages, re.MULTILINE)
    assert len(rows) > 40
    for row in rows:
        here = row.split("|")[2]
        for name in re.findall(r"`([a-z]+(?:_[a-z]+)+)(?:: [^`]*)?`", here):
            assert name in known | {
                "compaction_node",
                "eviction_node",
                "memory_node",
                "read_stored",
                "session_search",
                "session_history",
            }, f"{name} in {row}"


@pytest.mark.parametrize("name", SAID)
async def test_an_example_says_what_it_is_for(name, capsys):
    await example(name).main()
    printed = capsys.readouterr().out
    assert [part for part in SAID[name] if part not in printed] == []


async def test_the_remote_example_asks_the_agent_there(langgraph_server, capsys):
    await example("remote_agent").main(langgraph_server.url)
    assert "my order is A-17" in capsys.readouterr().out


def test_every_example_is_tried_and_listed():
    names = {path.stem for path in EXAMPLES.glob("*.py")}
    assert names == {*SAID, "remote_agent"}
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    assert [name for name in names if f"`{name}.py`" not in listed] == []


def example(name: str) -> Any:
    """Load an example as a module of its own, with nothing kept from a run before."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
