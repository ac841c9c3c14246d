"""What README, docs/cli.md and docs/memory.md show at a prompt does what it says, in that order."""

import json
import re
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli_process import Done, everlong
from markdown_blocks import ROOT, blocks_in

TOLD = "Remember that our exports go through Shanghai port only, customer code ALPHA."
TOOLS = '''
from langgraph.types import interrupt

def send_mail(to: str) -> str:
    """Send the price list."""
    return f"mail to {to}: " + interrupt(f"Send the mail to {to}?")

TOOLS = [send_mail]
'''
AS_OFFLINE = {
    "Send the price list to ops@example.test.": 'Call send_mail {"to": "ops@example.test"}.'
}
"""What a language model understands, as the offline model does."""
ASKS = re.compile(r"everlong (?:memory restore|memory forget|forget-user) ")
"""Asks a person, where there is a terminal; here `--yes` answers."""
ELSEWHERE = {
    "everlong demo": "test_cli.py, and CI by itself",
    "everlong demo --json > demo.json": "test_cli.py",
    "everlong memory correct --user kim": "an editor in a terminal: test_cli_terminal.py",
}
SHOWN_ELSEWHERE = {
    "everlong forget-user kim",  # asks in a terminal
    "everlong compactions --user kim --thread orders",  # a narrow terminal; here is a table
    "everlong sweep",  # here is nothing old
    "everlong worker --once",  # here is nothing left: a chat does its own
}
ASKED = re.compile(r"›|\[y/N\]|^y$")
DAY = "2026-03-01"
IDS = (
    ("5d1c", "everlong memory history --user kim", "version", 0),
    ("0b92", "everlong memory history --user kim", "version", -1),
    ("03f2", "everlong memory review --user kim", "id", 0),
    ("ff0db5c34a090988#1", "everlong memory review --user gil", "id", 0),
    ("698bf499ae75a669", "everlong compactions -u kim -t orders", "id", 0),
    ("698b", "everlong compactions -u kim -t orders", "id", 0),
)
"""An id of the pages; which command lists those of this database, by what name, and which it is."""
PREPARES = re.compile(r"make |\. \.venv")
"""What CI does by itself, or a person once."""
COMPACTING = {
    "EVERLONG_COMPACTION__TRIGGER_MESSAGES": "6",
    "EVERLONG_COMPACTION__KEEP_MESSAGES": "2",
}
AT_ONCE = {"EVERLONG_MEMORY__CONSOLIDATE_EVERY_MINUTES": "0"}
LATER = {"EVERLONG_MEMORY__CONSOLIDATE": "on_request"}


@dataclass(frozen=True)
class Shell:
    """Runs lines of a page, each `everlong` in this process."""

    folder: Path
    dsn: str
    environment: dict[str, str]

    def run(self, line: str, typed: str = "", **environment: str) -> Done:
        before, _, command = line.rpartition(" | ")
        if before:
            typed = subprocess.run(  # noqa: S602 - our own page
                before, shell=True, cwd=self.folder, capture_output=True, text=True, check=True
            ).stdout
        command, _, target = command.partition(" > ")
        command, _, source = command.partition(" < ")
        if source:
            typed = (self.folder / source).read_text("utf-8")
        given = {"DATABASE_URL": self.dsn} | self.environment | environment
        done = everlong(*shlex.split(command)[1:], given=typed, **given)
        if target:
            (self.folder / target).write_text(done.out, "utf-8")
        return done

    def say(
        self, *lines: str, user: str = "kim", thread: str = "orders", **environment: str
    ) -> None:
        done = self.run(f"everlong chat -u {user} -t {thread}", "\n".join(lines), **environment)
        assert done.code == 0, done.err

    def ids(self, line: str, name: str) -> list[str]:
        return [one[name] for one in json.loads(self.run(f"{line} --json").out)]

    def doubt(self, openai_server, user: str, said: str, fact: str) -> None:
        """Have a model add two dates that nobody said."""
        for date in ("2026-02-13", "2026-02-14"):
            openai_server.responder = f"- {fact} on {date} [1]"
            model = {"EVERLONG_MEMORY_MODEL": "openai:gpt-4o"}
            self.say(said, user=user, thread=date, **LATER | model)


