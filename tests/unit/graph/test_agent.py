"""The drawing, the schema, and what a call costs in supersteps."""

import json
import subprocess
import sys
from dataclasses import fields
from typing import get_type_hints

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from everlong.graph.agent import build, graph
from everlong.nodes.context import Context
from everlong.nodes.state import State, Update
from scripted_model import ScriptedModel, calling


def test_the_drawing_is_the_agreed_one(golden):
    golden("agent.mmd", graph.get_graph().draw_mermaid(with_styles=False))


def test_the_assistants_form_is_the_agreed_one(golden):
    schema = graph.get_context_jsonschema()
    golden("context.json", json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True))


def test_every_setting_has_a_description():
    schema = graph.get_context_jsonschema()
    sections = [schema, *schema["$defs"].values()]
    bare = [
        name
        for section in sections
        for name, field in section["properties"].items()
        if not field.get("description")
    ]
    assert bare == []


def test_callers_see_only_what_they_may_send():
    assert sorted(graph.get_input_jsonschema()["properties"]) == ["messages", "request"]


def test_what_nodes_may_write_is_what_the_state_holds():
    assert sorted(get_type_hints(Update)) == sorted(field.name for field in fields(State))


@tool
def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing in {where}"


async def supersteps(script, **more):
    compiled = build(tools=[look]).compile(checkpointer=InMemorySaver(), store=InMemoryStore())
    context = {"user_id": "kim", "model": ScriptedModel(script=script)} | more
    context.setdefault("memory", {"enabled": False})
    config = {"configurable": {"thread_id": "t"}}
    given = {"messages": [HumanMessage("hello")]}
    steps = [part async for part in compiled.astream(given, config, context=context)]
    return [next(iter(step)) for step in steps if "_run_call" not in step]


async def test_a_plain_call_is_three_supersteps():
    assert await supersteps(["hi"]) == ["open_call", "reason", "flush_memory"]


async def test_a_tool_round_adds_two():
    steps = await supersteps([calling(("look", {"where": "here"})), "nothing"])
    assert steps == ["open_call", "reason", "tools", "reason", "flush_memory"]


async def test_with_nothing_to_keep_even_flush_memory_is_passed_by():
    assert await supersteps(["hi"], transcript=False) == ["open_call", "reason"]


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ValueError, match="different names"):
        build(tools=[look, look])


def test_a_plain_call_imports_nothing_that_it_does_not_use():
    code = (
        "import sys, everlong.graph.agent, everlong.nodes.offline\n"
        "heavy = ['langchain_openai', 'openai', 'psycopg', 'typer', 'tiktoken', 'mcp']\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_context_takes_a_plain_dict_for_each_section():
    context = Context.model_validate({"user_id": "kim", "compaction": {"keep_messages": 3}})
    assert context.compaction.keep_tokens == 0
