"""R46-R48: the guidance and the tools' own texts name only tools that are on, and are short."""

import re
from itertools import chain, combinations

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool

from everlong.nodes.guidance import READ_STORED, guidance
from everlong.nodes.tokens import estimate_text, estimate_tools
from everlong.nodes.toolbox import MEMORY, READING, SESSIONS

OURS = (*READING, *MEMORY, *SESSIONS)
NAMES = [*(one.name for one in OURS), READ_STORED]
NAMED = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")


def test_each_choice_of_tools_is_given_guidance_on_no_other():
    for on in chain.from_iterable(combinations(NAMES, size) for size in range(len(NAMES) + 1)):
        text = guidance(on)
        assert set(NAMED.findall(text)) <= set(on), on
        assert bool(text) == bool(set(on) - {"list_files"}), on


def test_all_guidance_is_short():
    assert estimate_text(guidance(NAMES)) < 200


@pytest.mark.parametrize("tool", OURS, ids=lambda tool: tool.name)
def test_a_tool_says_in_one_line_what_it_does_and_names_no_other(tool):
    schema = convert_to_openai_tool(tool)["function"]
    fields = schema["parameters"]["properties"]
    assert len(schema["description"]) <= 100
    assert "\n" not in schema["description"]
    assert all(len(one["description"]) <= 100 for one in fields.values())
    texts = [schema["description"], *(one["description"] for one in fields.values())]
    assert not {name for text in texts for name in NAMED.findall(text)} & set(NAMES)
    assert not {"user_id", "thread_id", "runtime", "config", "store"} & set(fields)


def test_the_tools_take_little_of_each_request():
    assert estimate_tools([convert_to_openai_tool(tool) for tool in OURS]) < 1_200