@pytest.fixture
def shell(dsn, tmp_path, monkeypatch, openai_server):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "tools.py").write_text(TOOLS, "utf-8")
    (tmp_path / "questions.txt").write_text("four\nfive\n", "utf-8")
    openai = {"OPENAI_BASE_URL": openai_server.url, "OPENAI_API_KEY": openai_server.key}
    return Shell(tmp_path, dsn, openai)


def commands(page: str) -> list[tuple[str, str, str]]:
    """Return each command of a page's blocks at a prompt, what is typed there, what comes first."""
    found = []
    for block in blocks_in(ROOT / page, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, rest = part.partition("\n")
            typed = re.findall(r"^(?:answer )?› (.+)$", rest, re.MULTILINE)
            shown = [one for one in rest.splitlines() if one.strip() and not ASKED.search(one)]
            typed = "\n".join(AS_OFFLINE.get(one, one) for one in typed)
            found.append((line, typed, shown[0] if shown else ""))
    return found


def test_the_commands_of_the_readme_lead_from_one_session_to_the_next(shell):
    lines = [line for code in blocks_in(ROOT / "README.md", "sh") for line in code.splitlines()]
    done = [shell.run(with_yes(line)) for line in lines if not PREPARES.match(line)]
    assert [one.err for one in done if one.code] == []
    assert "From memory: our exports go through Shanghai port only." in done[1].out
    assert "Source: sessions/monday#0 [user" in done[2].out
    assert "Forgotten: 1 fact of the ledger, 2 lines of MEMORY.md" in done[3].out


def with_yes(line: str) -> str:
    return f"{line} --yes" if ASKS.match(line) else line


def like(text: str) -> str:
    """Return what stays of a text when ids, times, counts and the machine are others."""
    text = re.sub(
        r"embedded Postgres in \S+|postgresql://\S+|on \w+ \w+$", "HERE", text, flags=re.MULTILINE
    )
    text = re.sub(r"\b[0-9a-f]{16}\b|[0-9][0-9a-zT:,.-]*", "0", text)
    return re.sub(r"\b(user|fact|record|line|version|day)s\b", r"\1", re.sub(r"[ ]+", " ", text))


def test_each_command_of_the_pages_does_what_it_shows(shell, openai_server):
    openai_server.responder = "OK"
    first = preparations(shell, openai_server)
    for line, typed, shown in [*commands("docs/cli.md"), *commands("docs/memory.md")]:
        if line in ELSEWHERE:
            continue
        first.pop(line, lambda: None)()
        done = shell.run(with_yes(filled(shell, line)), typed)
        assert done.code == 0, f"{line}\n{done.out}{done.err}"
        if line not in SHOWN_ELSEWHERE:
            assert like(shown) in like(done.out), f"{line}\n{done.out}"
    assert not first


def preparations(shell: Shell, openai_server) -> dict[str, Callable[[], object]]:
    """Return what has to have happened before some of the commands."""

    def told_again() -> None:
        shell.run("everlong forget-user kim --allow-again")
        shell.say(TOLD, **LATER)

    return {
        "everlong memory history --user kim": lambda: shell.say(
            "Remember that I prefer quotations in euro.", **AT_ONCE
        ),
        "everlong memory review --user kim": lambda: shell.doubt(
            openai_server, "kim", "The contract is signed.", "The contract was signed"
        ),
        "everlong memory forget --user kim phone number": lambda: shell.say(
            "Remember that my phone number is 555-0142.", **AT_ONCE
        ),
        "everlong consolidate --user kim": told_again,
        "everlong transcript --user kim --thread orders": lambda: shell.say(
            "one", "two", "three", "four", **COMPACTING
        ),
        "everlong memory review --user gil": lambda: shell.doubt(
            openai_server,
            "gil",
            "Exports go through Shanghai.",
            "The agreement on exports was made",
        ),
    }


def filled(shell: Shell, line: str) -> str:
    """Put the ids and the day of this database in the place of the page's."""
    for shown, command, name, which in IDS:
        if f" {shown}" in line:
            line = line.replace(f" {shown}", f" {shell.ids(command, name)[which]}")
    if DAY in line:
        day = shell.run("everlong memory show --user kim --list").out.split("memory/")[1][
            : len(DAY)
        ]
        line = line.replace(DAY, day)
    return line
