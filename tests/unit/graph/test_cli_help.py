"""Every command, option and argument says what it is for, and docs/cli.md shows each."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from everlong.graph.cli import app

DOCS = (Path(__file__).parents[3] / "docs" / "cli.md").read_text("utf-8")
EXAMPLES = re.findall(r"^\$ (?:.*\| )?everlong (.+)$", DOCS, re.MULTILINE)
SUMMARY_CHARS = 40


def commands(group: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*above, name))
        else:
            yield (*above, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))
by_name = pytest.mark.parametrize(
    ("name", "command"), COMMANDS.items(), ids=[" ".join(name) for name in COMMANDS]
)


def test_the_commands_are_the_agreed_ones():
    assert sorted(" ".join(name) for name in COMMANDS) == [
        "chat",
        "compactions",
        "consolidate",
        "demo",
        "doctor",
        "forget-user",
        "graph",
        "memory clear-document",
        "memory correct",
        "memory diff",
        "memory export",
        "memory forget",
        "memory history",
        "memory restore",
        "memory review",
        "memory search",
        "memory show",
        "sweep",
        "transcript",
        "worker",
    ]


@by_name
def test_a_command_and_each_of_its_parameters_has_help(name, command):
    assert command.help
    assert len(command.get_short_help_str(200)) <= SUMMARY_CHARS
    bare = [one.name for one in command.params if not getattr(one, "help", None)]
    assert bare == []


@by_name
def test_a_command_has_the_common_options_that_it_uses(name, command):
    options = {opt for one in command.params for opt in one.opts}
    assert "--debug" in options
    assert ("--dsn" in options) == (name != ("graph",))


@by_name
def test_the_manual_shows_a_command_with_all_its_options(name, command):
    heading = f"## `everlong {' '.join(name)}"
    assert heading in DOCS
    section = DOCS.partition(heading)[2].partition("\n## `")[0]
    everywhere = DOCS.partition("\n## `")[0]
    missing = [
        opt
        for one in command.params
        for opt in one.opts
        if opt.startswith("--") and opt not in section + everywhere
    ]
    assert missing == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_manual_can_be_run(example):
    words = shlex.split(re.split(r" [<>|&] ?", example)[0])
    found = typer.main.get_command(app)
    root = {opt for one in found.params for opt in one.opts}
    while hasattr(found, "commands"):
        at = next(i for i, word in enumerate(words) if word in found.commands)
        found = found.commands[words.pop(at)]
    known = root | {opt for one in found.params for opt in one.opts} | {"-h", "--help"}
    given = [word for word in words if word.startswith("-") and word != "-"]
    assert [word for word in given if word not in known] == []
