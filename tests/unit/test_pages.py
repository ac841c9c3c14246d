"""Every block of every page is run by a test, or says here why it is not."""

import ast
import re
from collections import Counter

from markdown_blocks import ROOT, Block, blocks, pages

INTEGRATION = "tests/integration/"
DOCUMENTS = f"{INTEGRATION}test_documents.py::test_python_on_a_page_runs"
COMMANDS = f"{INTEGRATION}test_command_pages.py::test_each_command_of_the_pages_does_what_it_shows"
READMES = "tests/unit/test_readmes.py::test_both_readmes_show_the_same_code"
WHEEL = f"{INTEGRATION}test_wheel.py::"
COMPOSING = f"{INTEGRATION}test_composing_docs.py::"
OUTSIDE = f"{INTEGRATION}test_outside_docs.py::"
TOOLS = f"{INTEGRATION}test_tools_from_outside.py::"
DEPLOYMENT = "tests/unit/test_deployment.py::"
AEGRA = "tests/aegra/test_docs.py::"
HERE = "tests/unit/test_pages.py::"
MAKE = f"{HERE}test_each_target_of_make_that_a_page_names_is_there"
BENCHMARKS = f"{HERE}test_each_benchmark_that_a_page_starts_knows_its_options"
PICTURE = f"{HERE}test_the_picture_is_the_one_beside_the_builder"

RUN_WHOLE = {
    ("README.md", "python"): DOCUMENTS,
    ("README.md", "sh"): f"{INTEGRATION}test_command_pages.py"
    "::test_the_commands_of_the_readme_lead_from_one_session_to_the_next",
    ("README.zh-CN.md", "python"): READMES,
    ("README.zh-CN.md", "sh"): READMES,
    ("README.zh-CN.md", ""): READMES,
    ("docs/cli.md", "console"): COMMANDS,
    ("docs/memory.md", "console"): COMMANDS,
    ("docs/composing.md", "python"): f"{COMPOSING}test_every_snippet_runs_after_the_others",
    ("docs/guides.md", "python"): DOCUMENTS,
    ("docs/moving.md", "python"): DOCUMENTS,
    ("docs/serving.md", "python"): DOCUMENTS,
    ("docs/tools.md", "python"): f"{OUTSIDE}test_the_snippets_of_the_page_run_one_after_the_other",
    ("docs/scale.md", "sh"): BENCHMARKS,
    ("docs/search.md", "sh"): BENCHMARKS,
    ("docs/aegra.md", "python"): f"{AEGRA}test_the_client_of_the_guide_talks_and_deletes",
}
"""Tests that take each block of a page in a language, so that a new one is run at once."""

COUNTED = {
    ("README.md", ""): {PICTURE: 1},
    ("AGENTS.md", ""): {PICTURE: 1},
    ("CONTRIBUTING.md", "sh"): {MAKE: 1},
    ("docs/aegra.md", "sh"): {
        "not run: needs Docker": 1,
        f"{AEGRA}test_the_guide_starts_a_server_as_the_tests_do": 1,
        "tests/integration/test_forget_user.py": 1,
    },
    ("docs/benchmarks.md", ""): {"not run: what hours of benchmarks printed": 1},
    ("docs/cli.md", ""): {
        f"{INTEGRATION}test_cli_chat.py::test_memory_and_compaction_are_shown_as_they_happen": 1
    },
    ("docs/composing.md", "python no-run"): {
        f"{COMPOSING}test_what_is_not_run_there_is_run_elsewhere": 2
    },
    ("docs/composing.md", "sh"): {f"{WHEEL}test_each_extra_that_a_page_names_is_there": 1},
    ("docs/deploying.md", "python"): {
        f"{DEPLOYMENT}test_the_token_that_the_how_to_makes_is_accepted": 1,
        "not run: the address is nobody's; tests/bearer_tokens.py sends this header": 1,
    },
    ("docs/deploying.md", "sh"): {"not run: needs Docker and a licence key": 1},
    ("docs/guides.md", "sh"): {
        f"{WHEEL}test_what_is_installed_is_a_command_a_library_and_typed": 1,
        f"{WHEEL}test_a_folder_with_nothing_but_the_guides_file_is_served": 1,
    },
    ("docs/guides.md", "json"): {
        f"{WHEEL}test_a_folder_with_nothing_but_the_guides_file_is_served": 1
    },
    ("docs/retention.md", "sql"): {
        f"{INTEGRATION}test_documents.py"
        "::test_the_settings_of_the_tables_that_retention_shows_are_taken": 1
    },
    ("docs/scale.md", "sql"): {
        f"{INTEGRATION}test_partitioned.py"
        "::test_a_conversation_goes_on_when_its_tables_were_partitioned": 1
    },
    ("docs/serving.md", "sh"): {MAKE: 1},
    ("docs/tools.md", "json"): {f"{OUTSIDE}test_the_pages_servers_are_read": 1},
    ("docs/tools.md", "sh"): {f"{OUTSIDE}test_each_setting_that_the_pages_name_is_there": 1},
    ("examples/composing/README.md", "sh"): {f"{COMPOSING}test_an_example_says_what_it_is_for": 1},
    ("examples/mcp_tools/README.md", "sh"): {
        f"{TOOLS}test_the_worked_example_does_what_its_page_says": 1,
        f"{TOOLS}test_the_chat_of_the_examples_page_goes_as_it_says": 1,
    },
    ("examples/mcp_tools/README.md", ""): {
        f"{TOOLS}test_the_worked_example_does_what_its_page_says": 1
    },
}
"""Tests that take certain blocks, and reasons; a block more has to be added here by hand."""


