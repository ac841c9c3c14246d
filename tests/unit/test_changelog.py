"""CHANGELOG.md names what is stored, and its newest release is the version of the package."""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields

from everlong.graph.agent import build
from everlong.graph.memory import graph as memory_graph
from everlong.nodes.state import State
from markdown_blocks import ROOT

TEXT = (ROOT / "CHANGELOG.md").read_text("utf-8")
STORED = TEXT.partition("### Stored data")[2].partition("\n## ")[0]
NAMED = set(re.findall(r"`([^`\n]+)`", STORED))
CODE = [one for folder in ("stores", "nodes", "graph") for one in (ROOT / folder).glob("*.py")]


def test_each_channel_and_each_node_is_named():
    nodes = {*build().nodes, *memory_graph.get_graph().nodes} - {"__start__", "__end__"}
    assert {one.name for one in fields(State)} | nodes <= NAMED


def test_each_table_of_ours_is_named():
    made = "".join(one.read_text("utf-8") for one in CODE)
    tables = set(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", made))
    assert "checkpoint_messages" in tables
    assert tables <= NAMED


def test_each_kind_of_record_is_named():
    kinds = {kind for path in CODE for kind in kinds_in(ast.parse(path.read_text("utf-8")))}
    assert {"transcripts", "work", "tombstones"} <= kinds
    assert kinds <= NAMED


def kinds_in(tree: ast.Module) -> Iterator[str]:
    """Yield what stands after the user in `space(user_id, "<kind>", ...)`."""
    named = {
        target.id: one.value.value
        for one in tree.body
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant)
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "space":
            kind = one.args[1] if len(one.args) > 1 else None
            if isinstance(kind, ast.Constant):
                yield str(kind.value)
            elif isinstance(kind, ast.Name) and kind.id in named:
                yield str(named[kind.id])


def test_the_newest_release_is_the_packages_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    released = re.findall(r"^## \[(\d[^\]]*)\] - \d{4}-\d\d-\d\d$", TEXT, re.MULTILINE)
    assert released[0] == project["version"]
