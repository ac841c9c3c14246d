"""Tools by import path: what is found, and what is said where nothing is."""

import sys

import pytest

from everlong.nodes.errors import ToolsError
from everlong.nodes.tool_paths import tools_at
from everlong.nodes.tool_source import ToolSource
from everlong.stores.settings import settings

SHOP = '''
from langchain_core.tools import tool

@tool
def lookup(order: str) -> str:
    """Look an order up."""
    return f"order {order}"

def price(item: str) -> str:
    """Say what an item costs."""
    return f"{item} costs 3"

def memory_save(text: str) -> str:
    """Save in a way of its own."""
    return text

TOOLS = [lookup, price]
NUMBER = 7
MIXED = [lookup, "price"]
'''
OTHER = '''
def lookup(order: str) -> str:
    """Look it up elsewhere."""
    return order
'''


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with a module `shop_tools` and others that are broken."""
    (tmp_path / "shop_tools.py").write_text(SHOP, "utf-8")
    (tmp_path / "other_tools.py").write_text(OTHER, "utf-8")
    (tmp_path / "broken_tools.py").write_text("import no_such_package\n", "utf-8")
    (tmp_path / "failing_tools.py").write_text("1 / 0\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    for name in ("shop_tools", "other_tools", "broken_tools", "failing_tools"):
        sys.modules.pop(name, None)
    settings.cache_clear()


def names(paths):
    return [getattr(one, "name", None) or one.__name__ for one in tools_at(paths, "EVERLONG_TOOLS")]


def test_a_path_names_one_tool_or_a_list_of_some():
    assert names("shop_tools:TOOLS") == ["lookup", "price"]
    assert names(" shop_tools:price , shop_tools:lookup,") == ["price", "lookup"]
    assert names("") == []


def test_a_tool_that_two_paths_name_is_one_tool():
    assert names("shop_tools:TOOLS,shop_tools:price") == ["lookup", "price"]


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ("shop_tools", "got 'shop_tools'"),
        ("shop_tools:", "got 'shop_tools:'"),
        ("nowhere.tools:TOOLS", r"'nowhere.tools:TOOLS', which cannot be imported \(No module"),
        ("broken_tools:TOOLS", "broken_tools:TOOLS.*No module named 'no_such_package'"),
        ("failing_tools:TOOLS", "failing_tools:TOOLS.*ZeroDivisionError"),
        ("shop_tools:NONE", "the module has no 'NONE'"),
        ("shop_tools:NUMBER", "got int '7'"),
        ("shop_tools:MIXED", "got str 'price'"),
        ("shop_tools:TOOLS,other_tools:lookup", "'lookup', in shop_tools:TOOLS and in other_"),
    ],
)
def test_what_is_no_tool_is_named_with_what_to_do(paths, said):
    with pytest.raises(ToolsError, match=f"(?s)^`EVERLONG_TOOLS`: expected .*{said}"):
        tools_at(paths, "EVERLONG_TOOLS")


async def test_what_a_setting_names_is_loaded_when_it_is_needed(monkeypatch, caplog):
    monkeypatch.setenv("EVERLONG_TOOLS", "shop_tools:TOOLS,shop_tools:memory_save")
    settings.cache_clear()
    source = ToolSource()
    assert "shop_tools" not in sys.modules
    box = await source.toolbox()
    assert box.own == {"lookup", "price", "memory_save"}
    assert "takes the place of everlong's own 'memory_save'" in caplog.text
    assert await source.toolbox() is box
    assert (await ToolSource([]).toolbox()).own == frozenset()