def found() -> Counter[tuple[str, str]]:
    return Counter((one.page, one.language) for one in every_block())


def every_block() -> list[Block]:
    return [one for page in pages() for one in blocks(page)]


def test_every_block_of_every_page_is_run_or_says_why_not():
    by_hand = {place: sum(kinds.values()) for place, kinds in COUNTED.items()}
    there = found()
    assert {place: n for place, n in there.items() if place not in RUN_WHOLE} == by_hand
    assert set(RUN_WHOLE) <= set(there)


def test_no_fence_is_left_open():
    for page in pages():
        fences = re.findall(r"^ *```", page.read_text("utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(blocks(page)), page.name


def test_the_tests_that_run_the_blocks_are_there():
    named = {*RUN_WHOLE.values(), *(one for kinds in COUNTED.values() for one in kinds)}
    for one in named:
        if one.startswith("not run: "):
            continue
        path, _, name = one.partition("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        functions = {node.name for node in tree.body if hasattr(node, "name")}
        assert not name or name in functions, one


def test_every_page_that_a_page_links_to_is_there_and_so_is_its_heading():
    for page in pages():
        text = page.read_text("utf-8")
        for target, _, heading in re.findall(r"\]\((?!\w+:)([^)#\s]*)(#([^)\s]+))?\)", text):
            there = (page.parent / target) if target else page
            assert there.exists(), f"{page.name}: {target}"
            if heading:
                titles = re.findall(r"^#+ (.+)$", there.read_text("utf-8"), re.MULTILINE)
                assert heading in {anchor(one) for one in titles}, f"{page.name}: #{heading}"


def anchor(title: str) -> str:
    """Return what a heading is linked by."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_each_target_of_make_that_a_page_names_is_there():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set()
    for one in every_block():
        if one.language in ("sh", "console"):
            for words in re.findall(r"^make ([^#\n]+)", one.text, re.MULTILINE):
                named |= {word for word in words.split() if re.fullmatch(r"[a-z-]+", word)}
    assert {"demo", "test", "dev"} <= named
    assert named <= targets


def test_each_benchmark_that_a_page_starts_knows_its_options():
    started = [
        line.partition("#")[0]
        for one in every_block()
        if one.language == "sh"
        for line in one.text.splitlines()
        if "tests/benchmarks/" in line
    ]
    assert len(started) >= 4
    for line in started:
        _, path, *options = line.split()
        source = (ROOT / path).read_text("utf-8")
        missing = [one for one in options if one.startswith("--") and f'"{one}"' not in source]
        assert missing == [], line


def test_the_picture_is_the_one_beside_the_builder():
    picture = ast.get_docstring(ast.parse((ROOT / "graph" / "agent.py").read_text("utf-8"))) or ""
    for name in ("README.md", "AGENTS.md"):
        (block,) = [one for one in blocks(ROOT / name) if not one.language]
        drawn = [line.strip() for line in block.text.split("\n\n")[0].splitlines()]
        assert [line for line in drawn if line not in picture] == [], name
